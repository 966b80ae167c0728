//! Mixes of reads and writes, and what each of them moves.
//!
//! A mix with ordinary stores reads every line that it writes, in place: a line that is stored to
//! has been fetched anyway (write-allocate), so what the program asks for and what the memory bus
//! carries is the same. [`Mix::Writes`] alone stores without reading: there the bus carries up to
//! twice what the program asks for, and how much depends on the processor.

use serde::Serialize;
use tierloom_model::units;

/// [`units::LINE_BYTES`], for lengths of slices.
#[expect(clippy::cast_possible_truncation, reason = "64 fits")]
pub(crate) const LINE_BYTES: usize = units::LINE_BYTES as usize;

/// What a load thread does to its memory, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// Every line is read.
    Reads,
    /// Three lines are read, and the last of them is written back.
    ThreeToOne,
    /// Two lines are read, and the last of them is written back.
    TwoToOne,
    /// Every line is read and written back.
    OneToOne,
    /// Every line is written by ordinary stores, none is read by the program.
    Writes,
    /// Every line is written past the caches.
    NonTemporal,
    /// Half of the memory is read and written past the caches to the other half.
    NonTemporalCopy,
}

/// Bytes that a kernel moved, as the program asked for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Loaded.
    pub read_bytes: u64,
    /// Stored.
    pub written_bytes: u64,
}

impl Traffic {
    /// Both directions.
    pub fn bytes(self) -> u64 {
        self.read_bytes + self.written_bytes
    }
}

impl Mix {
    /// Every mix.
    pub const ALL: [Mix; 7] = [
        Mix::Reads,
        Mix::ThreeToOne,
        Mix::TwoToOne,
        Mix::OneToOne,
        Mix::Writes,
        Mix::NonTemporal,
        Mix::NonTemporalCopy,
    ];

    /// Lines that belong together: this many are looked at to move [`Mix::lines_moved`].
    pub(crate) fn group_lines(self) -> usize {
        match self {
            Mix::ThreeToOne => 3,
            Mix::TwoToOne | Mix::NonTemporalCopy => 2,
            Mix::Reads | Mix::OneToOne | Mix::Writes | Mix::NonTemporal => 1,
        }
    }

    /// Lines read and lines written in one group.
    fn lines_moved(self) -> (u64, u64) {
        match self {
            Mix::Reads => (1, 0),
            Mix::ThreeToOne => (3, 1),
            Mix::TwoToOne => (2, 1),
            Mix::OneToOne | Mix::NonTemporalCopy => (1, 1),
            Mix::Writes | Mix::NonTemporal => (0, 1),
        }
    }

    /// What one pass over `memory_bytes` moves.
    pub fn traffic(self, memory_bytes: usize) -> Traffic {
        let groups = (memory_bytes / (self.group_lines() * LINE_BYTES)) as u64;
        let (read, written) = self.lines_moved();
        let line = LINE_BYTES as u64;
        Traffic { read_bytes: groups * read * line, written_bytes: groups * written * line }
    }

    /// Share of reads on the memory bus; `None` where it depends on the processor.
    pub fn read_fraction(self) -> Option<f64> {
        let (read, written) = self.lines_moved();
        (self != Mix::Writes).then(|| read as f64 / (read + written) as f64)
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Mix::Reads => "all reads",
            Mix::ThreeToOne => "3 reads to 1 write",
            Mix::TwoToOne => "2 reads to 1 write",
            Mix::OneToOne => "1 read to 1 write",
            Mix::Writes => "all writes, ordinary stores",
            Mix::NonTemporal => "all writes, non-temporal stores",
            Mix::NonTemporalCopy => "copy, non-temporal stores",
        }
    }
}
