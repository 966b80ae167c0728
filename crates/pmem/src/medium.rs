//! What a pool lies on: bytes that survive, once written back and fenced.

use crate::error::PmemError;

/// Bytes with the persistence of the x86 memory model (SNIA *NVM Programming Model* 1.2, §10; Intel
/// *Software Developer's Manual* 1, §12.1): a stored cache line may become durable at any moment, and
/// is durable for certain once it was written back and a fence has passed. Aligned stores of eight
/// bytes never tear.
///
/// This half reads; [`Durable`] changes.
pub trait Medium {
    /// Bytes there are.
    fn bytes(&self) -> u64;

    /// Reads `to.len()` bytes at `offset`, as the program sees them. The range lies inside.
    fn load(&self, offset: u64, to: &mut [u8]);

    /// Eight bytes at once: the only store that is all there or not at all.
    fn load_word(&self, offset: u64) -> u64 {
        let mut word = [0; 8];
        self.load(offset, &mut word);
        u64::from_le_bytes(word)
    }

    /// A copy of a range.
    fn copy(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let mut copy = vec![0; bytes];
        self.load(offset, &mut copy);
        copy
    }
}

/// A medium that may be changed.
pub trait Durable: Medium {
    /// Stores bytes at `offset`. The range lies inside.
    fn store(&mut self, offset: u64, from: &[u8]);

    /// Starts writing the cache lines of a range back.
    fn write_back(&mut self, offset: u64, bytes: u64);

    /// Returns when all that was written back is durable.
    ///
    /// # Errors
    /// The medium failed; nothing is known to be durable then.
    fn fence(&mut self) -> Result<(), PmemError>;

    /// Stores and makes durable.
    ///
    /// # Errors
    /// As [`Medium::fence`].
    fn persist(&mut self, offset: u64, from: &[u8]) -> Result<(), PmemError> {
        self.store(offset, from);
        self.write_back(offset, from.len() as u64);
        self.fence()
    }
}
