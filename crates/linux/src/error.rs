//! What the kernel refused: which call, on what, and why.

use std::io;

/// A system call, or a read of `/proc` or `/sys`, that did not work.
#[derive(Debug, thiserror::Error)]
#[error("{call} ({subject}): {source}")]
pub struct LinuxError {
    /// Name of the system call.
    pub call: &'static str,
    /// What it was called on.
    pub subject: String,
    /// The kernel's reason.
    pub source: io::Error,
}

impl LinuxError {
    /// An error of a call whose reason the caller has at hand.
    pub fn new(call: &'static str, subject: impl Into<String>, source: io::Error) -> Self {
        Self { call, subject: subject.into(), source }
    }

    /// An error of the call that just failed: its reason is in `errno`.
    pub fn last(call: &'static str, subject: impl Into<String>) -> Self {
        Self::new(call, subject, io::Error::last_os_error())
    }

    /// The kernel's error number, where it gave one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}
