//! The checks: data carried along with every request, so that a lost or stale line is found.
//!
//! Every store gets a number; a line's value is the number of its last store. A load must bring a
//! value no older than the last store before it was issued, and no younger than the last store
//! before it was answered. Off by default, always on in tests.

use std::collections::BTreeMap;

use crate::error::ExpanderError;
use crate::line::{Line, Map};

/// Values by place.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    stores: u64,
    latest: Map<Line, u64>,
    cached: Map<Line, u64>,
    /// GPU memory, and for paged configurations what of it is on the GPU.
    near: BTreeMap<Line, u64>,
    /// Endpoints or host.
    far: Map<Line, u64>,
    asked: u64,
    answered: u64,
    fault: Option<String>,
}

impl Ledger {
    /// A store changes the cached line.
    pub(crate) fn store(&mut self, line: Line) {
        self.stores += 1;
        self.latest.insert(line, self.stores);
        self.cached.insert(line, self.stores);
    }

    /// A load has been taken.
    pub(crate) fn ask(&mut self) {
        self.asked += 1;
    }

    /// What a load must bring at least: the last store to the line.
    pub(crate) fn latest(&self, line: Line) -> u64 {
        self.latest.get(&line).copied().unwrap_or(0)
    }

    /// A load is answered with `value`.
    pub(crate) fn answer(&mut self, line: Line, least: u64, value: u64) {
        self.answered += 1;
        let most = self.latest(line);
        if !(least..=most).contains(&value) && self.fault.is_none() {
            self.fault = Some(format!("line {line} gave store {value}, not one of {least} to {most}"));
        }
    }

    /// Value of a line in the last-level cache.
    pub(crate) fn cached(&self, line: Line) -> u64 {
        self.cached.get(&line).copied().unwrap_or(0)
    }

    /// The last-level cache takes or drops a line.
    pub(crate) fn cache(&mut self, line: Line, value: Option<u64>) {
        match value {
            Some(value) => self.cached.insert(line, value),
            None => self.cached.remove(&line),
        };
    }

    /// Value of a line in GPU memory.
    pub(crate) fn near(&self, line: Line) -> u64 {
        self.near.get(&line).copied().unwrap_or(0)
    }

    /// GPU memory takes a line.
    pub(crate) fn put_near(&mut self, line: Line, value: u64) {
        self.near.insert(line, value);
    }

    /// Value of a line at its endpoint.
    pub(crate) fn far(&self, line: Line) -> u64 {
        self.far.get(&line).copied().unwrap_or(0)
    }

    /// An endpoint takes a line.
    pub(crate) fn put_far(&mut self, line: Line, value: u64) {
        self.far.insert(line, value);
    }

    /// A page moves from the host to the GPU.
    pub(crate) fn page_in(&mut self, lines: std::ops::Range<Line>) {
        for line in lines {
            let value = self.far(line);
            self.near.insert(line, value);
        }
    }

    /// A page leaves the GPU; what was stored in it moves to the host if it is written back.
    pub(crate) fn page_out(&mut self, lines: std::ops::Range<Line>, write_back: bool) {
        for line in lines {
            if let Some(value) = self.near.remove(&line)
                && write_back
            {
                self.far.insert(line, value);
            }
        }
    }

    /// The first promise that was broken.
    pub(crate) fn verdict(&self) -> Result<(), ExpanderError> {
        if let Some(fault) = &self.fault {
            return Err(ExpanderError::Broken(fault.clone()));
        }
        if self.asked != self.answered {
            let text = format!("{} loads, {} answers", self.asked, self.answered);
            return Err(ExpanderError::Broken(text));
        }
        Ok(())
    }

    /// Loads and stores that were checked.
    pub(crate) fn checked(&self) -> u64 {
        self.answered + self.stores
    }
}
