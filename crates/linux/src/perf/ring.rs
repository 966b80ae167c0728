//! The ring of one event: mapped memory that the kernel fills and we empty.
//!
//! Layout and order of accesses: `include/uapi/linux/perf_event.h`, "struct `perf_event_mmap_page`".

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::LinuxError;
use crate::pages::BASE_PAGE_BYTES;

/// The kernel wakes us when this much is waiting, bytes.
pub(super) const WATERMARK: u32 = 256 << 10;
/// The same for a ring of the smallest size.
pub(super) const WATERMARK_OF_SMALLEST: u32 = 16 << 10;
/// Largest ring that is asked for, and smallest that is accepted: an unprivileged user may lock
/// `perf_event_mlock_kb` (516 KiB) per CPU.
pub(super) const LARGEST: usize = 1 << 20;
pub(super) const SMALLEST: usize = 64 << 10;
/// `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// Words 128 and 129 of the first page: `data_head`, `data_tail`.
const HEAD_WORD: usize = 128;
const TAIL_WORD: usize = 129;

/// One mapped ring.
#[derive(Debug)]
pub struct Ring {
    event: OwnedFd,
    start: *mut AtomicU64,
    page: usize,
    bytes: usize,
    joined: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone until `drop`.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) fn map(event: OwnedFd, cpu: u32, most: usize) -> Result<Self, LinuxError> {
        // SAFETY: sysconf reads a constant.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(BASE_PAGE_BYTES);
        let mut bytes = most;
        loop {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let (kind, file) = (libc::MAP_SHARED, event.as_raw_fd());
            // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), page + bytes, access, kind, file, 0) };
            if start != libc::MAP_FAILED {
                return Ok(Self { event, start: start.cast(), page, bytes, joined: Vec::new() });
            }
            let error = LinuxError::last("mmap", format!("samples of CPU {cpu}"));
            if bytes <= SMALLEST {
                return Err(error);
            }
            bytes /= 2;
        }
    }

    /// Descriptor that becomes readable when the ring fills up.
    pub fn descriptor(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Lets another event of the same CPU write here, too.
    pub(super) fn take_from(&self, event: &OwnedFd) -> Result<(), LinuxError> {
        // SAFETY: the request takes no argument but a descriptor.
        if unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, self.descriptor()) } != 0 {
            return Err(LinuxError::last("ioctl", "a second event in one ring"));
        }
        Ok(())
    }

    /// Hands over everything that the kernel wrote, then frees it.
    pub(super) fn drain(&mut self, each: impl FnOnce(&[u8])) {
        let head = self.word(HEAD_WORD).load(Ordering::Acquire);
        let tail = self.word(TAIL_WORD).load(Ordering::Relaxed);
        // More than a ring's worth cannot be waiting: the kernel never overwrites.
        let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.bytes);
        // `bytes` is a power of two, so only the low bits count.
        #[allow(clippy::cast_possible_truncation)]
        let from = tail as usize & (self.bytes - 1);
        let first = length.min(self.bytes - from);
        // SAFETY: `from + first <= bytes` and `length - first <= from`, both inside the data area behind
        // the first page; the kernel writes only between `head` and `tail + bytes`.
        let (front, back) = unsafe {
            let data = self.start.cast::<u8>().add(self.page);
            (std::slice::from_raw_parts(data.add(from), first), std::slice::from_raw_parts(data, length - first))
        };
        self.joined.clear();
        self.joined.extend_from_slice(front);
        self.joined.extend_from_slice(back);
        self.word(TAIL_WORD).store(head, Ordering::Release);
        each(&self.joined);
    }

    fn word(&self, position: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping holds the kernel's struct, 8-aligned, for as long as
        // `self` lives; both sides access these two words as single words.
        unsafe { &*self.start.add(position) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size and nobody borrows it any more.
        unsafe { libc::munmap(self.start.cast(), self.page + self.bytes) };
    }
}
