//! A file that is mapped into memory and written through it: persistent memory where the file is one.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use crate::error::LinuxError;
use crate::pages::BASE_PAGE_BYTES;

/// A shared, writable mapping of a whole file, or of the start of a device, locked against others.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    file: File,
    start: *mut u8,
    bytes: usize,
    /// Stores reach the medium without a system call: the file is persistent memory (`MAP_SYNC`).
    direct: bool,
}

// SAFETY: the mapping belongs to this value; who shares it answers for the order of accesses.
unsafe impl Send for MappedFile {}
// SAFETY: as above; nothing here hands out references to the bytes.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Makes a new file of `bytes` zeroes and maps it; its blocks are taken now, so that a full disk
    /// is an error here and no signal later. Of a device (`/dev/dax0.0`) it maps the first `bytes`,
    /// whatever they hold, rounded up to what the device can map.
    ///
    /// # Errors
    /// The file exists, or there is no room.
    pub fn create(path: &Path, bytes: u64) -> Result<Self, LinuxError> {
        if is_device(path) {
            return Self::of_device(path, bytes);
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|error| LinuxError::new("open", path.display().to_string(), error))?;
        let made = allocate(&file, path, bytes).and_then(|()| Self::map(path, file, bytes));
        made.inspect_err(|_| drop(std::fs::remove_file(path)))
    }

    fn of_device(path: &Path, bytes: u64) -> Result<Self, LinuxError> {
        let subject = || path.display().to_string();
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| LinuxError::new("open", subject(), error))?;
        let wanted = bytes.next_multiple_of(device_number(path, "align")?.max(1));
        if wanted > device_number(path, "size")? {
            return Err(LinuxError::new("mmap", subject(), too_large()));
        }
        Self::map(path, file, wanted)
    }

    /// Maps an existing file or device.
    ///
    /// # Errors
    /// It cannot be opened or mapped, or another process has it.
    pub fn open(path: &Path) -> Result<Self, LinuxError> {
        let subject = || path.display().to_string();
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| LinuxError::new("open", subject(), error))?;
        let bytes = size(&file, path)?;
        Self::map(path, file, bytes)
    }

    fn map(path: &Path, file: File, bytes: u64) -> Result<Self, LinuxError> {
        lock(&file, path, libc::LOCK_EX)?;
        let subject = path.display().to_string();
        let length = usize::try_from(bytes).map_err(|_| LinuxError::new("mmap", &subject, too_large()))?;
        let sync = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (start, direct) = match map(file.as_raw_fd(), length, access, sync) {
            Ok(start) => (start, true),
            Err(_) => match map(file.as_raw_fd(), length, access, libc::MAP_SHARED) {
                Ok(start) => (start, is_device(path)),
                Err(error) => return Err(LinuxError::new("mmap", subject, error)),
            },
        };
        Ok(Self { path: path.to_owned(), file, start, bytes: length, direct })
    }

    /// Makes the file larger and maps all of it anew; the old mapping stays as long as `self`.
    ///
    /// # Errors
    /// There is no room, or the file is a device.
    pub fn grown(&self, bytes: u64) -> Result<Self, LinuxError> {
        let subject = || self.path.display().to_string();
        let file = self.file.try_clone().map_err(|error| LinuxError::new("dup", subject(), error))?;
        allocate(&file, &self.path, bytes)?;
        Self::map(&self.path, file, bytes)
    }

    /// Address of the first byte.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Mapped bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a store is durable once it has left the processor's caches.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether the file still has all that is mapped: touching what it lost is SIGBUS.
    pub fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| !meta.is_file() || meta.len() >= self.bytes as u64)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until a range is on the medium (`msync`), for files that are not persistent memory.
    ///
    /// # Errors
    /// The medium failed.
    pub fn sync(&self, offset: usize, bytes: usize) -> Result<(), LinuxError> {
        let first = offset / BASE_PAGE_BYTES * BASE_PAGE_BYTES;
        let length = (offset + bytes).min(self.bytes).saturating_sub(first);
        // SAFETY: the range lies in the mapping, as `first` and `length` were cut to it.
        let refused = unsafe { libc::msync(self.start.add(first).cast(), length, libc::MS_SYNC) };
        if refused == 0 { Ok(()) } else { Err(LinuxError::last("msync", self.path.display().to_string())) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size; nobody borrows `self` any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

fn too_large() -> std::io::Error {
    std::io::ErrorKind::FileTooLarge.into()
}

/// A new mapping of a file's first bytes.
pub(crate) fn map(file: RawFd, bytes: usize, access: i32, kind: i32) -> Result<*mut u8, std::io::Error> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, file, 0) };
    if start == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(start.cast()) }
}

