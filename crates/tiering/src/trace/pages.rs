//! Addresses as pages of one dense region, in the order of first touch: a page table of two levels.
//!
//! Memory is taken for what a trace touches, in pieces of 2 MiB, wherever that lies.

use std::collections::BTreeMap;

use tierloom_model::units::PAGE_BYTES;

use super::access::Access;
use crate::error::{Result, TieringError};

/// Pages of a piece.
const PIECE_PAGES: u64 = 512;
/// Pieces of a leaf, 8 GiB of addresses.
const LEAF: usize = 4096;
/// A piece that was not touched.
const UNKNOWN: u32 = u32::MAX;
/// Most pages of a trace: 4 TiB of touched memory.
const MOST_PAGES: u64 = 1 << 30;
/// Leaves that are found at once: code, heap, libraries and stack of a program are far apart.
const RECENT: usize = 16;

/// First page of each piece.
type Leaf = Box<[u32; LEAF]>;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Pages {
    leaves: Vec<Leaf>,
    /// Leaf by what it stands for.
    roots: BTreeMap<u64, usize>,
    /// Some of those again, by the lowest bits.
    recent: [(u64, usize); RECENT],
    pieces: u64,
}

impl Pages {
    /// Pages so far.
    pub(super) fn count(&self) -> u64 {
        self.pieces * PIECE_PAGES
    }

    /// Replaces what is in `codes` by twice the page of each access, and 1 more where it writes.
    pub(super) fn codes_of(&mut self, block: &[Access], codes: &mut Vec<u32>) -> Result<()> {
        codes.clear();
        codes.extend(block.iter().map(|access| self.of(access.address) << 1 | u32::from(access.write)));
        if self.count() <= MOST_PAGES {
            return Ok(());
        }
        Err(TieringError::request("trace", "it touches more than 4 TiB", "simulate a workload by cohorts instead"))
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of a leaf and of a piece, and kinds of leaves")]
    fn of(&mut self, address: u64) -> u32 {
        let page = address / PAGE_BYTES;
        let (piece, within) = (page / PIECE_PAGES, (page % PIECE_PAGES) as u32);
        let (root, entry) = (piece / LEAF as u64, (piece % LEAF as u64) as usize);
        let (known, leaf) = self.recent[root as usize % RECENT];
        let leaf = self.leaves.get(leaf).filter(|_| known == root);
        let first = leaf.map_or(UNKNOWN, |leaf| leaf[entry]);
        within + if first == UNKNOWN { self.find(root, entry) } else { first }
    }

    /// First page of a piece that has not been met, or not lately; that of the first one where there are too many.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^30 pages")]
    fn find(&mut self, root: u64, entry: usize) -> u32 {
        let leaf = *self.roots.entry(root).or_insert(self.leaves.len());
        if leaf == self.leaves.len() {
            self.leaves.push(Box::new([UNKNOWN; LEAF]));
        }
        self.recent[root as usize % RECENT] = (root, leaf);
        let (next, first) = (self.pieces * PIECE_PAGES, &mut self.leaves[leaf][entry]);
        if *first == UNKNOWN {
            *first = if next < MOST_PAGES { next as u32 } else { 0 };
            self.pieces += 1;
        }
        *first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: u64, write: bool) -> Access {
        Access { address, write, ..Access::default() }
    }

    #[test]
    fn pages_are_dealt_piece_by_piece_in_the_order_of_first_touch() {
        let (mut pages, mut codes) = (Pages::default(), Vec::new());
        let (stack, heap) = (0x7ffe_7b3f_8000, 0x5555_5560_0000);
        let block = [at(stack, false), at(heap, true), at(stack + 0x1000, false), at(heap + 0xfff, false)];
        pages.codes_of(&block, &mut codes).unwrap();
        let first = ((stack >> 12) % 512) as u32;
        assert_eq!(codes, [first << 1, 512 << 1 | 1, (first + 1) << 1, 512 << 1]);
        assert_eq!(pages.count(), 1024);
    }

    /// Addresses whose leaves take each other's place among the recent ones.
    #[test]
    fn a_piece_keeps_its_pages_wherever_else_a_trace_goes() {
        let (mut pages, mut codes) = (Pages::default(), Vec::new());
        let block: Vec<Access> = (0..100u64).map(|nth| at((nth % 50) << 38, false)).collect();
        pages.codes_of(&block, &mut codes).unwrap();
        assert_eq!(codes[..50], codes[50..]);
        assert_eq!(pages.count(), 50 * 512);
    }
}
