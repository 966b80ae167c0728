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
        "the pool has no room for {needed} bytes of `{name}`: {free} bytes are free{}\nhint: free arrays, or let the pool grow",
        longest.map_or(String::new(), |longest| format!(", at most {longest} in one piece"))
    )]
    Full {
        /// Array.
        name: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes free in all.
        free: u64,
        /// Bytes of the largest gap, where that is known.
        longest: Option<u64>,
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
    /// There is no libpmemobj on this machine.
    #[error("libpmemobj cannot be loaded: {why}\nhint: apt-get install libpmemobj1, or use the native back-end")]
    NoLibrary {
        /// What the loader says.
        why: String,
    },
    /// libpmemobj refused.
    #[error("libpmemobj, {path}: {why}{}", library_hint(.why))]
    Library {
        /// The pool.
        path: String,
        /// In its words.
        why: String,
    },
    /// A measurement whose results are not those of its kernels.
    #[error("STREAM: {array}[{index}] is {found}, not {expected}\nhint: does anything else write to the memory?")]
    Wrong {
        /// Array.
        array: char,
        /// Element.
        index: usize,
        /// What is there.
        found: f64,
        /// What should be.
        expected: f64,
    },
    /// A thread of ours ended before its work was done.
    #[error("a measuring thread ended early\nhint: please report this")]
    Lost,
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
        ("read size of", _) => "\nhint: a device has to be a DAX device such as /dev/dax0.0",
        ("posix_fallocate", _) => "\nhint: the file system has too little room",
        _ => "",
    }
}

/// What to do about a refusal of libpmemobj, known by its words (PMDK 1.12, src/libpmemobj/obj.c and
/// src/common/set.c, where they are text and no numbers).
fn library_hint(why: &str) -> &'static str {
    let hints = [
        ("Resource temporarily unavailable", "\nhint: another process has the pool open; one at a time"),
        ("File exists", "\nhint: open it, or choose another name"),
        ("No space left", "\nhint: the file system has too little room"),
    ];
    let found = hints.iter().find(|(words, _)| why.contains(words));
    found.map_or("\nhint: `pmempool check` and `pmempool info` of pmdk-tools say more", |(_, hint)| hint)
}

/// Numbers of Linux's `errno.h`, as the kernel reports them on every architecture that we build for.
mod libc_errno {
    pub(super) const ENOENT: i32 = 2;
    pub(super) const EEXIST: i32 = 17;
}
