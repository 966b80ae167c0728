//! `/proc/PID/pagemap`: which pages a process has, and whose they are (`Documentation/admin-guide/mm/pagemap.rst` of the
//! kernel).

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::root::Root;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// It is a page of a file, or of memory that is shared.
const OF_FILE: u64 = 1 << 61;
const ENTRY_BYTES: usize = 8;

/// `PAGEMAP_SCAN` of `include/uapi/linux/fs.h` (Linux 6.7 on).
mod scan {
    pub(super) const REQUEST: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
    pub(super) const PRESENT: u64 = 1 << 3;
    pub(super) const SWAPPED: u64 = 1 << 4;
    /// The page of zeroes that all memory is which was only read.
    pub(super) const ZERO: u64 = 1 << 5;

    /// `struct pm_scan_arg`.
    #[repr(C)]
    pub(super) struct Argument {
        pub(super) size: u64,
        pub(super) flags: u64,
        pub(super) start: u64,
        pub(super) end: u64,
        pub(super) walk_end: u64,
        pub(super) regions: u64,
        pub(super) most_regions: u64,
        pub(super) most_pages: u64,
        pub(super) inverted: u64,
        pub(super) all_of: u64,
        pub(super) any_of: u64,
        pub(super) told: u64,
    }

    /// `struct page_region`.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    pub(super) struct Region {
        pub(super) start: u64,
        pub(super) end: u64,
        pub(super) categories: u64,
    }
}

/// The pages of a process, as they are when it is asked.
#[derive(Debug)]
pub struct PageMap(File);

impl PageMap {
    /// `None` where the process has ended or is not ours.
    pub fn open(root: &Root, pid: u32) -> Option<Self> {
        File::open(root.path(&format!("/proc/{pid}/pagemap"))).ok().map(Self)
    }

    /// Addresses within a range that have pages, in memory or swapped out, ascending; memory that was only read has none.
    /// `None` where the kernel does not say. It holds the process's mappings for as long as it walks a part, so a call of
    /// `mmap` may wait for some milliseconds.
    pub fn present(&self, addresses: Range<u64>) -> Option<Vec<Range<u64>>> {
        /// Walked at once: a millisecond or two of small pages.
        const PART_BYTES: u64 = 1 << 30;
        const REGIONS: usize = 512;
        let mut regions = [scan::Region::default(); REGIONS];
        let mut found: Vec<Range<u64>> = Vec::new();
        let mut start = addresses.start;
        // Most of a huge mapping has no page tables, and the kernel skips what has none.
        let mut part_bytes = PART_BYTES;
        while start < addresses.end {
            let end = addresses.end.min(start.saturating_add(part_bytes));
            let mut argument = scan::Argument {
                size: size_of::<scan::Argument>() as u64,
                flags: 0,
                start,
                end,
                walk_end: 0,
                regions: regions.as_mut_ptr() as u64,
                most_regions: REGIONS as u64,
                most_pages: 0,
                inverted: scan::ZERO,
                all_of: scan::ZERO,
                any_of: scan::PRESENT | scan::SWAPPED,
                told: scan::PRESENT,
            };
            // SAFETY: the kernel writes at most so many regions, and the argument, which it knows by its size.
            let filled = unsafe { libc::ioctl(self.0.as_raw_fd(), scan::REQUEST, &raw mut argument) };
            let filled = usize::try_from(filled).ok()?;
            for region in &regions[..filled] {
                match found.last_mut() {
                    Some(last) if last.end == region.start => last.end = region.end,
                    _ => found.push(region.start..region.end),
                }
            }
            part_bytes = if filled == 0 { part_bytes.saturating_mul(2) } else { PART_BYTES };
            start = if argument.walk_end > start { argument.walk_end } else { return None };
        }
        Some(found)
    }

    /// Whether a page, by number, is in memory; `None` where the kernel does not say.
    pub fn is_present(&self, page: u64) -> Option<bool> {
        let mut entry = [0; ENTRY_BYTES];
        self.0.read_exact_at(&mut entry, page * ENTRY_BYTES as u64).ok()?;
        Some(u64::from_le_bytes(entry) & PRESENT != 0)
    }

    /// For each of these pages, by number, whether it is the process's own and no longer the file's that is mapped
    /// there: somebody wrote to it. `None` where the kernel does not say.
    pub fn own(&self, pages: Range<u64>) -> Option<Vec<bool>> {
        let count = usize::try_from(pages.end.checked_sub(pages.start)?).ok()?;
        let mut bytes = vec![0; count * ENTRY_BYTES];
        self.0.read_exact_at(&mut bytes, pages.start * ENTRY_BYTES as u64).ok()?;
        let is_own = |entry: u64| entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0;
        let entry = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        Some(bytes.chunks(ENTRY_BYTES).map(|bytes| is_own(entry(bytes))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::BASE_PAGE_BYTES;

    #[test]
    fn code_is_the_files_and_a_stack_is_our_own() {
        let here = PageMap::open(&Root::default(), std::process::id()).unwrap();
        let page = |address: usize| (address / BASE_PAGE_BYTES) as u64;
        let code = page(PageMap::open as *const () as usize);
        let local = [0_u8; 1];
        let stack = page(local.as_ptr() as usize);
        assert_eq!(here.own(code..code + 1), Some(vec![false]));
        assert_eq!(here.own(stack..stack + 1), Some(vec![true]));
        assert_eq!(here.own(0..2), Some(vec![false, false]));
        assert!(PageMap::open(&Root::default(), u32::MAX).is_none());
    }

    #[test]
    fn what_was_written_is_present() {
        const PAGES: usize = 3000;
        let bytes = PAGES * BASE_PAGE_BYTES;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: fresh memory, written within its bounds, and given back at the end.
        unsafe {
            let memory =
                libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE);
            let memory = memory.cast::<u8>();
            for page in (0..PAGES).step_by(2) {
                memory.add(page * BASE_PAGE_BYTES).write_volatile(1);
            }
            memory.add(BASE_PAGE_BYTES).read_volatile();
            let start = memory as u64;
            let Some(found) =
                PageMap::open(&Root::default(), std::process::id()).unwrap().present(start..start + bytes as u64)
            else {
                return; // A kernel before 6.7.
            };
            let every_other = (0..PAGES).step_by(2).map(|page| start + (page * BASE_PAGE_BYTES) as u64);
            let expected: Vec<_> = every_other.map(|page| page..page + BASE_PAGE_BYTES as u64).collect();
            assert_eq!(found, expected);
            libc::munmap(memory.cast(), bytes);
        }
    }
}
