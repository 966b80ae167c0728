//! The code of a process, read from its memory as it is wanted, for as long as nobody changes it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use tierloom_bursts::{LONGEST_INSTRUCTION, Text};
use tierloom_linux::maps::MappedRange;
use tierloom_linux::pagemap::PageMap;
use tierloom_linux::ptrace::{read_bytes, read_words};
use tierloom_linux::root::Root;
use tierloom_model::units::PAGE_BYTES;

/// Pages that are looked at in one go, though some between them are of no interest: a call costs as much as twenty.
const GAP: u64 = 16;

/// Code of files that a process has mapped.
#[derive(Debug)]
pub(super) struct ProcessText {
    pid: u32,
    /// Mappings that it may be copied from.
    code: Vec<MappedRange>,
    owners: PageMap,
    /// What was read, by number of the page; nothing of a page that is not the file's any more.
    pages: RefCell<BTreeMap<u64, Vec<u8>>>,
}

impl ProcessText {
    /// Of these mappings; `None` where the kernel does not say whose pages are.
    pub(super) fn new(root: &Root, pid: u32, maps: &[MappedRange]) -> Option<Self> {
        let owners = PageMap::open(root, pid)?;
        Some(Self { pid, code: code_of(maps), owners, pages: RefCell::default() })
    }

    /// Whether the code that was read is what the process runs: mapped as it was, and no page patched since.
    pub(super) fn is_current(&self, maps: &[MappedRange]) -> bool {
        let pages = self.pages.borrow();
        let read: Vec<u64> = pages.iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(page, _)| *page).collect();
        let is_unchanged = |run: Range<u64>| {
            let own = self.owners.own(run.clone());
            own.is_some_and(|own| {
                !run.zip(own).any(|(page, own)| own && pages.get(&page).is_some_and(|page| !page.is_empty()))
            })
        };
        self.code == code_of(maps) && runs(&read).into_iter().all(is_unchanged)
    }

    /// Whether code at an address may be copied.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.range_of(address).is_some()
    }

    /// First addresses of the code of each file.
    pub(super) fn starts(&self) -> impl Iterator<Item = u64> {
        self.code.iter().map(|range| range.start)
    }

    /// The restartable sequence whose descriptor is at an address (`struct rseq_cs` of the kernel's `rseq.h`).
    pub(super) fn sequence_at(&self, address: u64) -> Option<Range<u64>> {
        const ALIGNMENT: u64 = 32;
        const LONGEST: u64 = 1 << 20;
        /// All flags that there have been.
        const FLAGS: u64 = 7;
        if address == 0 || !address.is_multiple_of(ALIGNMENT) {
            return None;
        }
        let words = read_words(self.pid, address, 4)?;
        let [version_and_flags, start, bytes, abort] = words.try_into().ok()?;
        let is_one = version_and_flags & !(FLAGS << 32) == 0 && (1..=LONGEST).contains(&bytes);
        (is_one && self.contains(start) && self.contains(abort)).then(|| start..start + bytes)
    }

    fn range_of(&self, address: u64) -> Option<Range<u64>> {
        let addresses = |range: &MappedRange| range.start..range.start + range.bytes;
        self.code.iter().map(addresses).find(|range| range.contains(&address))
    }

    /// Copies what is known from an address on, of a page that was read before; nothing where it cannot be read, or is
    /// not the file's.
    fn copy_from(&self, address: u64, into: &mut [u8]) -> usize {
        let mut pages = self.pages.borrow_mut();
        let page = pages.entry(address / PAGE_BYTES).or_insert_with(|| self.read(address / PAGE_BYTES));
        let from = usize::try_from(address % PAGE_BYTES).unwrap_or(usize::MAX);
        let rest = page.get(from..).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        length
    }

    /// Asked behind reading, whose page it is: it was the file's then, too.
    fn read(&self, page: u64) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let length = read_bytes(self.pid, page * PAGE_BYTES, &mut bytes);
        let is_files = self.owners.own(page..page + 1).is_some_and(|own| own == [false]);
        bytes.truncate(if is_files { length } else { 0 });
        bytes
    }
}

/// Runs of pages with small gaps.
fn runs(pages: &[u64]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if *page < run.end + GAP => run.end = page + 1,
            _ => runs.push(*page..page + 1),
        }
    }
    runs
}

/// Code of files, which nobody writes: what a program makes while it runs has no file, or one that lives in memory, or
/// has it mapped once more to be written. The kernel's own page of code is no business of ours.
fn code_of(maps: &[MappedRange]) -> Vec<MappedRange> {
    let is_written = |path: &str| maps.iter().any(|range| range.shared && range.writable && range.path == path);
    let is_code = |range: &&MappedRange| {
        let of_file = range.path.starts_with('/') && !range.path.starts_with("/memfd:");
        range.executable && !range.writable && !range.shared && of_file && !is_written(&range.path)
    };
    maps.iter().filter(is_code).cloned().collect()
}

impl Text for ProcessText {
    fn fetch(&self, address: u64, into: &mut [u8; LONGEST_INSTRUCTION]) -> usize {
        let Some(range) = self.range_of(address) else { return 0 };
        let wanted =
            usize::try_from(range.end - address).map_or(LONGEST_INSTRUCTION, |left| left.min(LONGEST_INSTRUCTION));
        let length = self.copy_from(address, &mut into[..wanted]);
        let in_page = usize::try_from(PAGE_BYTES - address % PAGE_BYTES).unwrap_or(0);
        // It may go on in the next page.
        if length == in_page && length < wanted {
            return length + self.copy_from(address + PAGE_BYTES - address % PAGE_BYTES, &mut into[length..wanted]);
        }
        length
    }

    fn has_sequence(&self, address: u64) -> bool {
        self.sequence_at(address).is_some()
    }

    fn word(&self, address: u64) -> Option<u64> {
        let words = read_words(self.pid, address, 1)?;
        words.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(path: &str, executable: bool, writable: bool, shared: bool) -> MappedRange {
        MappedRange {
            start: 0x1000,
            bytes: 0x1000,
            path: path.to_owned(),
            executable,
            writable,
            shared,
            ..MappedRange::default()
        }
    }

    #[test]
    fn code_is_what_has_a_file_that_nobody_writes() {
        let code = |maps: &[MappedRange]| code_of(maps).len();
        assert_eq!(code(&[range("/lib", true, false, false)]), 1);
        for other in [
            range("", true, false, false),
            range("[vdso]", true, false, false),
            range("/memfd:jit (deleted)", true, false, false),
            range("/lib", true, true, false),
            range("/lib", true, false, true),
            range("/lib", false, false, false),
        ] {
            assert_eq!(code(&[other]), 0);
        }
        assert_eq!(code(&[range("/jit", true, false, false), range("/jit", false, true, true)]), 0);
        assert_eq!(code(&[range("/lib", true, false, false), range("/lib", false, true, false)]), 1);
    }

    #[test]
    fn pages_near_each_other_are_looked_at_together() {
        assert_eq!(runs(&[1, 2, 5, 100, 101]), [1..6, 100..102]);
        assert_eq!(runs(&[]), []);
    }
}
