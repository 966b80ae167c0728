//! What can be wrong with a load that somebody built in code; files are checked when they are read.

use thiserror::Error;

/// Why a load cannot be compiled.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ContentionError {
    /// A curve has too few points, or they do not rise.
    #[error("{place}: {problem}\nhint: {hint}")]
    BadLoad {
        /// Path or curve that is meant.
        place: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The machine has no such socket.
    #[error("there is no socket {socket}: the machine has {sockets}\nhint: count sockets from 0")]
    NoSocket {
        /// Position that was asked for.
        socket: usize,
        /// Sockets of the machine.
        sockets: usize,
    },
}

impl ContentionError {
    pub(crate) fn bad(place: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::BadLoad { place: place.into(), problem: problem.into(), hint: hint.into() }
    }
}
