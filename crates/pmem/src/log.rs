//! The undo log: what transactions need to be all or nothing.
//!
//! Before a range changes, its old bytes go to the log and are made durable; then the range may change
//! in place. Commit makes the changed ranges durable and then moves the log's generation on, one word
//! that cannot tear: from then on the records are nothing. A crash before that leaves records of the
//! current generation, and recovery puts the old bytes back, newest first (Gray and Reuter,
//! *Transaction Processing*, 1992, 10.3; the same order as libpmemobj's undo log).
//!
//! A record counts if its checksum is good over generation, pool, offset and old bytes, and all
//! records before it count. One that does not was torn: its fence had not passed, so its range had
//! not changed yet.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use tierloom_model::units::LINE_BYTES;

use crate::error::PmemError;
use crate::layout::{LOG, Layout, damaged, up};
use crate::medium::{Durable, Medium};

/// Bytes of a record before its old bytes: checksum, offset, length, generation.
pub(crate) const HEAD: u64 = 32;
/// Bits of the generation; the others check it, so that a flipped bit does not hide records.
const GENERATION_BITS: u32 = 48;

/// The log of an open pool.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    start: u64,
    bytes: u64,
    identity: u64,
    generation: u64,
    /// Bytes of records in this generation.
    used: u64,
    /// Ranges that may change in this generation, as (offset, bytes).
    saved: Vec<(u64, u64)>,
}

impl Log {
    /// An empty log in a new pool.
    ///
    /// # Errors
    /// The medium failed.
    pub(crate) fn create(layout: &Layout, medium: &mut impl Durable) -> Result<(), PmemError> {
        medium.persist(LOG, &seal(1, layout.identity).to_le_bytes())
    }

    /// The log as it was left.
    ///
    /// # Errors
    /// Its generation is broken.
    pub(crate) fn open(layout: &Layout, medium: &impl Medium) -> Result<Self, PmemError> {
        let head = medium.load_word(LOG);
        let generation = head & ((1 << GENERATION_BITS) - 1);
        if seal(generation, layout.identity) != head {
            return Err(damaged("the log's generation is broken".to_owned(), BROKEN_LOG));
        }
        let log = Self {
            start: LOG + LINE_BYTES,
            bytes: layout.log_bytes - LINE_BYTES,
            identity: layout.identity,
            generation,
            used: 0,
            saved: Vec::new(),
        };
        Ok(log)
    }

    /// A fresh generation whatever was there: what was under way is given up as it is.
    ///
    /// # Errors
    /// The medium failed.
    pub(crate) fn reset(layout: &Layout, medium: &mut impl Durable) -> Result<(), PmemError> {
        // Beyond any generation that can have been in use, so that no old record counts.
        let old = medium.load_word(LOG) & ((1 << GENERATION_BITS) - 1);
        let next = (old + (1 << 40)) & ((1 << GENERATION_BITS) - 1);
        medium.persist(LOG, &seal(next, layout.identity).to_le_bytes())
    }

    /// Makes the old bytes of a range durable, so that it may change.
    ///
    /// # Errors
    /// The log is full; the medium failed.
    pub(crate) fn save(&mut self, medium: &mut impl Durable, offset: u64, bytes: u64) -> Result<(), PmemError> {
        let needed = up(HEAD + bytes, LINE_BYTES);
        let room = self.bytes - self.used;
        if needed > room {
            return Err(PmemError::LogFull { needed, room });
        }
        let mut record = vec![0; 32];
        record[8..16].copy_from_slice(&offset.to_le_bytes());
        record[16..24].copy_from_slice(&bytes.to_le_bytes());
        record[24..32].copy_from_slice(&self.generation.to_le_bytes());
        record.resize(usize::try_from(HEAD + bytes).unwrap_or(usize::MAX), 0);
        medium.load(offset, &mut record[32..]);
        let sum = checksum(self.identity, &record[8..]);
        record[..8].copy_from_slice(&sum.to_le_bytes());
        medium.persist(self.start + self.used, &record)?;
        self.used += needed;
        self.saved.push((offset, bytes));
        Ok(())
    }

