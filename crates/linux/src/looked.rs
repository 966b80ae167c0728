//! A file that is looked at and never changed: it may be another user's, or lie on a file system that
//! cannot be written.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::LinuxError;
use crate::mapped::{is_device, lock, map, size};

/// An open file, locked against those who would change it.
///
/// A file is read, so that one which is cut short meanwhile is an answer and no signal. A DAX device can
/// only be mapped (`drivers/dax/device.c` has no `read`).
#[derive(Debug)]
pub struct LookedAt {
    file: File,
    bytes: u64,
    /// First byte of the mapping, of a device.
    mapped: Option<*const u8>,
}

// SAFETY: the mapping belongs to this value and is only read.
unsafe impl Send for LookedAt {}
// SAFETY: as above.
unsafe impl Sync for LookedAt {}

impl LookedAt {
    /// Opens a file or a device for reading.
    ///
    /// # Errors
    /// It cannot be opened, or a process has it for writing.
    pub fn open(path: &Path) -> Result<Self, LinuxError> {
        let subject = || path.display().to_string();
        let file = File::open(path).map_err(|error| LinuxError::new("open", subject(), error))?;
        let bytes = size(&file, path)?;
        lock(&file, path, libc::LOCK_SH)?;
        let map = || map_all(&file, bytes).map_err(|error| LinuxError::new("mmap", subject(), error));
        let mapped = if is_device(path) { Some(map()?) } else { None };
        Ok(Self { file, bytes, mapped })
    }

    /// Bytes that it had when it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads `to.len()` bytes at `offset`; zeroes where there are none, or none any more.
    pub fn read(&self, offset: u64, to: &mut [u8]) {
        to.fill(0);
        let inside = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX).min(to.len());
        match self.mapped {
            // SAFETY: `inside` bytes at `offset` lie in the mapping, which is as long as this value.
            Some(start) if inside > 0 => unsafe {
                std::ptr::copy(start.add(usize::try_from(offset).unwrap_or(0)), to.as_mut_ptr(), inside);
            },
            Some(_) => {}
            None => read_at(&self.file, offset, &mut to[..inside]),
        }
    }
}

impl Drop for LookedAt {
    fn drop(&mut self) {
        if let Some(start) = self.mapped {
            // SAFETY: `open` made the mapping with this size, and nobody borrows `self` any more.
            unsafe { libc::munmap(start.cast_mut().cast(), usize::try_from(self.bytes).unwrap_or(0)) };
        }
    }
}

fn map_all(file: &File, bytes: u64) -> std::io::Result<*const u8> {
    let length = usize::try_from(bytes).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
    map(file.as_raw_fd(), length, libc::PROT_READ, libc::MAP_SHARED).map(<*mut u8>::cast_const)
}

/// What cannot be read stays zero: to a reader of checksums that is damage.
fn read_at(file: &File, offset: u64, mut to: &mut [u8]) {
    let mut at = offset;
    while !to.is_empty() {
        match file.read_at(to, at) {
            Ok(0) => return,
            Ok(read) => {
                at += read as u64;
                to = &mut to[read..];
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapped::MappedFile;

    #[test]
    fn a_file_that_is_cut_short_reads_as_zeroes() {
        let path = std::env::temp_dir().join(format!("tierloom-looked-{}", std::process::id()));
        std::fs::write(&path, vec![7; 8192]).unwrap();
        let looked = LookedAt::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        let mut read = [1; 200];
        looked.read(0, &mut read);
        assert!(read[..100].iter().all(|byte| *byte == 7) && read[100..].iter().all(|byte| *byte == 0));
        looked.read(1 << 40, &mut read);
        assert_eq!(read, [0; 200]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn who_looks_keeps_writers_out_and_not_others_who_look() {
        let path = std::env::temp_dir().join(format!("tierloom-looked-by-two-{}", std::process::id()));
        let written = MappedFile::create(&path, 8192).unwrap();
        assert_eq!(LookedAt::open(&path).unwrap_err().call, "flock");
        drop(written);
        let (_one, _two) = (LookedAt::open(&path).unwrap(), LookedAt::open(&path).unwrap());
        assert_eq!(MappedFile::open(&path).unwrap_err().call, "flock");
        std::fs::remove_file(&path).unwrap();
    }
}
