//! Why a file of samples cannot be read.

use std::path::{Path, PathBuf};

/// Why a file of samples cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PerfDataError {
    /// A file could not be read or written.
    #[error("{}: {source}\n  hint: check that the folder exists and may be written", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not a `perf.data` that can be worked out.
    #[error("{}: {problem}\n  hint: {hint}", .path.display())]
    NotPerfData {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do, or what to record instead.
        hint: String,
    },
}

/// What is wrong with a file, before anybody says which.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// It cannot be read.
    Unreadable(std::io::Error),
    /// It holds what cannot be worked out; `{file}` in the hint stands for its path.
    Content { problem: String, hint: String },
}

impl Flaw {
    pub(crate) fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Content { problem: problem.into(), hint: hint.into() }
    }

    pub(crate) fn damaged(what: &str) -> Self {
        Self::new(format!("{what} is cut off or damaged"), "record again, and let `perf record` end by itself")
    }

    /// Of reading a part: bytes that end too early, or that another reader refused, are damaged; the rest is the disk's fault.
    pub(crate) fn of_reading(error: std::io::Error, what: &str) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => Self::damaged(what),
            _ => Self::Unreadable(error),
        }
    }

    pub(crate) fn of(self, path: &Path) -> PerfDataError {
        let path = path.to_owned();
        match self {
            Self::Unreadable(source) => PerfDataError::File { path, source },
            Self::Content { problem, hint } => {
                let hint = hint.replace("{file}", &path.display().to_string());
                PerfDataError::NotPerfData { path, problem, hint }
            }
        }
    }
}