    /// Takes note of a range that nothing else uses: it may change unsaved, and commit writes it back.
    pub(crate) fn fresh(&mut self, offset: u64, bytes: u64) {
        self.saved.push((offset, bytes));
    }

    /// Whether the whole range is saved already.
    pub(crate) fn covers(&self, offset: u64, bytes: u64) -> bool {
        self.saved.iter().any(|(start, length)| *start <= offset && offset + bytes <= start + length)
    }

    /// Makes all that changed durable, then the transaction final.
    ///
    /// # Errors
    /// The medium failed; the transaction is undone when the pool is opened next.
    pub(crate) fn commit(&mut self, medium: &mut impl Durable) -> Result<(), PmemError> {
        for (offset, bytes) in &self.saved {
            medium.write_back(*offset, *bytes);
        }
        medium.fence()?;
        self.advance(medium)
    }

    /// Puts the old bytes back, newest first; used by rollback and by recovery alike.
    ///
    /// # Errors
    /// The medium failed; a record that leads out of the pool.
    pub(crate) fn undo(&mut self, layout: &Layout, medium: &mut impl Durable) -> Result<usize, PmemError> {
        let records = self.records(medium);
        for (at, offset, bytes) in records.iter().rev() {
            if *offset < layout.directory() || offset.saturating_add(*bytes) > layout.bytes {
                return Err(damaged(
                    format!("a log record of {bytes} bytes at {offset} leads out of the pool"),
                    BROKEN_LOG,
                ));
            }
            let old = medium.copy(at + HEAD, usize::try_from(*bytes).unwrap_or(usize::MAX));
            medium.store(*offset, &old);
            medium.write_back(*offset, *bytes);
        }
        medium.fence()?;
        self.advance(medium)?;
        Ok(records.len())
    }

    /// Records that count, as (position, offset, bytes), oldest first.
    pub(crate) fn records(&self, medium: &impl Medium) -> Vec<(u64, u64, u64)> {
        let mut records = Vec::new();
        let mut used = 0;
        while let Some((offset, bytes)) = self.record(medium, used) {
            records.push((self.start + used, offset, bytes));
            used += up(HEAD + bytes, LINE_BYTES);
        }
        records
    }

    /// Whether a record counts behind one that does not. Each is durable before the next is written, so
    /// no crash leaves that: what is between was damaged, and undoing the others would tear.
    pub(crate) fn has_gap(&self, medium: &impl Medium) -> bool {
        let used: u64 = self.records(medium).iter().map(|(_, _, bytes)| up(HEAD + bytes, LINE_BYTES)).sum();
        (used..self.bytes).step_by(64).any(|at| self.record(medium, at).is_some())
    }

    /// Range of the record at so many bytes into the log, if one of this generation is there and whole.
    fn record(&self, medium: &impl Medium, used: u64) -> Option<(u64, u64)> {
        let at = self.start + used;
        if used + HEAD > self.bytes || medium.load_word(at + 24) != self.generation {
            return None;
        }
        let (offset, bytes) = (medium.load_word(at + 8), medium.load_word(at + 16));
        if bytes > self.bytes - used - HEAD {
            return None;
        }
        let content = medium.copy(at + 8, usize::try_from(HEAD - 8 + bytes).unwrap_or(usize::MAX));
        (checksum(self.identity, &content) == medium.load_word(at)).then_some((offset, bytes))
    }

    fn advance(&mut self, medium: &mut impl Durable) -> Result<(), PmemError> {
        let next = (self.generation + 1) & ((1 << GENERATION_BITS) - 1);
        medium.persist(self.start - LINE_BYTES, &seal(next, self.identity).to_le_bytes())?;
        self.generation = next;
        self.used = 0;
        self.saved.clear();
        Ok(())
    }
}

pub(crate) const BROKEN_LOG: &str = "`pmem repair` gives up what was under way and keeps the rest";

/// A generation with a check in its upper bits.
fn seal(generation: u64, identity: u64) -> u64 {
    generation | checksum(identity, &generation.to_le_bytes()) << GENERATION_BITS
}

/// A checksum that only this pool's records have.
fn checksum(identity: u64, content: &[u8]) -> u64 {
    xxh3_64_with_seed(content, identity)
}
