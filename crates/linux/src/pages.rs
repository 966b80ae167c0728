//! Memory for measurements: anonymous pages, huge where the kernel gives them, bound to one node.
//!
//! The pages are there when [`Pages::new`] returns: nothing faults while somebody measures.

use std::io;
use std::ptr::NonNull;

use tierloom_model::units::PAGE_BYTES;

use crate::error::LinuxError;
use crate::root::Root;

/// Size of a base page, the smallest of the architectures that we run on.
#[expect(clippy::cast_possible_truncation, reason = "4096 fits")]
pub const BASE_PAGE_BYTES: usize = PAGE_BYTES as usize;
/// Size of a huge page of x86-64 and of 64-bit Arm with 4 KiB pages; regions start at a multiple.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// `mbind` binds to a mask of this many nodes; no kernel is built for more.
const MOST_NODES: usize = 1024;

/// A populated region, zero at first, aligned to [`HUGE_PAGE_BYTES`]; unmapped when dropped.
#[derive(Debug)]
pub struct Pages {
    mapping: NonNull<libc::c_void>,
    mapped_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; access goes through `&self` and `&mut self`.
unsafe impl Send for Pages {}
// SAFETY: shared references only read.
unsafe impl Sync for Pages {}

impl Pages {
    /// At least `bytes` (rounded up to whole huge pages) on memory node `node`, or wherever the
    /// calling thread's policy puts them.
    ///
    /// The node must have the memory free: a bound region that does not fit makes the kernel reclaim
    /// and, at last, end a process.
    ///
    /// # Errors
    /// No address space, no such node, or no memory.
    pub fn new(bytes: usize, node: Option<u32>) -> Result<Self, LinuxError> {
        Self::with(bytes, node, true)
    }

    /// The same in whatever pages a program gets that asks for nothing.
    ///
    /// # Errors
    /// As [`Pages::new`].
    pub fn ordinary(bytes: usize, node: Option<u32>) -> Result<Self, LinuxError> {
        Self::with(bytes, node, false)
    }

    fn with(bytes: usize, node: Option<u32>, ask_for_huge: bool) -> Result<Self, LinuxError> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
        let mapped_bytes = bytes + HUGE_PAGE_BYTES;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let mapping = unsafe { libc::mmap(std::ptr::null_mut(), mapped_bytes, access, kind, -1, 0) };
        let subject = || format!("{bytes} bytes");
        let Some(mapping) = NonNull::new(mapping).filter(|mapping| mapping.as_ptr() != libc::MAP_FAILED) else {
            return Err(LinuxError::last("mmap", subject()));
        };
        let offset = mapping.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: the mapping is longer than the region by one huge page, and `offset` is less.
        let start = unsafe { mapping.cast::<u8>().add(offset) };
        let pages = Self { mapping, mapped_bytes, start, bytes };
        if ask_for_huge {
            // SAFETY: the range lies in the mapping above. That huge pages are refused is no error.
            unsafe { libc::madvise(pages.start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        if let Some(node) = node {
            pages.bind(node)?;
        }
        pages.populate()?;
        Ok(pages)
    }

    fn bind(&self, node: u32) -> Result<(), LinuxError> {
        const WORD: usize = usize::BITS as usize;
        let mut mask = [0_usize; MOST_NODES / WORD];
        let index = node as usize;
        let Some(word) = mask.get_mut(index / WORD) else {
            return Err(LinuxError::new("mbind", format!("node {node}"), io::ErrorKind::InvalidInput.into()));
        };
        *word |= 1 << (index % WORD);
        // SAFETY: the range lies in our mapping; the mask has MOST_NODES bits, and the kernel reads
        // one bit less than it is told (mm/mempolicy.c, get_nodes).
        let refused = unsafe {
            let (start, mode) = (self.start.as_ptr(), libc::MPOL_BIND);
            libc::syscall(libc::SYS_mbind, start, self.bytes, mode, mask.as_ptr(), MOST_NODES + 1, 0)
        };
        if refused == 0 {
            return Ok(());
        }
        let error = LinuxError::last("mbind", format!("node {node}"));
        // A kernel without NUMA has node 0 only and puts everything there.
        if error.errno() == Some(libc::ENOSYS) && node == 0 { Ok(()) } else { Err(error) }
    }

    fn populate(&self) -> Result<(), LinuxError> {
        // SAFETY: the range lies in our mapping; the call only faults pages in.
        if unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        let error = LinuxError::last("madvise(MADV_POPULATE_WRITE)", format!("{} bytes", self.bytes));
        if error.errno() != Some(libc::EINVAL) {
            return Err(error);
        }
        // Before Linux 5.14: touch every page.
        for offset in (0..self.bytes).step_by(BASE_PAGE_BYTES) {
            // SAFETY: the offset lies in our mapping, which nobody else uses yet.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
        Ok(())
    }

    /// The whole region.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` populated bytes from `start` belong to `self`, which is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Bytes of the region.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Share of the region that lies in huge pages, 0 to 1; `None` where the kernel does not say.
    pub fn huge_share(&self) -> Option<f64> {
        let address = self.start.as_ptr().addr();
        let huge = huge_bytes(&Root::default().text("/proc/self/smaps")?, address, address + self.bytes)?;
        Some((huge as f64 / self.bytes as f64).min(1.0))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size; nobody borrows `self` any more.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped_bytes) };
    }
}

/// Bytes in huge pages of the mappings that overlap `start..end` (`AnonHugePages` of smaps).
fn huge_bytes(smaps: &str, start: usize, end: usize) -> Option<u64> {
    let (mut inside, mut total, mut seen) = (false, 0, false);
    for line in smaps.lines() {
        if let Some((first, last)) = range(line) {
            inside = first < end && start < last;
        } else if let Some(value) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
            total += value.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024;
            seen = true;
        }
    }
    seen.then_some(total)
}

/// Address range at the head of a mapping's entry in smaps.
fn range(line: &str) -> Option<(usize, usize)> {
    let (first, last) = line.split_once(' ')?.0.split_once('-')?;
    Some((usize::from_str_radix(first, 16).ok()?, usize::from_str_radix(last, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_aligned_zero_and_writable() {
        let mut pages = Pages::new(HUGE_PAGE_BYTES + 1, Some(0)).unwrap();
        assert_eq!(pages.bytes(), 2 * HUGE_PAGE_BYTES);
        let slice = pages.as_mut_slice();
        assert_eq!(slice.as_ptr().addr() % HUGE_PAGE_BYTES, 0);
        assert!(slice.iter().all(|byte| *byte == 0));
        slice[2 * HUGE_PAGE_BYTES - 1] = 7;
    }

    #[test]
    fn a_node_that_no_kernel_has_is_refused() {
        assert_eq!(Pages::new(1, Some(1023)).unwrap_err().call, "mbind");
        assert_eq!(Pages::new(1, Some(5000)).unwrap_err().call, "mbind");
    }

    #[test]
    fn huge_pages_are_counted_in_the_right_mapping() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0 \nRss: 8 kB\nAnonHugePages:    2048 kB\n\
                     5000-6000 rw-p 00000000 00:00 0 [heap]\nAnonHugePages:    4096 kB\nVmFlags: rd wr\n";
        assert_eq!(huge_bytes(smaps, 0x2000, 0x3000), Some(2048 * 1024));
        assert_eq!(huge_bytes(smaps, 0x1000, 0x5001), Some(6144 * 1024));
        assert_eq!(huge_bytes(smaps, 0x3000, 0x5000), None);
    }
}
