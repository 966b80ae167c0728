//! Why a program cannot be recorded.

use std::path::PathBuf;

use tierloom_linux::LinuxError;

/// Why a program cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The program cannot be started.
    #[error(transparent)]
    Launch(#[from] tierloom_launch::LaunchError),
    /// `perf_event_open` is refused and was asked for by name.
    #[error(
        "samples by perf_event_open are refused: {source}\n  hint: use the `ptrace` backend, or let an administrator set kernel.perf_event_paranoid to 2 or less"
    )]
    PerfRefused {
        /// The kernel's reason.
        source: LinuxError,
    },
    /// `ptrace` is refused and was asked for by name.
    #[error(
        "samples by ptrace are refused: {source}\n  hint: let an administrator set kernel.yama.ptrace_scope to 1 or less, or use the `perf` backend"
    )]
    PtraceRefused {
        /// The kernel's reason.
        source: LinuxError,
    },
    /// No way to take samples works here.
    #[error(
        "no samples can be taken here: {perf}; {ptrace}\n  hint: let an administrator set kernel.perf_event_paranoid to 2 or less, or kernel.yama.ptrace_scope to 1 or less; a container needs a seccomp profile that allows perf_event_open or ptrace"
    )]
    NoSamples {
        /// Why not by `perf_event_open`.
        perf: LinuxError,
        /// Why not by `ptrace`.
        ptrace: LinuxError,
    },
    /// The sampling rate makes no sense.
    #[error("{hz} samples per second cannot be taken\n  hint: give a rate from 1 to 10000; 1993 is usual")]
    Rate {
        /// As it was asked for.
        hz: u32,
    },
    /// The kernel refused something else.
    #[error(
        "{source}\n  hint: this is about the machine, not about the program; see whether memory, processes or files have run out"
    )]
    Kernel {
        /// What and why.
        #[from]
        source: LinuxError,
    },
    /// Where the recording is to go cannot be written; nothing was run.
    #[error("{}: {source}; the program was not started\n  hint: check that the folder may be written, or choose another", .path.display())]
    Output {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is too little room for a recording; nothing was run.
    #[error("{}: only {free_mib} MiB are free there, and {least_mib} MiB should be; the program was not started\n  hint: make room, or choose another folder", .path.display())]
    NoSpace {
        /// Which file.
        path: PathBuf,
        /// What there is.
        free_mib: u64,
        /// What is needed to start.
        least_mib: u64,
    },
    /// Something else is where the recording is to go; nothing was run.
    #[error("{}: it exists and is no recording; the program was not started\n  hint: choose another name", .path.display())]
    NotARecording {
        /// Which file.
        path: PathBuf,
    },
    /// Somebody else writes the same recording.
    #[error("{}: a program is being recorded into it now\n  hint: wait for its end, or choose another folder", .path.display())]
    BeingRecorded {
        /// Which file.
        path: PathBuf,
    },
}
