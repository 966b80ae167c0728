//! Looking at a pool without changing it: on a file that cannot be written, and before any recovery.

use std::path::Path;

use tierloom_linux::looked::LookedAt;
use tierloom_linux::mapped::maps_directly;

use crate::backend::{Kind, kind_of};
use crate::device::WriteBack;
use crate::directory::{Entry, read_all};
use crate::error::PmemError;
use crate::layout::{Layout, damaged};
use crate::log::{BROKEN_LOG, HEAD, Log};
use crate::medium::Medium;
use crate::pmdk;
use crate::pool::{Usage, usage};

/// What a pool says of itself.
#[derive(Debug)]
pub struct Look {
    /// Who keeps it.
    pub kind: Kind,
    /// What would make stores durable.
    pub durability: &'static str,
    /// Arrays, by name, as they are once what a crash cut off is undone.
    pub entries: Vec<Entry>,
    /// How full it is.
    pub usage: Usage,
    /// Ranges of a transaction that a crash cut off: opening undoes it. libpmemobj does not say.
    pub unfinished: Option<usize>,
}

/// Looks at a pool's file; nothing is changed, and it need not be writable.
///
/// # Errors
/// There is no pool, it is damaged, or a process has it open.
pub fn look(path: &Path) -> Result<Look, PmemError> {
    if kind_of(path) == Kind::Library {
        return pmdk::look(path);
    }
    let file = ReadOnly::open(path)?;
    let layout = Layout::read(&file)?;
    let log = Log::open(&layout, &file)?;
    if log.has_gap(&file) {
        return Err(damaged("a record in the middle of the log is broken".to_owned(), BROKEN_LOG));
    }
    let undone = Undone::new(&file, &log);
    let mut entries: Vec<Entry> = read_all(&undone, &layout)?.into_iter().flatten().collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Look {
        kind: Kind::Native,
        durability: WriteBack::of(maps_directly(path)).name(),
        usage: usage(&layout, &entries),
        unfinished: Some(undone.ranges()),
        entries,
    })
}

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
