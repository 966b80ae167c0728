//! Memory as the thread would see it: what is there, and over it what was written here.

use foldhash::HashMap;

use crate::bits::low;
use crate::bytes::Bytes;
use crate::ended::Ended;

/// Bytes that are read at once: a call of the kernel costs more than they do, and no fewer than lines that nobody has read yet.
const LINE_BYTES: usize = 512;
const LINE: u64 = LINE_BYTES as u64;
const WORD: u64 = 8;

/// Eight aligned bytes that were written in part or whole; a bit of the masks for each byte.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    value: u64,
    touched: u8,
    known: u8,
}

/// Memory of a thread, and what was written to it here.
#[derive(Debug)]
pub(crate) struct Memory<B> {
    bytes: B,
    lines: HashMap<u64, Option<Box<[u8; LINE_BYTES]>>>,
    written: HashMap<u64, Written>,
}

impl<B: Bytes> Memory<B> {
    pub(crate) fn new(bytes: B) -> Self {
        Self { bytes, lines: HashMap::default(), written: HashMap::default() }
    }

    /// Up to eight bytes; `None` where what was written there is not known.
    pub(crate) fn read(&mut self, address: u64, bytes: u32) -> Result<Option<u64>, Ended> {
        let mut value = 0;
        let mut known = true;
        for piece in pieces(address, bytes) {
            let (word, word_known) = self.word(piece.word, piece.mask())?;
            known &= word_known;
            value |= (word >> (8 * piece.first) & low(8 * piece.bytes)) << (8 * piece.behind);
        }
        Ok(known.then_some(value))
    }

    /// Writes up to eight bytes, or what is not known.
    pub(crate) fn write(&mut self, address: u64, bytes: u32, value: Option<u64>) {
        for piece in pieces(address, bytes) {
            let entry = self.written.entry(piece.word).or_default();
            let mask = piece.mask();
            entry.touched |= mask;
            match value {
                Some(value) => {
                    let bits = low(8 * piece.bytes) << (8 * piece.first);
                    let part = value >> (8 * piece.behind) << (8 * piece.first) & bits;
                    entry.value = entry.value & !bits | part;
                    entry.known |= mask;
                }
                None => entry.known &= !mask,
            }
        }
    }

    /// Code at an address: as many bytes as can be read.
    pub(crate) fn code(&mut self, address: u64, into: &mut [u8]) -> usize {
        let first = address & !(WORD - 1);
        let end = address.saturating_add(into.len() as u64);
        let is_written = (first..end).step_by(8).any(|word| self.written.contains_key(&word));
        if is_written {
            return self.code_by_byte(address, into);
        }
        let mut length = 0;
        while length < into.len() {
            let at = address.wrapping_add(length as u64);
            let Ok(line) = self.line(at) else { break };
            let rest = &line[within_line(at)..];
            let count = rest.len().min(into.len() - length);
            into[length..length + count].copy_from_slice(&rest[..count]);
            length += count;
        }
        length
    }

    fn code_by_byte(&mut self, address: u64, into: &mut [u8]) -> usize {
        for (position, byte) in into.iter_mut().enumerate() {
            match self.read(address.wrapping_add(position as u64), 1) {
                Ok(Some(value)) => *byte = value.to_le_bytes()[0],
                _ => return position,
            }
        }
        into.len()
    }

    /// An aligned word, and whether the bytes of the mask are known.
    fn word(&mut self, word: u64, mask: u8) -> Result<(u64, bool), Ended> {
        let Some(over) = self.written.get(&word).copied() else { return Ok((self.there(word)?, true)) };
        let own = spread(over.touched);
        let under = if over.touched & mask == mask { 0 } else { self.there(word)? };
        Ok((over.value & own | under & !own, over.touched & !over.known & mask == 0))
    }

    /// What the thread has there.
    fn there(&mut self, word: u64) -> Result<u64, Ended> {
        let at = within_line(word);
        let bytes = self.line(word)?[at..at + 8].try_into().unwrap_or_default();
        Ok(u64::from_le_bytes(bytes))
    }

    /// The line of an address.
    fn line(&mut self, address: u64) -> Result<&[u8; LINE_BYTES], Ended> {
        let start = address & !(LINE - 1);
        let bytes = &mut self.bytes;
        let line = self.lines.entry(start).or_insert_with(|| {
            let mut line = Box::new([0; LINE_BYTES]);
            bytes.read(start, &mut line[..]).then_some(line)
        });
        line.as_deref().ok_or(Ended::Unreadable)
    }
}

fn within_line(address: u64) -> usize {
    usize::try_from(address & (LINE - 1)).unwrap_or(0)
}

/// A part of an access that lies in one aligned word.
#[derive(Debug, Clone, Copy)]
struct Piece {
    word: u64,
    /// First byte of it in the word, how many, and how many of the access lie before.
    first: u32,
    bytes: u32,
    behind: u32,
}

impl Piece {
    fn mask(self) -> u8 {
        ((low(self.bytes) << self.first) & 0xff) as u8
    }
}

fn pieces(address: u64, bytes: u32) -> impl Iterator<Item = Piece> {
    let first = (address % WORD) as u32;
    let word = address - u64::from(first);
    let one = Piece { word, first, bytes: bytes.min(8 - first), behind: 0 };
    let rest = bytes - one.bytes;
    let other = Piece { word: word.wrapping_add(WORD), first: 0, bytes: rest, behind: one.bytes };
    std::iter::once(one).chain((rest > 0).then_some(other))
}

/// A byte of ones for each bit.
fn spread(mask: u8) -> u64 {
    (0..8).filter(|byte| mask >> byte & 1 == 1).fold(0, |all, byte| all | 0xff << (8 * byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Pattern;

    impl Bytes for Pattern {
        fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
            for (byte, at) in into.iter_mut().zip(address..) {
                *byte = (at % 251) as u8;
            }
            address < 1 << 40
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_and_all_else_is_what_was_there(
            writes in prop::collection::vec((0_u64..64, 1_u32..=8, prop::option::of(any::<u64>())), 0..20),
            at in 0_u64..64, bytes in 1_u32..=8,
        ) {
            let mut memory = Memory::new(Pattern);
            let mut plain: Vec<Option<u8>> = (0..80).map(|at: u64| Some((at % 251) as u8)).collect();
            for (at, bytes, value) in writes {
                memory.write(at, bytes, value);
                for k in 0..bytes {
                    let byte = value.map(|value: u64| (value >> (8 * k)).to_le_bytes()[0]);
                    plain[usize::try_from(at).unwrap() + k as usize] = byte;
                }
            }
            let expected = (0..bytes).try_fold(0_u64, |all, k| {
                Some(all | u64::from(plain[usize::try_from(at).unwrap() + k as usize]?) << (8 * k))
            });
            prop_assert_eq!(memory.read(at, bytes), Ok(expected));
        }
    }

    #[test]
    fn what_cannot_be_read_ends_it_unless_it_was_written() {
        let mut memory = Memory::new(Pattern);
        assert_eq!(memory.read(1 << 41, 8), Err(Ended::Unreadable));
        memory.write(1 << 41, 8, Some(5));
        assert_eq!(memory.read(1 << 41, 8), Ok(Some(5)));
        assert_eq!(memory.read((1 << 41) + 4, 8), Err(Ended::Unreadable));
    }
}
