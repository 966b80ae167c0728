//! Why a file cannot be read or written as a recording.

use std::path::PathBuf;

/// Why a file cannot be read or written as a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file could not be read or written.
    #[error("{}: {source}\n  hint: check that the folder exists and may be written", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not a recording.
    #[error("{}: not a recording that can be read: {problem}\n  hint: record the program again", .path.display())]
    NotARecording {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}
