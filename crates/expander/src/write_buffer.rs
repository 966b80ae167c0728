//! The write buffer of an SSD endpoint: lines that are acknowledged and not yet programmed.
//!
//! It is a log: a line that waits takes another store of itself without room, and when the buffer is
//! half full, the oldest lines are programmed together, as many as a page holds, wherever they belong.
//! Reading the rest of every line's own page first would cost a program for each random store.

use std::collections::VecDeque;

use crate::line::{Line, Map};

/// Fill from which lines are programmed.
const HIGH: f64 = 0.5;

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Copies that wait or are being programmed.
    copies: u32,
    /// One of them waits, so that another store to the line needs no room.
    waits: bool,
}

/// Lines in the order in which they came.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    lines: Map<Line, Held>,
    waiting: VecDeque<Line>,
    programming: VecDeque<Vec<Line>>,
    used: u32,
    capacity: u32,
    page_lines: u32,
}

impl WriteBuffer {
    pub(crate) fn new(capacity: u32, page_lines: u32) -> Self {
        Self {
            lines: Map::default(),
            waiting: VecDeque::new(),
            programming: VecDeque::new(),
            used: 0,
            capacity: capacity.max(page_lines),
            page_lines,
        }
    }

    /// Takes a line; false when there is no room.
    pub(crate) fn take(&mut self, line: Line) -> bool {
        let held = self.lines.get(&line).copied().unwrap_or_default();
        if held.waits {
            return true;
        }
        if self.used == self.capacity {
            return false;
        }
        self.lines.insert(line, Held { copies: held.copies + 1, waits: true });
        self.used += 1;
        self.waiting.push_back(line);
        true
    }

    pub(crate) fn holds(&self, line: Line) -> bool {
        self.lines.contains_key(&line)
    }

    /// Whether a page is to be programmed.
    pub(crate) fn is_due(&self) -> bool {
        self.waiting.len() >= self.page_lines as usize && self.fill() > HIGH
    }

    /// The lines of the next page to program: the oldest.
    pub(crate) fn program(&mut self) -> &[Line] {
        let count = self.waiting.len().min(self.page_lines as usize);
        let page: Vec<Line> = self.waiting.drain(..count).collect();
        for line in &page {
            if let Some(held) = self.lines.get_mut(line) {
                held.waits = false;
            }
        }
        self.programming.push_back(page);
        self.programming.back().map_or(&[], Vec::as_slice)
    }

    /// The oldest program has ended: its lines leave.
    pub(crate) fn programmed(&mut self) {
        let page = self.programming.pop_front().unwrap_or_default();
        self.used -= page.len() as u32;
        for line in page {
            if let Some(held) = self.lines.get_mut(&line) {
                held.copies -= 1;
                if held.copies == 0 {
                    self.lines.remove(&line);
                }
            }
        }
    }

    /// Share that is taken.
    pub(crate) fn fill(&self) -> f64 {
        f64::from(self.used) / f64::from(self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stored_again_while_it_is_programmed_stays() {
        let mut buffer = WriteBuffer::new(2, 1);
        assert!(buffer.take(5) && buffer.take(5));
        assert_eq!(buffer.program(), [5]);
        assert!(buffer.take(5));
        assert!(!buffer.take(6), "both places are taken");
        buffer.programmed();
        assert!(buffer.holds(5) && buffer.take(6));
        buffer.program();
        buffer.programmed();
        assert!(!buffer.holds(5));
    }

    #[test]
    fn the_oldest_lines_share_a_page_wherever_they_belong() {
        let mut buffer = WriteBuffer::new(8, 4);
        for line in [900, 4, 77] {
            assert!(buffer.take(line));
        }
        assert!(!buffer.is_due());
        assert!(buffer.take(5) && buffer.take(6));
        assert!(buffer.is_due(), "more than half is taken");
        assert_eq!(buffer.program(), [900, 4, 77, 5]);
        assert!(!buffer.is_due());
        buffer.programmed();
        assert!(buffer.holds(6) && !buffer.holds(900));
    }
}
