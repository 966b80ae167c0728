//! What can go wrong between a command line and a profile.

use std::path::PathBuf;

use tierloom_linux::LinuxError;

/// Why a program could not be recorded, or a recording not be read.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// No command was given.
    #[error("there is no program to run\n  hint: write it behind `--`, as in `-- ./program arguments`")]
    NoCommand,
    /// The program does not exist.
    #[error("{program}: there is no such program\n  hint: check the spelling, give a path, or look at PATH")]
    NotFound {
        /// As it was typed.
        program: String,
    },
    /// The program exists and may not or cannot be executed.
    #[error("{program}: cannot be executed: {source}\n  hint: {hint}")]
    NotExecutable {
        /// As it was typed.
        program: String,
        /// What to do.
        hint: &'static str,
        /// The kernel's reason.
        source: LinuxError,
    },
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
    /// The preload library is not where it should be.
    #[error("{}: the preload library is not there\n  hint: build it (`cargo build --release -p tierloom-preload`) or reinstall Tierloom", .path.display())]
    NoPreload {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The sampling rate makes no sense.
    #[error("{hz} samples per second cannot be taken\n  hint: give a rate from 1 to 10000; 997 is usual")]
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
    /// The host's weights were to be set, and the plan has several ratios.
    #[error(
        "the host has one weight a node, and the plan weighs `{first}` and `{second}` differently\n  hint: leave out --set-host-weights: each object gets its own weights without the host's"
    )]
    SeveralWeights {
        /// An object.
        first: String,
        /// One with another ratio.
        second: String,
    },
    /// The host's weights could not be set.
    #[error(
        "the host's interleave weights cannot be set: {source}\n  hint: it takes root and Linux 6.9; without --set-host-weights each object gets its weights without the host's"
    )]
    HostWeights {
        /// The kernel's reason.
        source: LinuxError,
    },
    /// Another run has set the host's weights.
    #[error(
        "the host's interleave weights are those of run {pid} now\n  hint: wait for its end, or leave out --set-host-weights: each object gets its own weights without the host's"
    )]
    HostWeightsTaken {
        /// Its process.
        pid: u32,
    },
    /// A running program cannot be placed anew.
    #[error("process {pid}: {problem}\n  hint: {hint}")]
    NotPlaced {
        /// Which.
        pid: u32,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
    /// A file could not be read or written.
    #[error("{}: {source}\n  hint: check that the folder exists and may be written", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
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
    /// Somebody else writes the same recording.
    #[error("{}: a program is being recorded into it now\n  hint: wait for its end, or choose another folder", .path.display())]
    BeingRecorded {
        /// Which file.
        path: PathBuf,
    },
    /// A file is not a `perf.data` that can be worked out.
    #[error("{}: {problem}\n  hint: {hint}", .path.display())]
    NotPerfData {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do, or what to record instead.
        hint: &'static str,
    },
    /// The analysis came to no end: a fault of ours.
    #[error(
        "the analysis of {recording} failed: {reason}\n  hint: this is a fault of tierloom, please report it; nothing is lost, the recording stays"
    )]
    Analysis {
        /// Of what.
        recording: String,
        /// What it said.
        reason: String,
    },
    /// A file is not a recording.
    #[error("{}: not a recording of this version: {problem}\n  hint: record the program again", .path.display())]
    NotARecording {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}
