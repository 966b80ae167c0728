//! State of every page, as a structure of arrays: 14 bytes a page.
//!
//! Two bytes of flags are all that a visit reads; stamps and list links are touched by faults, scans
//! and reclaim only.

use crate::reclaim::{List, Run};

/// Node of the page.
pub(crate) const NODE: u16 = 0x7;
/// Not mapped yet.
pub(crate) const ABSENT: u16 = 0x7;
/// The entry is `PROT_NONE`.
pub(crate) const PROTECTED: u16 = 1 << 3;
/// Visited since the bit was last cleared.
pub(crate) const ACCESSED: u16 = 1 << 4;
/// `PG_referenced`.
pub(crate) const REFERENCED: u16 = 1 << 5;
/// `PG_active`.
pub(crate) const ACTIVE: u16 = 1 << 6;
/// Was demoted.
pub(crate) const DEMOTED: u16 = 1 << 7;
/// Stands on a list.
pub(crate) const LISTED: u16 = 1 << 8;

/// End of a list.
const NIL: u32 = u32::MAX;

/// Bytes of state that one page takes.
pub const BYTES_PER_PAGE: usize = 2 + 4 + 4 + 4;

/// All pages.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    pub(crate) flags: Vec<u16>,
    /// Scan time in ms on slow nodes; the last thread that faulted, plus 1, elsewhere.
    pub(crate) stamp: Vec<u32>,
    next: Vec<u32>,
    prev: Vec<u32>,
    linked: bool,
    /// By node: inactive and active list.
    lists: Vec<[Ends; 2]>,
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
    length: u32,
}

impl Pages {
    /// `pages` pages that are not mapped; links only where lists are needed.
    pub(crate) fn new(pages: usize, nodes: usize, listed: bool) -> Self {
        let links = if listed { pages } else { 0 };
        let empty = Ends { head: NIL, tail: NIL, length: 0 };
        Self {
            flags: vec![ABSENT; pages],
            stamp: vec![0; pages],
            next: vec![NIL; links],
            prev: vec![NIL; links],
            linked: listed,
            lists: vec![[empty; 2]; nodes],
        }
    }

    /// Adds pages that are not mapped.
    pub(crate) fn grow(&mut self, pages: usize) {
        self.flags.resize(pages, ABSENT);
        self.stamp.resize(pages, 0);
        if self.linked {
            self.next.resize(pages, NIL);
            self.prev.resize(pages, NIL);
        }
    }

    pub(crate) fn node(&self, page: usize) -> usize {
        usize::from(self.flags[page] & NODE)
    }

    pub(crate) fn set_node(&mut self, page: usize, node: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "at most seven nodes")]
        let bits = node as u16;
        self.flags[page] = (self.flags[page] & !NODE) | bits;
    }

    pub(crate) fn length(&self, node: usize, list: List) -> f64 {
        f64::from(self.lists[node][slot(list)].length)
    }

    /// Puts a page at the head of a list of its node.
    pub(crate) fn link(&mut self, page: u32, node: usize, list: List) {
        let at = page as usize;
        let ends = &mut self.lists[node][slot(list)];
        (self.next[at], self.prev[at]) = (ends.head, NIL);
        if ends.head == NIL {
            ends.tail = page;
        } else {
            self.prev[ends.head as usize] = page;
        }
        ends.head = page;
        ends.length += 1;
        let active = if list == List::Active { ACTIVE } else { 0 };
        self.flags[at] = (self.flags[at] & !ACTIVE) | LISTED | active;
    }

    /// Takes a page off the list that it stands on, if it does.
    pub(crate) fn unlink(&mut self, page: u32, node: usize) {
        let at = page as usize;
        if self.flags[at] & LISTED == 0 {
            return;
        }
        let list = if self.flags[at] & ACTIVE == 0 { List::Inactive } else { List::Active };
        let ends = &mut self.lists[node][slot(list)];
        let (next, prev) = (self.next[at], self.prev[at]);
        if prev == NIL {
            ends.head = next;
        } else {
            self.next[prev as usize] = next;
        }
        if next == NIL {
            ends.tail = prev;
        } else {
            self.prev[next as usize] = prev;
        }
        ends.length -= 1;
        self.flags[at] &= !LISTED;
    }

    /// Takes the oldest page of a list.
    pub(crate) fn take(&mut self, node: usize, list: List) -> Option<Run> {
        let page = self.lists[node][slot(list)].tail;
        if page == NIL {
            return None;
        }
        self.unlink(page, node);
        let referenced = self.flags[page as usize] & REFERENCED != 0;
        Some(Run { id: page, pages: 1.0, referenced, cleared_s: 0.0 })
    }
}

fn slot(list: List) -> usize {
    match list {
        List::Inactive => 0,
        List::Active => 1,
    }
}
