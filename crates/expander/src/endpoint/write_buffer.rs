//! The write buffer of an SSD endpoint: lines that are acknowledged and not yet programmed.
//!
//! It is a log of lines, but media are programmed by the page (`SkyByte`, HPCA 2025): when the buffer
//! is half full it is cleaned, from the page whose store has waited longest. All lines of that page
//! leave together; of a page that is not whole the rest has to be read first.

use std::collections::VecDeque;

use crate::line::{Line, Map};

/// Fill from which pages are cleaned: `SkyByte` fills one half of its log while it cleans the other.
const HIGH: f64 = 0.5;

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Copies that wait or are being programmed.
    copies: u32,
    /// One of them waits, so that another store to the line needs no room.
    waits: bool,
}

/// A page that is being programmed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cleaned {
    /// Names the program until it ends.
    pub(crate) program: u32,
    pub(crate) page: u32,
    /// All its lines were in the buffer.
    pub(crate) whole: bool,
}

/// Lines by the page that they belong to.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    lines: Map<Line, Held>,
    waiting: Map<u32, Vec<Line>>,
    /// Pages with waiting lines, in the order of their first.
    order: VecDeque<u32>,
    programming: Vec<Vec<Line>>,
    free: Vec<u32>,
    used: u32,
    capacity: u32,
    page_lines: u32,
}

impl WriteBuffer {
    pub(crate) fn new(capacity: u32, page_lines: u32) -> Self {
        Self {
            lines: Map::default(),
            waiting: Map::default(),
            order: VecDeque::new(),
            programming: Vec::new(),
            free: Vec::new(),
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
        let page = line / self.page_lines;
        let waiting = self.waiting.entry(page).or_default();
        if waiting.is_empty() {
            self.order.push_back(page);
        }
        waiting.push(line);
        true
    }

    pub(crate) fn holds(&self, line: Line) -> bool {
        self.lines.contains_key(&line)
    }

    /// Whether a page is to be programmed.
    pub(crate) fn is_due(&self) -> bool {
        !self.order.is_empty() && self.fill() > HIGH
    }

    /// The next page to program, with all its lines.
    pub(crate) fn clean(&mut self) -> Option<Cleaned> {
        let page = self.order.pop_front()?;
        let lines = self.waiting.remove(&page)?;
        for line in &lines {
            if let Some(held) = self.lines.get_mut(line) {
                held.waits = false;
            }
        }
        let whole = lines.len() == self.page_lines as usize;
        let program = self.free.pop().unwrap_or(self.programming.len() as u32);
        if program as usize == self.programming.len() {
            self.programming.push(lines);
        } else {
            self.programming[program as usize] = lines;
        }
        Some(Cleaned { program, page, whole })
    }

    /// A program has ended: its lines leave.
    pub(crate) fn programmed(&mut self, program: u32) {
        let lines = std::mem::take(&mut self.programming[program as usize]);
        self.free.push(program);
        self.used -= lines.len() as u32;
        for line in lines {
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

    /// Program, page and whether it was whole.
    fn clean(buffer: &mut WriteBuffer) -> (u32, u32, bool) {
        buffer.clean().map(|cleaned| (cleaned.program, cleaned.page, cleaned.whole)).unwrap()
    }

    #[test]
    fn a_line_stored_again_while_it_is_programmed_stays() {
        let mut buffer = WriteBuffer::new(2, 1);
        assert!(buffer.take(5) && buffer.take(5));
        assert_eq!(clean(&mut buffer), (0, 5, true));
        assert!(buffer.take(5));
        assert!(!buffer.take(6), "both places are taken");
        assert_eq!(clean(&mut buffer), (1, 5, true));
        buffer.programmed(0);
        assert!(buffer.holds(5) && buffer.take(6));
        buffer.programmed(1);
        assert!(!buffer.holds(5) && buffer.holds(6));
    }

    #[test]
    fn a_page_takes_all_its_lines_along_and_says_whether_it_is_whole() {
        let mut buffer = WriteBuffer::new(8, 4);
        for line in [900, 4, 77, 5] {
            assert!(buffer.take(line));
        }
        assert!(!buffer.is_due());
        assert!(buffer.take(6) && buffer.take(7));
        assert!(buffer.is_due(), "more than half is taken");
        assert_eq!(clean(&mut buffer), (0, 225, false));
        assert_eq!(clean(&mut buffer), (1, 1, true));
        buffer.programmed(1);
        assert!(!buffer.is_due() && buffer.holds(900) && !buffer.holds(5));
        assert!(buffer.take(5), "the page begins anew");
        assert_eq!([clean(&mut buffer), clean(&mut buffer)], [(1, 19, false), (2, 1, false)]);
    }
}
