//! Memory that several processes map: what a program and its recorder share.
//!
//! It has no name in a file system, so nothing stays when its maker is killed: others open it as
//! `/proc/PID/fd/N` of the maker, which the kernel lets the same user do while the maker lives, and keep
//! it once they have it mapped. Where that is not open to others (a maker with capabilities of its own
//! file, no `/proc`), it is a file in a folder instead, locked while its maker lives; what makers that
//! were killed left there, the next one removes.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use crate::error::LinuxError;
use crate::maps::mapped_ranges;
use crate::root::Root;

/// Beginning of the names of such memory.
const PREFIX: &str = "tierloom-";

/// Folders to try: the first is memory on every Linux, the second exists where that does not.
fn folders() -> [PathBuf; 2] {
    [PathBuf::from("/dev/shm"), std::env::temp_dir()]
}

/// Mapped memory of words, gone when this is dropped. Whoever has it mapped keeps it.
#[derive(Debug)]
pub struct SharedFile {
    name: String,
    path: PathBuf,
    /// Open, because others open it by this number, or because of the lock on it.
    _file: File,
    /// In a folder, to be removed.
    listed: bool,
    start: *const AtomicU64,
    words: usize,
}

// SAFETY: the mapping belongs to this value alone until `drop`, and it holds only atomics.
unsafe impl Send for SharedFile {}
// SAFETY: as above.
unsafe impl Sync for SharedFile {}

impl SharedFile {
    /// New memory of `words` zeroes that only this user can open.
    ///
    /// # Errors
    /// There is no shared memory here, or memory is short.
    pub fn create(words: usize) -> Result<Self, LinuxError> {
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), crate::clock::monotonic_ns());
        Self::unlisted(&name, words).or_else(|_| Self::listed(&name, words, &folders()))
    }

    fn unlisted(name: &str, words: usize) -> Result<Self, LinuxError> {
        let file = memory_file(name)?;
        let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        let refused = |source| LinuxError::new("open", path.display().to_string(), source);
        if !is_open_to_others() {
            return Err(refused(io::ErrorKind::PermissionDenied.into()));
        }
        OpenOptions::new().read(true).write(true).open(&path).map_err(refused)?;
        Self::mapped(name, path, file, words, false)
    }

    fn listed(name: &str, words: usize, folders: &[PathBuf]) -> Result<Self, LinuxError> {
        let mut refused = LinuxError::new("open", "shared memory", io::ErrorKind::NotFound.into());
        for folder in folders {
            remove_left(folder);
            match Self::create_in(folder, name, words) {
                Ok(file) => return Ok(file),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn create_in(folder: &Path, name: &str, words: usize) -> Result<Self, LinuxError> {
        let path = folder.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let subject = path.display().to_string();
        let file = options.open(&path).map_err(|source| LinuxError::new("open", &subject, source))?;
        file.try_lock().ok();
        let mapped = Self::mapped(name, path.clone(), file, words, true);
        mapped.inspect_err(|_| drop(fs::remove_file(path)))
    }

    fn mapped(name: &str, path: PathBuf, file: File, words: usize, listed: bool) -> Result<Self, LinuxError> {
        let start = map_words(file.as_raw_fd(), words)
            .map_err(|(call, reason)| LinuxError::new(call, path.display().to_string(), reason))?;
        Ok(Self { name: name.to_owned(), path, _file: file, listed, start, words })
    }

    /// Its name, by which it is known among the mappings of a process: see [`name_of`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where other processes open it.
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

/// Name of the shared memory that a mapping of this path is, if it is one.
pub fn name_of(mapped: &str) -> Option<&str> {
    let path = mapped.strip_suffix(" (deleted)").unwrap_or(mapped);
    let (folder, name) = path.rsplit_once('/')?;
    let name = name.strip_prefix("memfd:").unwrap_or(name);
    let is_ours = folder.is_empty() || folders().iter().any(|known| known == Path::new(folder));
    Some(name).filter(|name| is_ours && is_given_name(name))
}

/// Whether this process has the shared memory of this name mapped. A process in another namespace tells an id by
/// which somebody else is known here.
pub fn is_mapped_by(root: &Root, pid: u32, name: &str) -> bool {
    mapped_ranges(root, pid).iter().any(|range| name_of(&range.path) == Some(name))
}

fn memory_file(name: &str) -> Result<File, LinuxError> {
    let text = CString::new(name).map_err(|error| LinuxError::new("memfd_create", name, error.into()))?;
    // Where vm.memfd_noexec is 2 only memory that can never be a program is given out; Linux before 6.3 has no such.
    for flags in [libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL, libc::MFD_CLOEXEC] {
        // SAFETY: `text` is a C string, the flags a plain number.
        let file = unsafe { libc::memfd_create(text.as_ptr(), flags) };
        if file >= 0 {
            // SAFETY: the kernel just returned this descriptor, so nobody else owns it.
            return Ok(unsafe { File::from_raw_fd(file) });
        }
    }
    Err(LinuxError::last("memfd_create", name))
}

/// Whether processes of the same user may look at this one: not where its file gives it capabilities.
fn is_open_to_others() -> bool {
    // SAFETY: plain numbers.
    unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 }
}

/// Removes what killed makers left: files that nobody holds the lock of. Other users' cannot be opened.
fn remove_left(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_given_name));
    for path in named.map(|entry| entry.path()) {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path);
        if file.is_ok_and(|file| file.try_lock().is_ok()) {
            fs::remove_file(path).ok();
        }
    }
}

