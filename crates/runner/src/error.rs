//! Why a program cannot be run under a plan.

use tierloom_linux::LinuxError;

/// Why a program cannot be run under a plan.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program cannot be started.
    #[error(transparent)]
    Launch(#[from] tierloom_launch::LaunchError),
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
