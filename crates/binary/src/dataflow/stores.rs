//! Memory of which only is known what was stored in it.
//!
//! Emulation asks at every load and nobody ever asks for all of it, so it is a hash table, whose order means nothing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Values by address.
#[derive(Debug, Default)]
pub(super) struct Stores(HashMap<u64, Stored, BuildHasherDefault<AddressHasher>>);

/// Bytes of what is stored at most.
const WORD: u64 = 8;

/// What was stored last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) value: u64,
    /// How many bytes of it were stored.
    pub(super) bytes: u32,
    /// In a place on the stack that the instruction names: nothing else writes there.
    pub(super) in_slot: bool,
}

impl Stores {
    /// What was stored at an address last.
    pub(super) fn get(&self, address: u64) -> Option<u64> {
        self.0.get(&address).map(|stored| stored.value)
    }

    pub(super) fn set(&mut self, address: u64, stored: Stored) {
        self.0.insert(address, stored);
    }

    /// Only what lies in slots is known any more.
    pub(super) fn forget_all_but_slots(&mut self) {
        self.0.retain(|_, stored| stored.in_slot);
    }

    /// What so many bytes from an address on are part of is not known any more.
    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        for reached in address..address.saturating_add(bytes) {
            self.0.remove(&reached);
        }
        for behind in 1..WORD {
            let start = address.wrapping_sub(behind);
            if self.0.get(&start).is_some_and(|stored| u64::from(stored.bytes) > behind) {
                self.0.remove(&start);
            }
        }
    }
}

/// Addresses of a loop differ in few bits of the low ones; a table looks at the lowest and the highest.
#[derive(Debug, Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The multiplier of SplitMix64's first step (Steele, Lea, Flood, 2014): odd, and half of its bits set.
        let spread = (self.0 ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_store_counts_until_it_is_forgotten() {
        let mut stores = Stores::default();
        for (address, value, in_slot) in [(8, 1, true), (u64::MAX, 2, false), (8, 3, true)] {
            stores.set(address, Stored { value, bytes: 8, in_slot });
        }
        assert_eq!([8, u64::MAX, 0].map(|address| stores.get(address)), [Some(3), Some(2), None]);
        stores.forget_all_but_slots();
        assert_eq!([8, u64::MAX].map(|address| stores.get(address)), [Some(3), None]);
        stores.forget(16, 16);
        assert_eq!(stores.get(8), Some(3), "the word before");
        stores.forget(12, 4);
        assert_eq!(stores.get(8), None, "its upper half");
    }
}
