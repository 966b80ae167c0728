//! The speculative reader of a root port: which `MemSpecRd` to send for a load in the queue.
//!
//! A `MemSpecRd` names a 256-byte block and how many of them, one to four; nothing smaller can be
//! asked for. The reader remembers what it issued in a ring of such blocks and adapts how far it reads
//! ahead to the endpoint's `DevLoad` (256 to 1024 bytes). A speculative read has no answer; it only
//! makes the endpoint fetch.

use std::collections::VecDeque;

use crate::line::{BLOCK_LINES, Line, Map};
use crate::link::dev_load::Level;
use crate::setup::{Config, Window};

/// Most 256-byte blocks of one speculative read: its two spare address bits hold the count.
const MOST_BLOCKS: u32 = 4;

/// Lines that a speculative read asks for: `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speculation {
    pub(crate) start: Line,
    pub(crate) end: Line,
}

/// The reader's state.
#[derive(Debug)]
pub(crate) struct Reader {
    config: Config,
    window: Window,
    ring: Ring,
    /// Blocks that one read covers, as the load allows.
    reach: u32,
    /// The load was severe, and has not been light since.
    halted: bool,
    /// Reads issued.
    pub(crate) issued: u64,
}

impl Reader {
    pub(crate) fn new(config: Config, window: Window, ring: u32) -> Self {
        Self { config, window, ring: Ring::new(ring as usize), reach: 1, halted: false, issued: 0 }
    }

    /// Adapts to the load that an answer reported: light reads further, overload less; severe load ends
    /// it until the load is light again.
    pub(crate) fn hear(&mut self, level: Level) {
        match level {
            Level::Light => {
                self.halted = false;
                self.reach = (self.reach + 1).min(MOST_BLOCKS);
            }
            Level::Optimal => {}
            Level::Moderate => self.reach = self.reach.saturating_sub(1).max(1),
            Level::Severe => self.halted = true,
        }
    }

    /// What to read ahead for a load; `waiting` are the lines in the read queue, `sent` those in the
    /// memory queue.
    pub(crate) fn speculate<'a>(
        &mut self,
        line: Line,
        waiting: impl Iterator<Item = &'a Line>,
        sent: impl Iterator<Item = &'a Line>,
    ) -> Option<Speculation> {
        if self.config == Config::Cxl {
            return None;
        }
        let controlled = matches!(self.config, Config::CxlDyn | Config::CxlSr | Config::CxlDs);
        if controlled && self.halted {
            return None;
        }
        let trigger = line / BLOCK_LINES;
        if self.ring.holds(trigger) {
            return None;
        }
        let found = match self.config {
            Config::CxlNaive => Some(forward(trigger, 1)),
            Config::CxlMax => Some(forward(trigger, MOST_BLOCKS)),
            Config::CxlDyn => Some(forward(trigger, self.reach)),
            Config::CxlSr | Config::CxlDs => Some(match self.window {
                Window::Steer => self.steered(trigger),
                Window::Literal => self.literal(line, waiting, sent),
            }),
            Config::GpuDram | Config::Uvm | Config::Gds | Config::Cxl => None,
        };
        if found.is_some() {
            self.ring.push(trigger);
            self.issued += 1;
        }
        found
    }

    /// Forward where reads were issued below, backward where they were issued above, both ways where
    /// neither side leads.
    fn steered(&self, trigger: u32) -> Speculation {
        let near = 1..=MOST_BLOCKS;
        let below = near.clone().filter(|&d| trigger >= d && self.ring.holds(trigger - d)).count();
        let above = near.filter(|&d| self.ring.holds(trigger.saturating_add(d))).count();
        match below.cmp(&above) {
            std::cmp::Ordering::Greater => forward(trigger, self.reach),
            std::cmp::Ordering::Less => {
                let start = trigger.saturating_sub(self.reach - 1);
                Speculation { start: start * BLOCK_LINES, end: (trigger + 1) * BLOCK_LINES }
            }
            std::cmp::Ordering::Equal => {
                let start = trigger.saturating_sub(self.reach / 2);
                Speculation {
                    start: start * BLOCK_LINES,
                    end: (start + self.reach.max(trigger - start + 1)) * BLOCK_LINES,
                }
            }
        }
    }

    /// The published text: from `line - reach` to `line + reach`; every request in the memory queue
    /// moves the start a line up, every one in the read queue the end a line down; rounded to blocks.
    /// With full queues the start passes the end; then the block of the request remains.
    fn literal<'a>(
        &self,
        line: Line,
        waiting: impl Iterator<Item = &'a Line>,
        sent: impl Iterator<Item = &'a Line>,
    ) -> Speculation {
        let reach = i64::from(self.reach * BLOCK_LINES);
        let inside = |other: &&Line| (i64::from(**other) - i64::from(line)).abs() <= reach && **other != line;
        let start = i64::from(line) - reach + sent.filter(inside).count() as i64;
        let end = i64::from(line) + reach - waiting.filter(inside).count() as i64;
        let own = i64::from(line / BLOCK_LINES);
        let block = i64::from(BLOCK_LINES);
        let mut first = ((start.max(0) + block / 2) / block).min(own);
        let mut last = ((end.max(0) + block / 2) / block).max(own + 1);
        if last - first > i64::from(MOST_BLOCKS) {
            first = first.max(own + 1 - i64::from(MOST_BLOCKS) / 2);
            last = last.min(first + i64::from(MOST_BLOCKS));
        }
        Speculation { start: first as u32 * BLOCK_LINES, end: last as u32 * BLOCK_LINES }
    }
}

