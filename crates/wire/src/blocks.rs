//! The blocks of a process that no rule of a plan means: a table in the process's own memory.
//!
//! Nobody is told of them, so they cost no record and wait for nobody. But a later plan may mean them, and then
//! whoever brings it reads the table, from outside. A fixed table without locks: an entry is claimed and emptied
//! by compare-and-swap of its address, and only whoever holds the claim touches the rest. Addresses are kept with
//! all bits turned: a leak checker that scans memory must not take our note of a block for the program's pointer
//! to it.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::scatter::scatter;

/// Entries of a table: blocks beyond are told of.
const MAX_BLOCKS: usize = 1 << 16;
/// Words of a table.
pub const BLOCKS_WORDS: usize = MAX_BLOCKS * ENTRY_WORDS;

const ENTRY_WORDS: usize = 3;
/// How far an entry lies at most from where it belongs.
const PROBES: usize = 64;
const FREE: u64 = 0;
const CLAIMED: u64 = 1;

/// A block that no rule means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First address.
    pub address: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Id of the call stack.
    pub stack: u32,
    /// The generation of the rules that it was held against, its low bits.
    pub generation: u32,
}

/// A table, over zeroed words or a copy of another's.
#[derive(Debug, Clone, Copy)]
pub struct Blocks<'a>(&'a [AtomicU64]);

impl<'a> Blocks<'a> {
    /// A table over [`BLOCKS_WORDS`] words; `None` where there are fewer.
    pub fn new(words: &'a [AtomicU64]) -> Option<Self> {
        words.get(..BLOCKS_WORDS).map(Self)
    }

    /// Adds a block; `false` where there is no room.
    pub fn insert(&self, block: &Block) -> bool {
        let Some([address, bytes, rest]) = self.claim(block.address, FREE) else { return false };
        bytes.store(block.bytes, Ordering::Relaxed);
        rest.store(u64::from(block.stack) | u64::from(block.generation) << 32, Ordering::Relaxed);
        address.store(!block.address, Ordering::Release);
        true
    }

    /// Takes a block out.
    pub fn remove(&self, address: u64) -> Option<Block> {
        let entry = self.claim(address, !address)?;
        let block = read(address, entry);
        entry[0].store(FREE, Ordering::Release);
        Some(block)
    }

    /// All blocks.
    pub fn iter(&self) -> impl Iterator<Item = Block> + 'a {
        self.0.chunks_exact(ENTRY_WORDS).filter_map(|entry| {
            let [address, bytes, rest] = entry else { return None };
            let turned = address.load(Ordering::Acquire);
            (turned > CLAIMED).then(|| read(!turned, [address, bytes, rest]))
        })
    }

    /// Claims an entry near where this address belongs that holds this word.
    fn claim(&self, address: u64, holds: u64) -> Option<[&'a AtomicU64; ENTRY_WORDS]> {
        // Blocks are 16 bytes apart; the top bits are the best mixed.
        #[allow(clippy::cast_possible_truncation)]
        let home = (scatter(address / 16) >> (64 - MAX_BLOCKS.trailing_zeros())) as usize;
        let mut near = (0..PROBES).map(|probe| (home + probe) % MAX_BLOCKS * ENTRY_WORDS);
        let at = near.find(|at| {
            let word = &self.0[*at];
            word.load(Ordering::Relaxed) == holds
                && word.compare_exchange(holds, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })?;
        Some([&self.0[at], &self.0[at + 1], &self.0[at + 2]])
    }
}

fn read(address: u64, [_, bytes, rest]: [&AtomicU64; ENTRY_WORDS]) -> Block {
    let rest = rest.load(Ordering::Relaxed);
    #[allow(clippy::cast_possible_truncation)]
    let (stack, generation) = (rest as u32, (rest >> 32) as u32);
    Block { address, bytes: bytes.load(Ordering::Relaxed), stack, generation }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn zeroed() -> Vec<AtomicU64> {
        (0..BLOCKS_WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    fn block(address: u64) -> Block {
        Block { address, bytes: address ^ 0x4d, stack: 5, generation: u32::MAX }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn what_is_in_is_what_went_in_and_not_out(steps in prop::collection::vec((0_u64..300, any::<bool>()), 1..800)) {
            let words = zeroed();
            let table = Blocks::new(&words).unwrap();
            let mut model = BTreeMap::new();
            for (number, insert) in steps {
                let address = 0x7000_0000_0010 + number * 0x8010;
                if insert && !model.contains_key(&address) {
                    prop_assert!(table.insert(&block(address)));
                    model.insert(address, block(address));
                } else if !insert {
                    prop_assert_eq!(table.remove(address), model.remove(&address));
                }
            }
            let mut found: Vec<Block> = table.iter().collect();
            found.sort_unstable_by_key(|block| block.address);
            prop_assert!(found.into_iter().eq(model.into_values()));
        }
    }

    #[test]
    fn a_full_table_says_so_and_holds_no_pointers() {
        let words = zeroed();
        let table = Blocks::new(&words).unwrap();
        let kept = (1..=100_000_u64).filter(|number| table.insert(&block(number * 0x9000))).count();
        assert!((MAX_BLOCKS / 2..=MAX_BLOCKS).contains(&kept), "{kept}");
        assert!(words.chunks(ENTRY_WORDS).all(|entry| entry[0].load(Ordering::Relaxed) % 0x9000 != 0
            || entry[0].load(Ordering::Relaxed) == FREE));
        assert!(Blocks::new(&words[1..]).is_none());
    }
}
