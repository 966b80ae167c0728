//! Why a file of samples cannot be read.

use std::path::PathBuf;

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
        hint: &'static str,
    },
}
