//! Where things lie in a pool: two headers, the log, the directory, the data.
//!
//! ```text
//! 0      header A    one page; the header with the higher sequence number and a good checksum counts
//! 4096   header B
//! 8192   log         one line of head, then records (crate::log)
//! …      directory   entries of 256 bytes (crate::directory)
//! …      data        arrays, each at a multiple of a page
//! ```
//! All numbers are little-endian. Headers are written one after the other, the older one first, so a
//! good one remains whenever the power goes.

use xxhash_rust::xxh3::xxh3_64;

use tierloom_model::units::PAGE_BYTES;

use crate::error::PmemError;
use crate::medium::{Durable, Medium};

/// Longest name of an array, bytes of UTF-8.
pub(crate) const NAME_BYTES: usize = 64;
/// Longest description of an array's elements and shape, bytes of UTF-8.
pub(crate) const TYPE_BYTES: usize = 112;
/// Where the log starts.
pub(crate) const LOG: u64 = 2 * PAGE_BYTES;
/// Bytes of a directory entry: four lines.
pub(crate) const ENTRY: usize = 256;

const MAGIC: [u8; 8] = *b"TIERPOOL";
/// Version 2 has arrays with checksums; a pool of version 1 becomes one when it gets the first of them.
pub(crate) const VERSION: u32 = 2;
const OLDEST_VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
/// Share of a pool that its log takes unless the creator says otherwise: a transaction that rewrites a
/// tenth of the data fits. Assumed.
const LOG_SHARE: u64 = 8;
const LEAST_LOG: u64 = 16 * 1024;
const LEAST_ENTRIES: u64 = 16;
const MOST_ENTRIES: u64 = 4096;
/// Smallest pool.
pub const LEAST_BYTES: u64 = 64 * 1024;

/// Where the parts of a pool are, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) version: u32,
    pub(crate) sequence: u64,
    pub(crate) bytes: u64,
    pub(crate) log_bytes: u64,
    pub(crate) entries: u64,
    /// A number of the pool's own, so that one pool's records are nothing in another.
    pub(crate) identity: u64,
}

impl Layout {
    /// The parts of a new pool.
    ///
    /// # Errors
    /// A pool or a log that is too small.
    pub(crate) fn new(bytes: u64, log_bytes: Option<u64>, identity: u64) -> Result<Self, PmemError> {
        let log_bytes = up(log_bytes.unwrap_or((bytes / LOG_SHARE).max(LEAST_LOG)), PAGE_BYTES);
        let entries = entries_of(bytes);
        let layout = Self { version: VERSION, sequence: 0, bytes, log_bytes, entries, identity };
        if bytes < LEAST_BYTES || log_bytes < LEAST_LOG || layout.data() + PAGE_BYTES > bytes {
            let what = format!("a pool of {bytes} bytes with a log of {log_bytes} bytes has no room for data");
            return Err(PmemError::Request { what, hint: "take at least 64 KiB, and a log of an eighth of the pool" });
        }
        Ok(layout)
    }

    pub(crate) fn directory(&self) -> u64 {
        LOG + self.log_bytes
    }

    pub(crate) fn data(&self) -> u64 {
        up(self.directory() + self.entries * ENTRY as u64, PAGE_BYTES)
    }

    /// Offset of an entry.
    pub(crate) fn entry(&self, index: u64) -> u64 {
        self.directory() + index * ENTRY as u64
    }

    /// The header that counts.
    ///
    /// # Errors
    /// Neither header is good, or the good one does not fit the file.
    pub(crate) fn read(medium: &impl Medium) -> Result<Self, PmemError> {
        long_enough(medium.bytes())?;
        let headers = [0, PAGE_BYTES].map(|offset| Self::decode(&medium.copy(offset, HEADER_BYTES)));
        let best = headers.iter().flatten().max_by_key(|layout| layout.sequence);
        let Some(layout) = best else { return Err(unreadable(&medium.copy(0, HEADER_BYTES))) };
        if layout.bytes > medium.bytes() {
            let what = format!("the header says {} bytes, the file has {}", layout.bytes, medium.bytes());
            return Err(damaged(what, TRUNCATED));
        }
        Ok(*layout)
    }

