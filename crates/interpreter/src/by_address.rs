//! Tables by address, which are looked up at every instruction.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by address.
pub(crate) type ByAddress<T> = HashMap<u64, T, Hashed>;
/// How its keys, and those of tables by address and something else, are looked up.
pub(crate) type Hashed = BuildHasherDefault<Multiplied>;

/// Multiplies by the golden ratio (Knuth, *The Art of Computer Programming*, volume 3, 6.4): nobody chooses addresses to
/// make them meet.
#[derive(Debug, Default)]
pub(crate) struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.cast_unsigned() as u64);
    }

    fn write_u64(&mut self, number: u64) {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.0 ^ number).wrapping_mul(GOLDEN);
        // Tables look at the low bits, and the high ones are mixed best.
        self.0 = mixed ^ mixed >> 32;
    }
}
