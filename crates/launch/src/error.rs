//! Why a program cannot be started.

use std::path::PathBuf;

use tierloom_linux::LinuxError;

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
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
    /// The preload library is not where it should be.
    #[error("{}: the preload library is not there\n  hint: build it (`cargo build --release -p tierloom-preload`) or reinstall Tierloom", .path.display())]
    NoPreload {
        /// Where it was looked for.
        path: PathBuf,
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
}
