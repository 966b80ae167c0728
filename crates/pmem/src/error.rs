//! What can be wrong with a pool, and what to do about it.

use tierloom_linux::LinuxError;

/// Why a pool cannot be made, opened or changed.
#[derive(Debug, thiserror::Error)]
pub enum PmemError {
    /// The kernel refused.
    #[error("pool: {source}{}", hint(.source))]
    Kernel {
        /// Its reason.
        #[from]
        source: LinuxError,
    },
    /// The file holds no pool, or one that cannot be trusted.
    #[error("not a usable pool: {what}\nhint: {hint}")]
    Damaged {
        /// What is wrong, and where.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// The pool is too small for what is asked.
    #[error(
        "the pool has no room for {needed} bytes of `{name}`: {free} bytes are free, at most {longest} in one piece\nhint: free arrays, or let the pool grow"
    )]
    Full {
        /// Array.
        name: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes free in all.
        free: u64,
        /// Bytes of the largest gap.
        longest: u64,
    },
    /// There are more arrays than the directory holds.
    #[error("the pool's directory is full: it holds {entries} arrays\nhint: free some, or use fewer, larger arrays")]
    DirectoryFull {
        /// Most arrays.
        entries: u64,
    },
    /// What a transaction changes does not fit in the log.
    #[error(
        "the transaction would save {needed} bytes, the log has room for {room} more\nhint: change less at once, or create the pool with a larger log"
    )]
    LogFull {
        /// Bytes that the snapshot takes.
        needed: u64,
        /// Bytes left.
        room: u64,
    },
    /// A request that cannot be.
    #[error("{what}\nhint: {hint}")]
    Request {
        /// What is wrong.
        what: String,
        /// What to do.
        hint: &'static str,
    },
}

/// What to do about a refusal of the kernel.
fn hint(error: &LinuxError) -> &'static str {
    match (error.call, error.errno()) {
        ("flock", _) => "\nhint: another process has the pool open; one at a time",
        ("open", Some(libc_errno::EEXIST)) => "\nhint: open it, or choose another name",
        ("open", Some(libc_errno::ENOENT)) => "\nhint: create it first",
        ("posix_fallocate", _) => "\nhint: the file system has too little room",
        _ => "",
    }
}

/// Numbers of Linux's `errno.h`, as the kernel reports them on every architecture that we build for.
mod libc_errno {
    pub(super) const ENOENT: i32 = 2;
    pub(super) const EEXIST: i32 = 17;
}
