//! The deterministic store: writes that end in reserved GPU memory, and reach the SSD when it has time.
//!
//! A store is done when GPU memory has it. It goes to the endpoint at once while that is not
//! overloaded and few are under way; otherwise it waits on a stack, and is written back in the
//! background when the load has dropped. The address tree says which lines GPU memory holds: loads
//! of those never reach the endpoint. The tree lives in a bounded SRAM; when it is full, stores to
//! other lines go to the endpoint as without it.

use std::collections::hash_map::Entry;

use crate::line::{Line, Map};
use crate::link::dev_load::Level;
use crate::parameters::Store as Parameters;

#[derive(Debug, Clone, Copy)]
struct Slot {
    version: u64,
    value: u64,
    stacked: bool,
}

/// What becomes of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// In GPU memory, and to be sent to the endpoint now.
    Sent(Flight),
    /// In GPU memory only.
    Buffered,
    /// The tree is full: to the endpoint, and the store waits for it.
    Blocking,
}

/// A line on its way to the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) line: Line,
    pub(crate) version: u64,
    pub(crate) value: u64,
}

/// Stores that the endpoint has not acknowledged.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// A search tree in the hardware; nothing here asks for its order.
    tree: Map<Line, Slot>,
    stack: Vec<Line>,
    under_way: u32,
    versions: u64,
    most_under_way: u32,
    most_entries: usize,
    level: Level,
    /// Deepest stack.
    pub(crate) deepest: usize,
    /// Stores that only GPU memory took at first.
    pub(crate) buffered: u64,
    /// Stores that found the tree full.
    pub(crate) overflowed: u64,
}

impl Buffer {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            tree: Map::default(),
            stack: Vec::new(),
            under_way: 0,
            versions: 0,
            most_under_way: parameters.outstanding.value.max(1),
            most_entries: parameters.tree_entries.value as usize,
            level: Level::Light,
            deepest: 0,
            buffered: 0,
            overflowed: 0,
        }
    }

    /// Takes note of the endpoint's load.
    pub(crate) fn hear(&mut self, level: Level) {
        self.level = level;
    }

    /// Takes a store of `value`.
    pub(crate) fn store(&mut self, line: Line, value: u64) -> Fate {
        let full = self.tree.len() >= self.most_entries;
        let open = self.may_send() && self.stack.is_empty();
        let place = self.tree.entry(line);
        if full && matches!(place, Entry::Vacant(_)) {
            self.overflowed += 1;
            return Fate::Blocking;
        }
        self.versions += 1;
        let version = self.versions;
        let stacked = matches!(&place, Entry::Occupied(slot) if slot.get().stacked);
        let wait = stacked || !open;
        place.insert_entry(Slot { version, value, stacked: wait });
        if !wait {
            self.under_way += 1;
            return Fate::Sent(Flight { line, version, value });
        }
        if !stacked {
            self.stack.push(line);
            self.deepest = self.deepest.max(self.stack.len());
        }
        self.buffered += 1;
        Fate::Buffered
    }

    /// The value of a line that GPU memory holds.
    pub(crate) fn holds(&self, line: Line) -> Option<u64> {
        if self.tree.is_empty() { None } else { self.tree.get(&line).map(|slot| slot.value) }
    }

    /// The endpoint has a line: forget it, unless it was stored again meanwhile.
    pub(crate) fn acknowledge(&mut self, line: Line, version: u64) {
        self.under_way -= 1;
        if let Entry::Occupied(slot) = self.tree.entry(line)
            && slot.get().version == version
            && !slot.get().stacked
        {
            slot.remove();
        }
    }

    /// The next line to write back, the latest first, while the endpoint's load allows.
    pub(crate) fn flush(&mut self) -> Option<Flight> {
        if !self.may_send() {
            return None;
        }
        let line = self.stack.pop()?;
        let slot = self.tree.get_mut(&line)?;
        slot.stacked = false;
        self.under_way += 1;
        Some(Flight { line, version: slot.version, value: slot.value })
    }

    /// Lines that wait to be written back.
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Lines that the endpoint has not acknowledged.
    pub(crate) fn entries(&self) -> usize {
        self.tree.len()
    }

    /// Whether the tree and the writes under way are within their bounds.
    pub(crate) fn is_within_bounds(&self) -> bool {
        self.tree.len() <= self.most_entries && self.under_way <= self.most_under_way
    }

    /// The line to write back next, where none is under way.
    pub(crate) fn stuck(&self) -> Option<Line> {
        self.stack.last().copied().filter(|_| self.under_way == 0)
    }

    fn may_send(&self) -> bool {
        self.under_way < self.most_under_way && self.level < Level::Moderate
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tierloom_model::{Figure, Kind};

    use super::*;

    fn buffer(entries: u32) -> Buffer {
        let count = |value| Figure::new(value, Kind::Assumed, "", "");
        let retry_ns = Figure::new(1.0, Kind::Assumed, "", "");
        Buffer::new(&Parameters { outstanding: count(2), tree_entries: count(entries), retry_ns })
    }

    proptest! {
        /// Whatever the order of stores, acknowledgements and loads: the last value of every line is
        /// in GPU memory or at the endpoint, and nothing is lost.
        #[test]
        fn the_last_value_is_never_lost(steps in prop::collection::vec((0_u8..4, 0_u32..6), 1..200)) {
            let (mut buffer, mut endpoint, mut latest) = (buffer(4), BTreeMap::new(), BTreeMap::new());
            let mut flights: Vec<Flight> = Vec::new();
            for (value, (what, line)) in (1..).zip(steps) {
                match what {
                    0 => {
                        latest.insert(line, value);
                        match buffer.store(line, value) {
                            Fate::Sent(flight) => flights.push(flight),
                            Fate::Buffered => {}
                            Fate::Blocking => { endpoint.insert(line, value); }
                        }
                    }
                    1 if !flights.is_empty() => {
                        let flight = flights.remove(0);
                        endpoint.insert(flight.line, flight.value);
                        buffer.acknowledge(flight.line, flight.version);
                    }
                    2 => buffer.hear(if line < 3 { Level::Light } else { Level::Severe }),
                    _ => flights.extend(buffer.flush()),
                }
                for (line, value) in &latest {
                    let held = buffer.holds(*line).or_else(|| endpoint.get(line).copied());
                    prop_assert_eq!(held, Some(*value));
                }
                prop_assert!(buffer.entries() <= 4);
            }
        }
    }
}
