//! Looking at a pool that may be damaged, without changing it; and repairing what can be repaired.

use std::fmt;
use std::ops::Range;

use crate::directory::{Entry, Slot};
use crate::error::PmemError;
use crate::layout::{ENTRY, Layout};
use crate::log::Log;
use crate::medium::{Durable, Medium};
use crate::read_only::Undone;
use crate::sums::Stale;

/// Something wrong with a pool, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// No header is good: nothing can be read.
    NoHeader(String),
    /// The log cannot be read: what was under way when the pool was left stays half done.
    BrokenLog,
    /// A transaction was cut off; opening the pool undoes it. No damage.
    Unfinished {
        /// Ranges that it saved.
        ranges: usize,
    },
    /// A directory entry that nobody wrote like this.
    BrokenEntry {
        /// Which.
        index: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two arrays that share bytes.
    Overlap {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A name that two arrays have.
    Twice(String),
    /// Bytes of an array that are not what its checksums are of.
    Damaged {
        /// Which array.
        name: String,
        /// Where, in bytes from its start: whole chunks.
        ranges: Vec<Range<u64>>,
    },
    /// libpmemobj finds its own part of the file broken, in its words.
    Library(String),
}

impl Problem {
    /// Whether data may be lost; an unfinished transaction is none.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Unfinished { .. })
    }

    /// Whether [`repair`] mends it: not where nothing is left to start from, where only the owner knows
    /// which array is right, and not what is libpmemobj's.
    pub fn is_repairable(&self) -> bool {
        matches!(self, Self::BrokenLog | Self::Unfinished { .. } | Self::BrokenEntry { .. })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader(why) => write!(to, "{why}"),
            Self::BrokenLog => write!(to, "the log is broken: a transaction may be half done"),
            Self::Unfinished { ranges } => {
                write!(to, "a transaction over {ranges} ranges was cut off; opening undoes it")
            }
            Self::BrokenEntry { index, why } => write!(to, "directory entry {index}: {why}"),
            Self::Overlap { first, second } => write!(to, "arrays `{first}` and `{second}` share bytes"),
            Self::Library(words) => {
                write!(to, "libpmemobj finds its part of the pool broken: {words}; see `pmempool check --repair`")
            }
            Self::Damaged { name, ranges } => {
                let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                let first = ranges.first().map_or(0, |range| range.start);
                write!(to, "array `{name}`: {bytes} bytes do not match their checksums, the first at byte {first}")
            }
            Self::Twice(name) => write!(to, "two arrays are called `{name}`"),
        }
    }
}

/// Everything that is wrong with a pool; nothing is changed.
pub fn check(medium: &impl Medium) -> Vec<Problem> {
    let layout = match Layout::read(medium) {
        Ok(layout) => layout,
        Err(error) => return vec![Problem::NoHeader(error.to_string().replace("\nhint: ", "; "))],
    };
    match Log::open(&layout, medium) {
        Ok(log) if !log.has_gap(medium) => {
            let undone = Undone::new(medium, &log);
            let ranges = undone.ranges();
            let unfinished = (ranges > 0).then_some(Problem::Unfinished { ranges });
            unfinished.into_iter().chain(arrays(&undone, &layout)).collect()
        }
        _ => std::iter::once(Problem::BrokenLog).chain(arrays(medium, &layout)).collect(),
    }
}

/// What is wrong with the directory, and with arrays that carry checksums.
fn arrays(medium: &impl Medium, layout: &Layout) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    for index in 0..layout.entries {
        match Slot::read(medium, layout, index) {
            Slot::Free => {}
            Slot::Used(entry) => entries.push(entry),
            Slot::Broken(why) => problems.push(Problem::BrokenEntry { index, why }),
        }
    }
    problems.extend(entries.iter().filter_map(|entry| damage(medium, entry)));
    problems.extend(conflicts(entries));
    problems
}

/// What of an array does not match its checksums.
pub(crate) fn damage(medium: &impl Medium, entry: &Entry) -> Option<Problem> {
    let ranges = entry.sums()?.damage(medium, &Stale::default());
    (!ranges.is_empty()).then(|| Problem::Damaged { name: entry.name.clone(), ranges })
}

/// Arrays that share bytes or a name.
pub(crate) fn conflicts(mut entries: Vec<Entry>) -> Vec<Problem> {
    let mut problems = Vec::new();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let twice = entries.windows(2).filter(|pair| pair[0].name == pair[1].name);
    problems.extend(twice.map(|pair| Problem::Twice(pair[0].name.clone())));
    entries.sort_by_key(|entry| entry.offset);
    let sharing = entries.windows(2).filter(|pair| pair[0].offset + pair[0].stored_bytes() > pair[1].offset);
    let overlap = |pair: &[Entry]| Problem::Overlap { first: pair[0].name.clone(), second: pair[1].name.clone() };
    problems.extend(sharing.map(overlap));
    problems
}

/// Makes a damaged pool one that opens: undoes what was under way, drops entries that are broken, and
/// gives a broken log up. Returns what was wrong before. Arrays that are not broken stay as they are,
/// those that share bytes or a name too: which of them is right only their owner knows.
///
/// # Errors
/// There is no good header to start from; the medium failed.
pub fn repair(medium: &mut impl Durable) -> Result<Vec<Problem>, PmemError> {
    let layout = Layout::read(medium)?;
    let problems = check(medium);
    match Log::open(&layout, medium) {
        Ok(mut log) => {
            if log.has_gap(medium) || log.undo(&layout, medium).is_err() {
                Log::reset(&layout, medium)?;
            }
        }
        Err(_) => Log::reset(&layout, medium)?,
    }
    for index in 0..layout.entries {
        if let Slot::Broken(_) = Slot::read(medium, &layout, index) {
            medium.persist(layout.entry(index), &[0; ENTRY])?;
        }
    }
    // One of the headers may have been broken beside a good one.
    layout.write(medium)?;
    Ok(problems)
}
