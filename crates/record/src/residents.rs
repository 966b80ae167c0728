//! Which memory of the program has pages, looked at from outside at some moments.
//!
//! An allocation is addresses; what it takes of the machine are the pages that were touched. The kernel tells them
//! (`/proc/PID/pagemap`, `PAGEMAP_SCAN`), and nothing of it runs in the program.

use tierloom_linux::maps::{MappedRange, mapped_ranges};
use tierloom_linux::pagemap::PageMap;
use tierloom_linux::root::Root;
use tierloom_model::units::PAGE_BYTES;
use tierloom_recording::{Resident, Stretch, is_ours};

use crate::alive::Alive;
use crate::pace::Pace;

/// The first look comes so soon, and each later one after twice the time, up to the longest, ns. Assumed.
const FIRST_NS: u64 = 10_000_000;
const LONGEST_NS: u64 = 500_000_000;
/// Stretches of a mapping beyond which they are told as so many equal parts.
const MOST_STRETCHES: u64 = 512;
/// Processes that are looked at.
const MOST_PROCESSES: usize = 64;

/// When to look.
#[derive(Debug, Default)]
pub(super) struct Residents {
    pace: Pace,
    pause_ns: u64,
}

impl Residents {
    /// Looks, if it is time.
    pub(super) fn look(&mut self, root: &Root, alive: &Alive, found: &mut Vec<Resident>) {
        let Some(begun) = self.pace.begin() else { return };
        if self.pause_ns > 0 {
            found.extend(alive.some(MOST_PROCESSES).filter_map(|pid| resident(root, pid, begun.time_ns)));
        }
        // The program has just begun at first.
        self.pause_ns = (2 * self.pause_ns).clamp(FIRST_NS, LONGEST_NS);
        self.pace.end(&begun, self.pause_ns);
    }
}

/// What a process has; `None` where the kernel does not tell, or it has ended.
fn resident(root: &Root, pid: u32, time_ns: u64) -> Option<Resident> {
    let pages = PageMap::open(root, pid)?;
    let maps = mapped_ranges(root, pid);
    let mut stretches = Vec::new();
    for range in maps.iter().filter(|range| is_data(range)) {
        stretches.extend(told(range, &pages.present(range.start..range.start + range.bytes)?));
    }
    (!stretches.is_empty()).then_some(Resident { time_ns, pid, stretches })
}

/// Memory of the program's own data.
fn is_data(range: &MappedRange) -> bool {
    const COPIES: &str = "[anon:tierloom]";
    let of_kernel = range.path.starts_with("[v");
    !range.executable && !of_kernel && range.path != COPIES && !is_ours(&range.path)
}

/// The pages of a mapping, coarsely where they are many pieces.
fn told(mapping: &MappedRange, present: &[std::ops::Range<u64>]) -> Vec<Stretch> {
    if present.len() as u64 <= MOST_STRETCHES {
        let whole = |range: &std::ops::Range<u64>| {
            let bytes = range.end - range.start;
            Stretch { start: range.start, bytes, present_bytes: bytes }
        };
        return present.iter().map(whole).collect();
    }
    let part_bytes = mapping.bytes.div_ceil(MOST_STRETCHES).next_multiple_of(PAGE_BYTES);
    let mut parts: Vec<Stretch> = Vec::new();
    for range in present {
        let mut start = range.start;
        while start < range.end {
            let part = mapping.start + (start - mapping.start) / part_bytes * part_bytes;
            let end = (part + part_bytes).min(range.end);
            match parts.last_mut() {
                Some(last) if last.start == part => last.present_bytes += end - start,
                _ => {
                    let bytes = part_bytes.min(mapping.start + mapping.bytes - part);
                    parts.push(Stretch { start: part, bytes, present_bytes: end - start });
                }
            }
            start = end;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However coarsely it is told, nothing of what is present is lost, and no part has more than it can.
        #[test]
        fn nothing_is_lost(gaps in prop::collection::vec((1_u64..5, 1_u64..5), 1..2000)) {
            let mut start = 0x10_0000;
            let mut present = Vec::new();
            for (gap, pages) in gaps {
                start += gap * PAGE_BYTES;
                present.push(start..start + pages * PAGE_BYTES);
                start += pages * PAGE_BYTES;
            }
            let mapping = MappedRange { start: 0x10_0000, bytes: start - 0x10_0000, ..MappedRange::default() };
            let parts = told(&mapping, &present);
            let bytes: u64 = present.iter().map(|range| range.end - range.start).sum();
            prop_assert_eq!(parts.iter().map(|part| part.present_bytes).sum::<u64>(), bytes);
            prop_assert!(parts.iter().all(|part| part.present_bytes <= part.bytes));
            prop_assert!(parts.windows(2).all(|pair| pair[0].start + pair[0].bytes <= pair[1].start));
            prop_assert!(parts.len() as u64 <= MOST_STRETCHES);
        }
    }

    #[test]
    fn this_process_has_what_it_wrote() {
        let block = vec![1_u8; 3 << 20];
        let start = block.as_ptr() as u64;
        let Some(resident) = resident(&Root::default(), std::process::id(), 5) else { return };
        let inside = |stretch: &&Stretch| stretch.start < start + (3 << 20) && stretch.start + stretch.bytes > start;
        let present: u64 = resident.stretches.iter().filter(inside).map(|stretch| stretch.present_bytes).sum();
        assert!(present >= 3 << 20, "{present}");
    }
}
