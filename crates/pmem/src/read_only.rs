//! Media that are only read: a pool's file, and what it would hold once opening has undone what a crash cut off.

use std::path::Path;

use tierloom_linux::looked::LookedAt;

use crate::error::PmemError;
use crate::log::{HEAD, Log};
use crate::medium::Medium;

/// A pool's file as a medium that is only read.
#[derive(Debug)]
pub(crate) struct ReadOnly(LookedAt);

impl ReadOnly {
    pub(crate) fn open(path: &Path) -> Result<Self, PmemError> {
        Ok(Self(LookedAt::open(path)?))
    }
}

impl Medium for ReadOnly {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn load(&self, offset: u64, to: &mut [u8]) {
        self.0.read(offset, to);
    }
}

/// A medium as opening the pool would leave it: the old bytes of an unfinished transaction in their places.
#[derive(Debug)]
pub(crate) struct Undone<'a, M> {
    medium: &'a M,
    /// As (position, offset, bytes), oldest first.
    records: Vec<(u64, u64, u64)>,
}

impl<'a, M: Medium> Undone<'a, M> {
    pub(crate) fn new(medium: &'a M, log: &Log) -> Self {
        Self { medium, records: log.records(medium) }
    }

    pub(crate) fn ranges(&self) -> usize {
        self.records.len()
    }
}

impl<M: Medium> Medium for Undone<'_, M> {
    fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    fn load(&self, offset: u64, to: &mut [u8]) {
        self.medium.load(offset, to);
        let end = offset + to.len() as u64;
        // The oldest record of a byte has what was there before the transaction: it comes last.
        for (at, from, bytes) in self.records.iter().rev() {
            let (first, last) = (offset.max(*from), end.min(from.saturating_add(*bytes)));
            if first >= last {
                continue;
            }
            let place = |byte: u64| usize::try_from(byte - offset).unwrap_or(usize::MAX);
            self.medium.load(at + HEAD + (first - from), &mut to[place(first)..place(last)]);
        }
    }
}
