//! The write buffer of an SSD endpoint: lines that are acknowledged and not yet programmed.
//!
//! Lines of one page wait together, so that a page that fills up is programmed once; the oldest page
//! goes, full or not, when the buffer gets full.

use std::collections::VecDeque;

use crate::line::{Line, Map};

/// Fill from which pages are programmed that are not complete.
const HIGH: f64 = 0.5;

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Copies that wait or are being programmed.
    copies: u32,
    /// One of them waits, so that another store to the line needs no room.
    waits: bool,
}

/// A page that is being programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) page: u32,
    /// Lines that are missing have to be read first.
    pub(crate) partial: bool,
}

/// Lines by page, pages in the order of their first line.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    lines: Map<Line, Held>,
    pages: Map<u32, Vec<Line>>,
    waiting: VecDeque<u32>,
    complete: VecDeque<u32>,
    programming: VecDeque<Vec<Line>>,
    used: u32,
    capacity: u32,
    page_lines: u32,
}

impl WriteBuffer {
    pub(crate) fn new(capacity: u32, page_lines: u32) -> Self {
        Self {
            lines: Map::default(),
            pages: Map::default(),
            waiting: VecDeque::new(),
            complete: VecDeque::new(),
            programming: VecDeque::new(),
            used: 0,
            capacity,
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
        self.collect(line);
        true
    }

    fn collect(&mut self, line: Line) {
        let page = line / self.page_lines;
        let together = self.pages.entry(page).or_default();
        together.push(line);
        if together.len() == 1 {
            self.waiting.push_back(page);
        }
        if together.len() == self.page_lines as usize {
            self.complete.push_back(page);
        }
    }

    pub(crate) fn holds(&self, line: Line) -> bool {
        self.lines.contains_key(&line)
    }

    /// Whether a page is to be programmed.
    pub(crate) fn is_due(&self) -> bool {
        !self.complete.is_empty() || (self.fill() > HIGH && !self.pages.is_empty())
    }

    /// The page to program: one that is complete, or the oldest.
    pub(crate) fn program(&mut self) -> Option<Program> {
        let page = self.complete.pop_front().or_else(|| self.oldest())?;
        let lines = self.pages.remove(&page)?;
        for line in &lines {
            if let Some(held) = self.lines.get_mut(line) {
                held.waits = false;
            }
        }
        let partial = lines.len() < self.page_lines as usize;
        self.programming.push_back(lines);
        Some(Program { page, partial })
    }

    /// The oldest page that has not gone yet as a complete one.
    fn oldest(&mut self) -> Option<u32> {
        while let Some(page) = self.waiting.pop_front() {
            if self.pages.contains_key(&page) {
                return Some(page);
            }
        }
        None
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
        assert_eq!(buffer.program(), Some(Program { page: 5, partial: false }));
        assert!(buffer.take(5));
        assert!(!buffer.take(6), "both places are taken");
        buffer.programmed();
        assert!(buffer.holds(5) && buffer.take(6));
        buffer.program();
        buffer.programmed();
        assert!(!buffer.holds(5));
    }

    #[test]
    fn complete_pages_go_first_and_the_oldest_when_room_is_short() {
        let mut buffer = WriteBuffer::new(8, 4);
        for line in [0, 4, 5, 6] {
            assert!(buffer.take(line));
        }
        assert!(!buffer.is_due());
        assert!(buffer.take(7));
        assert_eq!(buffer.program(), Some(Program { page: 1, partial: false }));
        assert!(buffer.is_due(), "more than half is taken until the program ends");
        assert_eq!(buffer.program(), Some(Program { page: 0, partial: true }));
        buffer.programmed();
        buffer.programmed();
        assert!(!buffer.is_due() && buffer.program().is_none());
    }
}