/// One process at a time that writes (`LOCK_EX`), or any number that read (`LOCK_SH`); the lock goes with the
/// process, however that ends.
pub(crate) fn lock(file: &File, path: &Path, how: i32) -> Result<(), LinuxError> {
    // SAFETY: the descriptor is open.
    let refused = unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) };
    if refused == 0 { Ok(()) } else { Err(LinuxError::last("flock", path.display().to_string())) }
}

fn allocate(file: &File, path: &Path, bytes: u64) -> Result<(), LinuxError> {
    let subject = || path.display().to_string();
    let size = libc::off_t::try_from(bytes).map_err(|_| LinuxError::new("posix_fallocate", subject(), too_large()))?;
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size) } {
        // The new size has to survive before anything in it can.
        0 => file.sync_all().map_err(|error| LinuxError::new("fsync", subject(), error)),
        error => Err(LinuxError::new("posix_fallocate", subject(), std::io::Error::from_raw_os_error(error))),
    }
}

/// Bytes of a file, or of a DAX device.
///
/// # Errors
/// It cannot be opened.
pub fn bytes_of(path: &Path) -> Result<u64, LinuxError> {
    let file = File::open(path).map_err(|error| LinuxError::new("open", path.display().to_string(), error))?;
    size(&file, path)
}

/// Bytes of a file; a character device (`/dev/dax0.0`) says its own in `/sys`.
pub(crate) fn size(file: &File, path: &Path) -> Result<u64, LinuxError> {
    let meta = file.metadata().map_err(|error| LinuxError::new("fstat", path.display().to_string(), error))?;
    if meta.is_dir() {
        let is_folder = std::io::Error::from_raw_os_error(libc::EISDIR);
        return Err(LinuxError::new("open", path.display().to_string(), is_folder));
    }
    if meta.is_file() {
        return Ok(meta.len());
    }
    device_number(path, "size")
}

/// Whether a path is a character device: a DAX device, or one that cannot be mapped.
pub fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_char_device())
}

/// Whether stores to a file's mapping are durable without a system call, as [`MappedFile::is_direct`].
pub fn maps_directly(path: &Path) -> bool {
    if is_device(path) {
        return true;
    }
    let Ok(file) = File::open(path) else { return false };
    let sync = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
    let Ok(start) = map(file.as_raw_fd(), BASE_PAGE_BYTES, libc::PROT_READ, sync) else { return false };
    // SAFETY: the mapping was made just now with this size, and nobody has its address.
    unsafe { libc::munmap(start.cast(), BASE_PAGE_BYTES) };
    true
}

/// What the kernel says of a DAX device: its `size` or its `align`ment, bytes.
fn device_number(path: &Path, what: &'static str) -> Result<u64, LinuxError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let told = std::fs::read_to_string(format!("/sys/bus/dax/devices/{name}/{what}"));
    let told = told.map_err(|error| LinuxError::new("read size of", path.display().to_string(), error))?;
    told.trim().parse().map_err(|_| {
        LinuxError::new("read size of", path.display().to_string(), std::io::ErrorKind::InvalidData.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tierloom-mapped-{}-{name}", std::process::id()))
    }

    #[test]
    fn what_is_stored_is_in_the_file_and_one_process_has_it() {
        let path = scratch("file");
        let mapped = MappedFile::create(&path, 8192).unwrap();
        // SAFETY: offset 5000 lies in the mapping of 8192 bytes.
        unsafe { mapped.start().add(5000).write(7) };
        mapped.sync(5000, 1).unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[5000], 7);
        assert_eq!(MappedFile::open(&path).unwrap_err().call, "flock");
        assert_eq!(mapped.grown(16384).unwrap().bytes(), 16384);
        drop(mapped);
        assert_eq!(MappedFile::open(&path).unwrap().bytes(), 16384);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_there_stays() {
        let path = scratch("kept");
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(MappedFile::create(&path, 4096).unwrap_err().call, "open");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(&path).unwrap();
    }
}
