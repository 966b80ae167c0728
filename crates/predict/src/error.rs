//! Why a prediction cannot be made.

use thiserror::Error;
use tierloom_contention::ContentionError;

/// Why a machine, a profile and a run do not go together.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PredictError {
    /// The machine's loads or the socket are wrong.
    #[error(transparent)]
    Contention(#[from] ContentionError),
    /// The machine that the profile was recorded on is wrong.
    #[error(
        "machine `{machine}`, on which the profile was recorded: {problem}\n\
         hint: measure that machine again with `tierloom machine measure`, or name a file of it with --ran-on"
    )]
    RanOn {
        /// Machine.
        machine: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody to do the work.
    #[error("0 threads cannot run `{profile}`\nhint: ask for 1 thread or more")]
    NoThreads {
        /// Profile.
        profile: String,
    },
    /// More threads than the socket has cores.
    #[error(
        "{threads} threads do not fit on socket `{socket}` of `{machine}`, which has {cores} cores\n\
         hint: ask for {cores} threads or fewer"
    )]
    TooManyThreads {
        /// Threads asked for.
        threads: u32,
        /// Cores there.
        cores: u32,
        /// Socket.
        socket: String,
        /// Machine.
        machine: String,
    },
    /// Threads on one socket are asked for in two parts.
    #[error("socket `{socket}` is named twice\nhint: give the threads on it in one number")]
    SocketTwice {
        /// Socket.
        socket: String,
    },
    /// An access names an object that the profile does not have.
    #[error(
        "phase `{phase}` of `{profile}` touches `{object}`, which is none of its objects\nhint: list the object or drop the access"
    )]
    UnknownObject {
        /// Profile.
        profile: String,
        /// Phase.
        phase: String,
        /// Name that is not there.
        object: String,
    },
}
