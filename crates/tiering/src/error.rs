//! Why a simulation cannot be made.

use thiserror::Error;
use tierloom_contention::ContentionError;

/// Result of this room.
pub(crate) type Result<T, E = TieringError> = std::result::Result<T, E>;

/// A machine, a workload and a request that do not go together.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TieringError {
    /// The machine's loads or the socket are wrong.
    #[error(transparent)]
    Contention(#[from] ContentionError),
    /// A workload file cannot be read.
    #[error("{file}: {problem}\nhint: {hint}")]
    BadWorkload {
        /// File as the caller named it.
        file: String,
        /// Where, and what is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The request names something that is not there, or a number makes no sense.
    #[error("{what}: {problem}\nhint: {hint}")]
    BadRequest {
        /// Part of the request.
        what: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The data does not fit in the allowed memories.
    #[error("`{region}` does not fit: {missing} find no room on {nodes}\nhint: {hint}")]
    DoesNotFit {
        /// Region whose pages found no room.
        region: String,
        /// Bytes without a place, for people.
        missing: String,
        /// Nodes that were tried.
        nodes: String,
        /// What to do.
        hint: String,
    },
    /// One record of an access trace is wrong.
    #[error("{file}:{row}: {problem}\nhint: {hint}")]
    BadTrace {
        /// File as the caller named it.
        file: String,
        /// Row of the trace, counted from 1.
        row: u64,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
}

/// What is wrong with a description that nobody has named yet, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) problem: String,
    pub(crate) hint: String,
}

impl Flaw {
    pub(crate) fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into() }
    }

    /// The same, seen from further out: `place` comes before the problem.
    pub(crate) fn within(self, place: &str) -> Self {
        Self { problem: format!("{place}{}", self.problem), ..self }
    }

    /// In a workload that goes by this name.
    pub(crate) fn of_workload(self, file: &str) -> TieringError {
        TieringError::BadWorkload { file: file.to_owned(), problem: self.problem, hint: self.hint }
    }
}

impl TieringError {
    pub(crate) fn request(what: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::BadRequest { what: what.into(), problem: problem.into(), hint: hint.into() }
    }
}
