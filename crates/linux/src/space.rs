//! Room on a file system.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Bytes that this user may still write where the file is; `None` where the file system does not say.
pub fn free_bytes(file: &File) -> Option<u64> {
    // SAFETY: plain numbers, for which zero is valid.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, the pointer is to a value of the type that the call fills.
    let failed = unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut found) } != 0;
    // A file system without blocks (a device, some networks') has no figure to go by.
    (!failed && found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_room_and_proc_does_not_say() {
        let temporary = File::open(std::env::temp_dir()).unwrap();
        assert!(free_bytes(&temporary).unwrap() > 0);
        assert_eq!(free_bytes(&File::open("/proc/self/stat").unwrap()), None);
    }
}