fn forward(trigger: u32, blocks: u32) -> Speculation {
    Speculation { start: trigger * BLOCK_LINES, end: (trigger + blocks) * BLOCK_LINES }
}

/// The latest triggers. A trigger is a 256-byte block, not a range: where ranges were matched, every
/// fourth block of a stream would find nothing to trigger and the look-ahead would run dry.
#[derive(Debug)]
struct Ring {
    order: VecDeque<u32>,
    present: Map<u32, u32>,
    size: usize,
}

impl Ring {
    fn new(size: usize) -> Self {
        Self { order: VecDeque::with_capacity(size + 1), present: Map::default(), size }
    }

    fn holds(&self, trigger: u32) -> bool {
        self.present.contains_key(&trigger)
    }

    fn push(&mut self, trigger: u32) {
        self.order.push_back(trigger);
        *self.present.entry(trigger).or_insert(0) += 1;
        if self.order.len() > self.size {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let Some(oldest) = self.order.pop_front() else { return };
        if let Some(count) = self.present.get_mut(&oldest) {
            *count -= 1;
            if *count == 0 {
                self.present.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(config: Config, window: Window) -> Reader {
        let mut reader = Reader::new(config, window, 256);
        (0..4).for_each(|_| reader.hear(Level::Light));
        reader
    }

    fn none() -> std::slice::Iter<'static, Line> {
        [].iter()
    }

    #[test]
    fn a_window_turns_with_the_stream() {
        let mut reader = reader(Config::CxlSr, Window::Steer);
        let centred = reader.speculate(400, none(), none()).unwrap();
        assert!(centred.start < 400 && centred.end > 404 && centred.end - centred.start == 16);
        assert_eq!(reader.speculate(404, none(), none()), Some(Speculation { start: 404, end: 420 }));
        assert_eq!(reader.speculate(396, none(), none()), Some(Speculation { start: 384, end: 400 }));
    }

    #[test]
    fn every_block_triggers_once() {
        let mut reader = reader(Config::CxlDyn, Window::Steer);
        let issued = (0..64).filter(|&line| reader.speculate(line, none(), none()).is_some()).count();
        assert_eq!(issued, 16);
    }

    #[test]
    fn load_shortens_the_reach_and_severe_load_ends_it() {
        let mut reader = reader(Config::CxlDyn, Window::Steer);
        reader.hear(Level::Moderate);
        assert_eq!(reader.speculate(0, none(), none()), Some(Speculation { start: 0, end: 12 }));
        reader.hear(Level::Severe);
        assert_eq!(reader.speculate(64, none(), none()), None);
        reader.hear(Level::Optimal);
        assert_eq!(reader.speculate(64, none(), none()), None);
        reader.hear(Level::Light);
        assert_eq!(reader.speculate(64, none(), none()), Some(Speculation { start: 64, end: 80 }));
    }

    #[test]
    fn a_literal_window_keeps_the_request_even_when_its_ends_cross() {
        let mut reader = reader(Config::CxlSr, Window::Literal);
        let queue: Vec<Line> = (1001..1016).collect();
        let found = reader.speculate(1000, queue.iter(), queue.iter()).unwrap();
        assert!(found.start <= 1000 && 1000 < found.end && found.end - found.start <= 16);
    }

    #[test]
    fn naive_reads_the_block_of_the_line_whatever_the_load() {
        let mut reader = reader(Config::CxlNaive, Window::Steer);
        reader.hear(Level::Severe);
        assert_eq!(reader.speculate(7, none(), none()), Some(Speculation { start: 4, end: 8 }));
        assert_eq!(reader.speculate(5, none(), none()), None);
    }
}
