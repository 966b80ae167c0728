//! The last-level cache with what is under way around it: misses, write-backs, and accesses that found no room.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use tierloom_model::units::LINE_BYTES;

use super::cores::Access;
use super::mshr::Misses;
use crate::cache::Cache;
use crate::line::{Line, Map};
use crate::parameters::Gpu;
use crate::time::{Ps, from_ns};

/// The cache and its queues.
#[derive(Debug)]
pub(crate) struct LastLevel {
    pub(crate) cache: Cache,
    /// Time that an answer takes.
    pub(crate) time: Ps,
    /// Writes of a line that is stored through the cache; 0 where the cache keeps it.
    pub(crate) line_stores: usize,
    pub(crate) misses: Misses,
    pub(crate) leaving: WriteBacks,
    /// Accesses that found no room; each stalls its core.
    pub(crate) stalled: VecDeque<Access>,
}

/// Lines on their way from the cache to memory.
#[derive(Debug)]
pub(crate) struct WriteBacks {
    lines: Map<Line, Leaving>,
    count: usize,
    most: usize,
}

/// Writebacks of one line that are under way: how many, and the latest data.
#[derive(Debug, Clone, Copy, Default)]
struct Leaving {
    count: u32,
    value: u64,
}

impl LastLevel {
    pub(crate) fn new(gpu: &Gpu) -> Self {
        Self {
            cache: Cache::new(gpu.llc_bytes.value / LINE_BYTES, gpu.llc_ways.value),
            time: from_ns(gpu.llc_ns.value),
            line_stores: gpu.line_stores.value.min(gpu.writebacks.value) as usize,
            misses: Misses::new(gpu.mshrs.value),
            leaving: WriteBacks { lines: Map::default(), count: 0, most: gpu.writebacks.value as usize },
            stalled: VecDeque::new(),
        }
    }

    /// Whether a line finds no place because the one that would leave is dirty and cannot.
    pub(crate) fn is_blocked_by_victim(&self, line: Line) -> bool {
        !self.leaving.has_room(1) && self.cache.victim(line).is_some_and(|victim| victim.dirty)
    }

    /// Whether no more is under way than it can keep track of.
    pub(crate) fn is_within_bounds(&self) -> bool {
        self.misses.is_within_bounds() && self.leaving.count <= self.leaving.most
    }

    /// Misses and accesses that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.misses.len() + self.stalled.len()
    }
}

impl WriteBacks {
    /// Whether so many more can leave.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.count + more <= self.most
    }

    /// The latest data of a line that is on its way.
    pub(crate) fn value(&self, line: Line) -> Option<u64> {
        // Most of the time nothing leaves, and every load asks.
        if self.count == 0 { None } else { self.lines.get(&line).map(|leaving| leaving.value) }
    }

    /// A line leaves.
    pub(crate) fn start(&mut self, line: Line, value: u64) {
        let leaving = self.lines.entry(line).or_default();
        *leaving = Leaving { count: leaving.count + 1, value };
        self.count += 1;
    }

    /// One write of a line has arrived.
    pub(crate) fn end(&mut self, line: Line) {
        self.count -= 1;
        if let Entry::Occupied(mut leaving) = self.lines.entry(line) {
            leaving.get_mut().count -= 1;
            if leaving.get().count == 0 {
                leaving.remove();
            }
        }
    }
}
