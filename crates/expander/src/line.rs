//! Addresses: the model moves 64-byte lines and names them by their number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A 64-byte line of the address space; 32 bits reach 256 GiB.
pub(crate) type Line = u32;

/// Bytes of a line.
pub(crate) const LINE_BYTES: u64 = 64;

/// Lines of 256 bytes, the unit of speculative reads.
pub(crate) const BLOCK_LINES: u32 = 4;

/// Spreads consecutive numbers over all bits (Fibonacci hashing, Knuth vol. 3, 6.4).
pub(crate) fn scatter(number: u32) -> u64 {
    u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A well mixed 64-bit value for a position in a seeded sequence (`SplitMix64`, Steele et al. 2014).
pub(crate) fn mixed(seed: u64, position: u64) -> u64 {
    let mut z = seed ^ position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A map from small numbers; its hash is a multiplication, and nothing iterates over it.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Scatter>>;

/// Hasher of [`Map`].
#[derive(Default)]
pub(crate) struct Scatter(u64);

impl Hasher for Scatter {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
