//! Addresses: the model moves 64-byte lines and names them by their number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tierloom_model::hash::scatter;

/// A 64-byte line of the address space; 32 bits reach 256 GiB.
pub(crate) type Line = u32;

/// Lines of 256 bytes, the unit of speculative reads.
pub(crate) const BLOCK_LINES: u32 = 4;

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
        let spread = scatter(self.0 ^ u64::from(number));
        self.0 = spread ^ (spread >> 32);
    }
}
