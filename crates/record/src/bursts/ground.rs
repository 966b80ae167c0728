//! Where in a process copies may lie: close to the code, and in nobody's way.

use std::ops::Range;

use tierloom_bursts::{AREA_BYTES, TABLE_BELOW};
use tierloom_linux::maps::MappedRange;

/// Room that is left to whatever lies next: memory grows at its ends. Assumed.
const SPARED_BYTES: u64 = 16 << 20;
/// Distance up to which an area is of use, bytes: displacements reach 2 GiB.
const REACH: u64 = (2 << 30) - (128 << 20);
/// The first address that the kernel gives to anybody (`vm.mmap_min_addr` is less).
const LOWEST: u64 = 1 << 20;
/// One past the last one (47 bits, `Documentation/arch/x86/x86_64/mm.rst` of the kernel).
const HIGHEST: u64 = 1 << 47;

/// An address for an area near `code`, given all mappings, ascending.
pub(super) fn near(code: u64, maps: &[MappedRange]) -> Option<u64> {
    let gaps = gaps(maps);
    // Below the code nothing grows up to it; above a program that is not moved its heap does.
    let below = gaps.iter().rev().filter(|gap| gap.end <= code).find_map(|gap| {
        let start = gap.end.checked_sub(AREA_BYTES + SPARED_BYTES)?;
        (start >= gap.start + SPARED_BYTES).then_some(start)
    });
    let above = gaps.iter().filter(|gap| gap.start > code).rev().find_map(|gap| {
        let end = gap.end.min(code + REACH).checked_sub(SPARED_BYTES)?;
        let start = end.checked_sub(AREA_BYTES)?;
        (start >= gap.start + SPARED_BYTES).then_some(start)
    });
    below.filter(|start| code - start < REACH).or(above).map(|start| start & !0xffff)
}

/// An address for so many bytes, as low as tables and a log must be.
pub(super) fn low(bytes: u64, maps: &[MappedRange]) -> Option<u64> {
    // From above: what is below is the program's, where it is not moved.
    gaps(maps).into_iter().rev().find_map(|gap| {
        let start = gap.end.min(TABLE_BELOW).checked_sub(bytes + SPARED_BYTES)?;
        (start >= gap.start).then_some(start & !0xffff)
    })
}

/// What is free between mappings.
fn gaps(maps: &[MappedRange]) -> Vec<Range<u64>> {
    let mut free = LOWEST;
    let mut gaps = Vec::new();
    for range in maps {
        if range.start > free {
            gaps.push(free..range.start);
        }
        free = free.max(range.start.saturating_add(range.bytes));
    }
    if free < HIGHEST {
        gaps.push(free..HIGHEST);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(ranges: &[(u64, u64)]) -> Vec<MappedRange> {
        let range = |&(start, end): &(u64, u64)| MappedRange { start, bytes: end - start, ..MappedRange::default() };
        ranges.iter().map(range).collect()
    }

    #[test]
    fn an_area_lies_below_code_that_has_room_there() {
        let maps = maps(&[(0x5555_0000_0000, 0x5555_0010_0000), (0x7fff_0000_0000, 0x7fff_0010_0000)]);
        let area = near(0x7fff_0000_0000, &maps).unwrap();
        assert!(area + AREA_BYTES < 0x7fff_0000_0000 && 0x7fff_0000_0000 - area < REACH);
    }

    #[test]
    fn a_program_at_a_fixed_address_has_it_far_above_its_heap() {
        let maps = maps(&[(0x40_0000, 0x50_0000), (0x60_0000, 0x100_0000), (0x7fff_0000_0000, 0x7fff_0010_0000)]);
        let area = near(0x40_0000, &maps).unwrap();
        assert!(area > 1 << 30 && area + AREA_BYTES < 0x40_0000 + REACH);
    }

    #[test]
    fn where_all_is_taken_there_is_none() {
        assert_eq!(near(1 << 46, &maps(&[(0, HIGHEST)])), None);
    }
}
