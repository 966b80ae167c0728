//! Miss-status registers: which lines the last-level cache is fetching, and for whom.

use std::collections::hash_map::Entry;

use smallvec::{SmallVec, smallvec};

use crate::ids::WarpId;
use crate::line::{Line, Map};

/// A warp that waits, and the least that its load must bring (see `ledger.rs`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiter {
    pub(crate) warp: WarpId,
    pub(crate) least: u64,
}

/// A line on its way.
#[derive(Debug)]
pub(crate) struct Miss {
    pub(crate) waiters: SmallVec<[Waiter; 2]>,
    /// The line was stored to meanwhile: what comes is not to be cached, and nobody may join.
    pub(crate) overtaken: bool,
}

/// What becomes of a load that misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    /// It waits for a line that is on its way already.
    Merged,
    /// The line is to be fetched.
    First,
    /// It has to try again later.
    Refused,
}

/// All registers.
#[derive(Debug)]
pub(crate) struct Misses {
    lines: Map<Line, Miss>,
    most: usize,
}

impl Misses {
    pub(crate) fn new(most: u32) -> Self {
        Self { lines: Map::default(), most: most as usize }
    }

    /// Lets a load wait for `line`, if it can.
    pub(crate) fn join(&mut self, line: Line, waiter: Waiter) -> Joined {
        let full = self.lines.len() >= self.most;
        match self.lines.entry(line) {
            Entry::Occupied(miss) if miss.get().overtaken => Joined::Refused,
            Entry::Occupied(mut miss) => {
                miss.get_mut().waiters.push(waiter);
                Joined::Merged
            }
            Entry::Vacant(_) if full => Joined::Refused,
            Entry::Vacant(place) => {
                place.insert(Miss { waiters: smallvec![waiter], overtaken: false });
                Joined::First
            }
        }
    }

    /// The line is stored to.
    pub(crate) fn overtake(&mut self, line: Line) {
        if let Some(miss) = self.lines.get_mut(&line) {
            miss.overtaken = true;
        }
    }

    /// The line has come.
    pub(crate) fn take(&mut self, line: Line) -> Option<Miss> {
        self.lines.remove(&line)
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no more lines are on their way than there are registers.
    pub(crate) fn is_within_bounds(&self) -> bool {
        self.lines.len() <= self.most
    }
}
