//! A file in memory that several processes map: what a program and its recorder share.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use crate::error::LinuxError;

/// Beginning of the names of such files.
pub const PREFIX: &str = "tierloom-";

/// Folders to try: the first is memory on every Linux, the second exists where that does not.
fn folders() -> [PathBuf; 2] {
    [PathBuf::from("/dev/shm"), std::env::temp_dir()]
}

/// Whether a file is called as these are, whichever folder it lies or lay in.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split(' ').next()?.split_once('-'));
    parts.is_some_and(|(process, time)| process.parse::<u32>().is_ok() && u64::from_str_radix(time, 16).is_ok())
}

/// A mapped file of words, removed when this is dropped. Whoever has it mapped keeps it.
#[derive(Debug)]
pub struct SharedFile {
    path: PathBuf,
    start: *const AtomicU64,
    words: usize,
}

// SAFETY: the mapping belongs to this value alone until `drop`, and it holds only atomics.
unsafe impl Send for SharedFile {}
// SAFETY: as above.
unsafe impl Sync for SharedFile {}

impl SharedFile {
    /// A new file of `words` zeroes that only this user can open.
    ///
    /// # Errors
    /// No folder for shared memory can be written, or memory is short.
    pub fn create(words: usize) -> Result<Self, LinuxError> {
        let mut refused = None;
        for folder in folders() {
            match Self::create_in(&folder, words) {
                Ok(file) => return Ok(file),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| LinuxError::new("open", "shared memory", io::ErrorKind::NotFound.into())))
    }

    fn create_in(folder: &Path, words: usize) -> Result<Self, LinuxError> {
        let path = folder.join(format!("{PREFIX}{}-{:x}", std::process::id(), crate::clock::monotonic_ns()));
        let subject = path.display().to_string();
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| LinuxError::new("open", &subject, error.into()))?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: `name` is a C string; the other arguments are plain numbers.
        let file = unsafe { libc::open(name.as_ptr(), flags, 0o600) };
        if file < 0 {
            return Err(LinuxError::last("open", subject));
        }
        let mapped = map_words(file, words);
        // SAFETY: `file` is open and used no more; the mapping does not need it.
        unsafe { libc::close(file) };
        match mapped {
            Ok(start) => Ok(Self { path, start, words }),
            Err((call, reason)) => {
                fs::remove_file(&path).ok();
                Err(LinuxError::new(call, subject, reason))
            }
        }
    }

    /// Where it is, for other processes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` is a page-aligned mapping of `words` zero-initialised words that lives as
        // long as `self`; other processes change it only through atomics of the same size.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }
}

fn map_words(file: i32, words: usize) -> Result<*const AtomicU64, (&'static str, io::Error)> {
    let bytes = words * size_of::<AtomicU64>();
    let Ok(size) = libc::off_t::try_from(bytes) else { return Err(("ftruncate", io::ErrorKind::InvalidInput.into())) };
    // SAFETY: `file` is open; posix_fallocate takes memory now, where ftruncate would let a full
    // /dev/shm end the program with SIGBUS later.
    let refused = unsafe { libc::posix_fallocate(file, 0, size) };
    if refused != 0 {
        return Err(("posix_fallocate", io::Error::from_raw_os_error(refused)));
    }
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, file, 0) };
    if start == libc::MAP_FAILED { Err(("mmap", io::Error::last_os_error())) } else { Ok(start.cast()) }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
        // SAFETY: the mapping was made by `create_in` with this size; nobody borrows `self` any more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), self.words * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn the_file_holds_words_and_goes_away() {
        let shared = SharedFile::create(1024).unwrap();
        let path = shared.path().to_owned();
        shared.words()[1023].store(0x0102, Ordering::Relaxed);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 8192);
        assert_eq!(bytes[8184..8186], [2, 1]);
        drop(shared);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        let shared = SharedFile::create(1).unwrap();
        let name = shared.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(is_name(&name) && is_name(&format!("{name} (deleted)")));
        assert!(!is_name("tierloom-notes") && !is_name("tierloom-1-") && !is_name("1-a"));
    }
}