    /// Makes the next two in sequence the headers, one after the other: both say the same then, and a
    /// good one is there all the time. Returns the one that counts.
    ///
    /// # Errors
    /// The medium failed.
    pub(crate) fn write(&self, medium: &mut impl Durable) -> Result<Self, PmemError> {
        let mut written = *self;
        for _ in 0..2 {
            written.sequence += 1;
            medium.persist((written.sequence % 2) * PAGE_BYTES, &written.encode())?;
        }
        Ok(written)
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&self.version.to_le_bytes());
        for (at, word) in [self.sequence, self.bytes, self.log_bytes, self.entries, self.identity].iter().enumerate() {
            header[16 + 8 * at..24 + 8 * at].copy_from_slice(&word.to_le_bytes());
        }
        seal(&mut header);
        header
    }

    fn decode(header: &[u8]) -> Option<Self> {
        let word = |at: usize| word(header, 16 + 8 * at);
        let version = version(header);
        let good = header[..8] == MAGIC && (OLDEST_VERSION..=VERSION).contains(&version) && sealed(header);
        let (sequence, bytes, log_bytes) = (word(0), word(1), word(2));
        let layout = Self { version, sequence, bytes, log_bytes, entries: word(3), identity: word(4) };
        // A checksum that fits by chance must not lead out of the file.
        let sane = layout.log_bytes <= layout.bytes
            && layout.entries <= MOST_ENTRIES
            && layout.log_bytes >= LEAST_LOG
            && layout.data() <= layout.bytes;
        (good && sane).then_some(layout)
    }
}

/// # Errors
/// There is no pool of so many bytes.
pub(crate) fn long_enough(bytes: u64) -> Result<(), PmemError> {
    if bytes >= LEAST_BYTES {
        return Ok(());
    }
    Err(damaged(format!("{bytes} bytes are too few for a pool"), TRUNCATED))
}

fn version(header: &[u8]) -> u32 {
    u32::from_le_bytes([header[8], header[9], header[10], header[11]])
}

/// Entries in the directory of a pool of so many bytes.
pub(crate) fn entries_of(bytes: u64) -> u64 {
    (bytes / (64 * 1024)).clamp(LEAST_ENTRIES, MOST_ENTRIES)
}

/// Makes the last eight bytes the checksum of those before.
pub(crate) fn seal(bytes: &mut [u8]) {
    let (content, sum) = bytes.split_at_mut(bytes.len() - 8);
    sum.copy_from_slice(&xxh3_64(content).to_le_bytes());
}

/// Whether the last eight bytes are the checksum of those before.
pub(crate) fn sealed(bytes: &[u8]) -> bool {
    let (content, sum) = bytes.split_at(bytes.len() - 8);
    sum == xxh3_64(content).to_le_bytes()
}

/// The eight bytes at `at` as a number; zero beyond the end.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The next multiple.
pub(crate) fn up(value: u64, multiple: u64) -> u64 {
    value.div_ceil(multiple).saturating_mul(multiple)
}

const TRUNCATED: &str = "the file was cut short; restore it from a copy";

pub(crate) fn damaged(what: String, hint: &'static str) -> PmemError {
    PmemError::Damaged { what, hint }
}

fn unreadable(header: &[u8]) -> PmemError {
    if header[..8] != MAGIC {
        return damaged("there is no pool's magic at its start".to_owned(), "is this the right file?");
    }
    let version = version(header);
    if !(OLDEST_VERSION..=VERSION).contains(&version) && sealed(header) {
        let what = format!("it has version {version}, this Tierloom reads {OLDEST_VERSION} to {VERSION}");
        return damaged(what, "use the Tierloom that made it");
    }
    damaged("both headers are broken".to_owned(), "restore the file from a copy")
}
