//! The code that is copied, as it stands in the program's memory.

/// The longest instruction of x86-64, bytes (AMD64 manual, volume 3, 1.1).
pub const LONGEST_INSTRUCTION: usize = 15;

/// Code that may be copied.
pub trait Text {
    /// Fills in the bytes from an address on and says how many there are: fewer than asked for at the end of a
    /// mapping, none where no code is that may be copied.
    fn fetch(&self, address: u64, into: &mut [u8; LONGEST_INSTRUCTION]) -> usize;

    /// Whether the descriptor of a restartable sequence is at an address (`rseq(2)`): code that takes it is about to
    /// tell the kernel, which knows the sequence by where it is.
    fn has_sequence(&self, _address: u64) -> bool {
        false
    }

    /// The word of data at an address, now: where a linkage table goes.
    fn word(&self, _address: u64) -> Option<u64> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{LONGEST_INSTRUCTION, Text};

    /// Bytes at an address.
    pub(crate) struct Bytes<'a>(pub(crate) u64, pub(crate) &'a [u8]);

    impl Text for Bytes<'_> {
        fn fetch(&self, address: u64, into: &mut [u8; LONGEST_INSTRUCTION]) -> usize {
            let at = address.checked_sub(self.0).and_then(|at| usize::try_from(at).ok());
            let rest = at.and_then(|at| self.1.get(at..)).unwrap_or_default();
            let length = rest.len().min(into.len());
            into[..length].copy_from_slice(&rest[..length]);
            length
        }
    }
}
