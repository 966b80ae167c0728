//! Why this machine could not be measured.

use thiserror::Error;
use tierloom_linux::LinuxError;
use tierloom_linux::root::Damaged;
use tierloom_model::ModelError;

/// Why this machine could not be measured; what is merely doubtful is a [`crate::Warning`].
#[derive(Debug, Error)]
pub enum ProbeError {
    /// Every socket's CPUs are closed to this process.
    #[error("no CPU of this machine may be used\nhint: run outside the container's CPU set, or widen it")]
    NoCpus,
    /// No node has room for even the smallest region.
    #[error(
        "no memory node has {needed_bytes} bytes free, a quarter of them to spare\nhint: end programs that hold memory"
    )]
    NoRoom {
        /// Bytes of the smallest useful region.
        needed_bytes: u64,
    },
    /// Whoever listens to the progress wanted no more.
    #[error("the measurement was stopped before its end\nhint: run it again; --quick takes less than a minute")]
    Stopped,
    /// A program has all cores, so nobody can work beside it.
    #[error("of {cores} cores the program needs {keep}, so none is left for neighbours\nhint: give it fewer threads")]
    NoCoreLeft {
        /// Cores of the first socket that may be used.
        cores: usize,
        /// Cores that the program needs.
        keep: usize,
    },
    /// Neighbours on all cores that are left do not read as much as was asked.
    #[error("neighbours on the cores that are left read {reached:.1} GB/s, not {gb_s}\nhint: ask for less")]
    Slower {
        /// What was asked, GB/s.
        gb_s: f64,
        /// What they read at full speed, GB/s.
        reached: f64,
    },
    /// There is no memory node below a root.
    #[error("no memory node is described there\nhint: give the folder that holds the machine's proc and sys")]
    NoMachine,
    /// A file of `/proc` or `/sys` is not what the kernel writes.
    #[error("{0}")]
    Damaged(#[from] Damaged),
    /// The kernel refused a call.
    #[error("{0}\nhint: run without a sandbox that forbids this call (seccomp, a container's profile)")]
    Kernel(#[from] LinuxError),
    /// What was measured makes no machine: the noun's own check refuses it.
    #[error("the measurement makes no machine: {0}\nhint: measure again while nothing else runs")]
    Refused(#[from] ModelError),
}