/// Whether `create` gives such names: `tierloom-PID-TIME`.
fn is_given_name(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    let all = |text: &str, is: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(is);
    parts.is_some_and(|(pid, time)| all(pid, u8::is_ascii_digit) && all(time, u8::is_ascii_hexdigit))
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
        if self.listed {
            fs::remove_file(&self.path).ok();
        }
        // SAFETY: the mapping was made by `mapped` with this size; nobody borrows `self` any more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), self.words * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn others_open_the_memory_while_its_maker_lives() {
        let shared = SharedFile::create(1024).unwrap();
        let path = shared.path().to_owned();
        shared.words()[1023].store(0x0102, Ordering::Relaxed);
        let tail = Command::new("tail").args(["-c", "8"]).arg(&path).output().unwrap().stdout;
        assert_eq!(tail, [2, 1, 0, 0, 0, 0, 0, 0]);
        drop(shared);
        assert!(!path.exists());
    }

    #[test]
    fn the_memory_has_no_name_in_a_folder() {
        let shared = SharedFile::create(8).unwrap();
        assert!(folders().iter().all(|folder| !folder.join(shared.name()).exists()));
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let named = maps.lines().filter_map(|line| line.find('/').and_then(|at| name_of(&line[at..])));
        assert!(named.into_iter().any(|name| name == shared.name()));
        assert!(is_mapped_by(&Root::default(), std::process::id(), shared.name()));
        assert!(!is_mapped_by(&Root::default(), std::process::id(), "tierloom-1-2"));
    }

    #[test]
    fn a_file_in_a_folder_goes_with_its_maker_or_with_the_next() {
        let folder = std::env::temp_dir().join(format!("shared-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let folders = [folder.clone()];
        let left = folder.join("tierloom-1-2f");
        fs::write(&left, "of one that was killed").unwrap();
        fs::write(folder.join("tierloom-report.html"), "somebody's").unwrap();
        let first = SharedFile::listed("tierloom-2-3", 8, &folders).unwrap();
        let second = SharedFile::listed("tierloom-3-4", 8, &folders).unwrap();
        assert!(!left.exists() && first.path().exists() && second.path().exists());
        drop((first, second));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "what is not ours stays");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_our_memory_is_ours() {
        assert_eq!(name_of("/memfd:tierloom-1-2 (deleted)"), Some("tierloom-1-2"));
        assert_eq!(name_of("/dev/shm/tierloom-1-2"), Some("tierloom-1-2"));
        for other in ["/home/me/tierloom-1-2", "/memfd:x (deleted)", "/dev/shm/tierloom-x-y", "//anon", "[heap]"] {
            assert_eq!(name_of(other), None, "{other}");
        }
    }
}
