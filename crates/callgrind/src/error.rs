//! Why a file of counts cannot be read.

use std::path::{Path, PathBuf};

/// Why a file of counts cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CallgrindError {
    /// The file could not be read.
    #[error("{}: {source}\n  hint: give the file that callgrind wrote", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is there twice.
    #[error("{} is given twice\n  hint: give each file of callgrind's once", .path.display())]
    Twice {
        /// Which.
        path: PathBuf,
    },
    /// A process was counted in parts, and one is missing.
    #[error(
        "{}: part {part} of this process (pid {pid}) is missing\n  hint: give all files of it: callgrind.out.{pid} and \
         those that go on with a number",
        .path.display()
    )]
    PartMissing {
        /// A file of the process.
        path: PathBuf,
        /// Which process.
        pid: u64,
        /// Which part.
        part: u64,
    },
    /// Lines of two processes that were counted with different caches, or of one of them alone, do not add up.
    #[error(
        "{}: it was counted with other caches than {}\n  hint: count all processes in one run of callgrind's",
        .path.display(),
        .first.display()
    )]
    OtherCaches {
        /// Which.
        path: PathBuf,
        /// The file before it.
        first: PathBuf,
    },
    /// It does not hold executions of instructions.
    #[error("{}, line {line}: {problem}\n  hint: {hint}", .path.display())]
    NotCallgrind {
        /// Which.
        path: PathBuf,
        /// Where.
        line: u64,
        /// What is wrong there.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
}

/// What is wrong with a file, before anybody says which.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// It cannot be read.
    Unreadable(std::io::Error),
    /// It holds something else.
    Content { problem: String, hint: &'static str },
}

impl Flaw {
    /// Callgrind was asked for something else.
    pub(crate) fn asked(problem: impl Into<String>) -> Self {
        let hint = "write it with `valgrind --tool=callgrind --dump-instr=yes CMD`";
        Self::Content { problem: problem.into(), hint }
    }

    /// There is nothing.
    pub(crate) fn empty() -> Self {
        let hint =
            "give a file of a program that has ended; threads that were counted apart have their own, `-01` and on";
        Self::Content { problem: "it is empty".to_owned(), hint }
    }

    /// The content is damaged, or no callgrind's.
    pub(crate) fn other(problem: impl Into<String>) -> Self {
        let hint = "give a whole file of callgrind's, of a program that has ended";
        Self::Content { problem: problem.into(), hint }
    }

    pub(crate) fn of(self, path: &Path, line: u64) -> CallgrindError {
        let path = path.to_owned();
        match self {
            Self::Unreadable(source) => CallgrindError::File { path, source },
            Self::Content { problem, hint } => CallgrindError::NotCallgrind { path, line, problem, hint },
        }
    }
}
