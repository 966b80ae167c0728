//! Checksums of arrays that carry them: one of every 4096 bytes, in a table behind the array's own bytes.
//!
//! The table changes in the transaction that changes the array: `save` puts its old words into the log
//! beside the old bytes, and `commit` computes the new ones. A crash leaves both as they were or both new,
//! so a chunk that does not match was damaged, or written outside of a transaction.
//!
//! A chunk's place in the file is the seed of its checksum: bytes that belong elsewhere do not match.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use tierloom_model::units::LINE_BYTES;

use crate::layout::up;
use crate::medium::Medium;

/// Bytes under one checksum: a page, so that the table is 0.2 % of the data.
pub const CHUNK: u64 = 4096;
const WORD: u64 = 8;

/// Where the checksums of an array are, and what they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sums {
    /// First byte of the array.
    offset: u64,
    bytes: u64,
}

impl Sums {
    pub(crate) fn new(offset: u64, bytes: u64) -> Self {
        Self { offset, bytes }
    }

    /// Bytes of such an array with its table.
    pub(crate) fn stored_bytes(bytes: u64) -> u64 {
        up(bytes, LINE_BYTES).saturating_add(bytes.div_ceil(CHUNK) * WORD)
    }

    pub(crate) fn chunks(self) -> Range<u64> {
        0..self.bytes.div_ceil(CHUNK)
    }

    /// Chunks that a range of the file touches.
    pub(crate) fn touched(self, offset: u64, bytes: u64) -> Range<u64> {
        let first = offset.max(self.offset);
        let end = offset.saturating_add(bytes).min(self.offset + self.bytes);
        if first >= end {
            return 0..0;
        }
        (first - self.offset) / CHUNK..(end - self.offset).div_ceil(CHUNK)
    }

    /// Where in the file the checksums of chunks are, as (offset, bytes).
    pub(crate) fn words(self, chunks: &Range<u64>) -> (u64, u64) {
        (self.offset + up(self.bytes, LINE_BYTES) + chunks.start * WORD, (chunks.end - chunks.start) * WORD)
    }

    /// Bytes of the array that a chunk is.
    fn span(self, chunk: u64) -> Range<u64> {
        chunk * CHUNK..((chunk + 1) * CHUNK).min(self.bytes)
    }

    fn of(self, medium: &impl Medium, chunk: u64) -> u64 {
        let Range { start, end } = self.span(chunk);
        let content = medium.copy(self.offset + start, usize::try_from(end - start).unwrap_or(0));
        xxh3_64_with_seed(&content, self.offset + start)
    }

    /// The checksums of chunks as the array is now, as the table has them.
    fn anew(self, medium: &impl Medium, chunks: Range<u64>) -> Vec<u8> {
        chunks.flat_map(|chunk| self.of(medium, chunk).to_le_bytes()).collect()
    }

    /// Ranges of the array that are not what its checksums are of, leaving out chunks that an open
    /// transaction changes.
    pub(crate) fn damage(self, medium: &impl Medium, changing: &Stale) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for chunk in self.chunks().filter(|chunk| !changing.has(self, *chunk)) {
            if self.of(medium, chunk) == medium.load_word(self.words(&(chunk..chunk + 1)).0) {
                continue;
            }
            let span = self.span(chunk);
            match found.last_mut() {
                Some(last) if last.end == span.start => last.end = span.end,
                _ => found.push(span),
            }
        }
        found
    }
}

/// Chunks whose checksums the open transaction has to renew.
#[derive(Debug, Default)]
pub(crate) struct Stale(Vec<(Sums, Range<u64>)>);

impl Stale {
    pub(crate) fn note(&mut self, sums: Sums, chunks: Range<u64>) {
        match self.0.last_mut() {
            // Whoever saves piece by piece goes on where the last piece ended.
            Some((last, noted)) if *last == sums && noted.start <= chunks.start && chunks.start <= noted.end => {
                noted.end = noted.end.max(chunks.end);
            }
            _ => self.0.push((sums, chunks)),
        }
    }

    fn has(&self, sums: Sums, chunk: u64) -> bool {
        self.0.iter().any(|(noted, chunks)| *noted == sums && chunks.contains(&chunk))
    }

    /// What the tables have to say now, as (offset, bytes): each checksum once.
    pub(crate) fn renewed(&mut self, medium: &impl Medium) -> Vec<(u64, Vec<u8>)> {
        let mut noted = std::mem::take(&mut self.0);
        noted.sort_by_key(|(sums, chunks)| (*sums, chunks.start));
        let mut done = (Sums::new(0, 0), 0);
        let mut words = Vec::new();
        for (sums, chunks) in noted {
            let first = if done.0 == sums { chunks.start.max(done.1) } else { chunks.start };
            let chunks = first..chunks.end.max(first);
            done = (sums, chunks.end);
            words.push((sums.words(&chunks).0, sums.anew(medium, chunks)));
        }
        words
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
