//! Files of this process for parsers that read from a path.

use std::path::PathBuf;

/// A file with some bytes, removed when its user is done with it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// # Panics
    /// Nothing can be written to the folder of temporary files: point `TMPDIR` at memory, it is fast.
    pub(crate) fn new(name: &str, bytes: &[u8]) -> Self {
        let thread = std::thread::current().id();
        let name = format!("tierloom-fuzzed-{}-{thread:?}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        assert!(std::fs::write(&path, bytes).is_ok(), "{}: cannot be written", path.display());
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}
