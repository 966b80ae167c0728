//! Recordings on disk: read, written, and watched while somebody else writes.

use std::fs;
use std::path::{Path, PathBuf};

use tierloom_recording::{Recording, version};

/// Why a file cannot be read or written as a recording.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read or written.
    #[error("{}: {source}\n  hint: check that the folder exists and may be written", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a recording.
    #[error("{}: not a recording that can be read: {problem}\n  hint: record the program again", .path.display())]
    NotARecording {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// Writes a recording to a file that [`load`] reads back unchanged.
///
/// # Errors
/// [`FileError::Io`].
pub fn save(recording: &Recording, path: &Path) -> Result<(), FileError> {
    fs::write(path, recording.to_bytes()).map_err(|source| FileError::Io { path: path.to_owned(), source })
}

/// Reads a file that [`save`] or the recorder wrote. What a recorder that was stopped had written until then is a
/// recording, too: its warnings say so, and it does not know how the program ended.
///
/// # Errors
/// [`FileError::Io`], [`FileError::NotARecording`].
pub fn load(path: &Path) -> Result<Recording, FileError> {
    load_versioned(path).map(|(_, recording)| recording)
}

/// The same with the version of the format in which it was written.
///
/// # Errors
/// As [`load`].
pub fn load_versioned(path: &Path) -> Result<(u8, Recording), FileError> {
    let bytes = fs::read(path).map_err(|source| FileError::Io { path: path.to_owned(), source })?;
    let read = Recording::from_bytes(&bytes).and_then(|recording| Ok((version(&bytes)?, recording)));
    read.map_err(|problem| FileError::NotARecording { path: path.to_owned(), problem })
}

/// Whether a recorder writes this file now: it has it locked.
pub fn is_growing(path: &Path) -> bool {
    fs::File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_none_says_so() {
        let error = load(Path::new("/etc/passwd")).unwrap_err().to_string();
        assert!(error.contains("/etc/passwd") && error.contains("hint:"), "{error}");
        let error = load(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
    }
}
