//! State of every page, as a structure of arrays: 13 bytes a page.
//!
//! One byte of flags is all that a visit reads; stamps and list links are touched by faults, scans
//! and reclaim only.

use crate::kernel::reclaim::{List, Run};
use crate::workload::sweep::LastSweep;

/// Twice the node of the page: where a visit's code says whether it writes.
pub(crate) const NODE: u8 = 0b1110;
/// Instead of a node: not mapped yet.
pub(crate) const ABSENT: usize = 7;
/// What a page is before it is touched.
const FRESH: u8 = NODE | IDLE;
/// Not visited since its accessed bit was last cleared.
pub(crate) const IDLE: u8 = 1;
/// The entry is `PROT_NONE`.
pub(crate) const PROTECTED: u8 = 1 << 4;
/// `PG_referenced`.
pub(crate) const REFERENCED: u8 = 1 << 5;
/// `PG_active`.
pub(crate) const ACTIVE: u8 = 1 << 6;
/// Was demoted.
pub(crate) const DEMOTED: u8 = 1 << 7;
/// Pages per group of those that a sampling policy tells apart: 2 MiB.
pub(crate) const GROUP: usize = 512;
/// End of a list.
const NIL: u32 = u32::MAX;
/// In place of the next page: stands on no list.
const LOOSE: u32 = u32::MAX - 1;

/// Bytes of state that one page takes.
pub const BYTES_PER_PAGE: usize = 1 + 4 + 4 + 4;

/// All pages.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    pub(crate) flags: Vec<u8>,
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
            flags: vec![FRESH; pages],
            stamp: vec![0; pages],
            next: vec![LOOSE; links],
            prev: vec![NIL; links],
            linked: listed,
            lists: vec![[empty; 2]; nodes],
        }
    }

    /// Adds pages that are not mapped.
    pub(crate) fn grow(&mut self, pages: usize) {
        self.flags.resize(pages, FRESH);
        self.stamp.resize(pages, 0);
        if self.linked {
            self.next.resize(pages, LOOSE);
            self.prev.resize(pages, NIL);
        }
    }

    pub(crate) fn node(&self, page: usize) -> usize {
        node_of(self.flags[page])
    }

    pub(crate) fn set_node(&mut self, page: usize, node: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "at most seven nodes")]
        let bits = (node << 1) as u8;
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
        self.flags[at] = (self.flags[at] & !ACTIVE) | active;
    }

    /// Takes a page off the list that it stands on, if it does.
    pub(crate) fn unlink(&mut self, page: u32, node: usize) {
        let at = page as usize;
        if self.next[at] == LOOSE {
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
        self.next[at] = LOOSE;
    }

    /// Takes the oldest page of a list.
    pub(crate) fn take(&mut self, node: usize, list: List) -> Option<Run> {
        let page = self.lists[node][slot(list)].tail;
        if page == NIL {
            return None;
        }
        self.unlink(page, node);
        let referenced = self.flags[page as usize] & REFERENCED != 0;
        // Each page has a bit of its own.
        Some(Run { id: page, pages: 1.0, referenced, cleared: 0.0, swept: LastSweep::default() })
    }
}

/// Node that flags name.
pub(crate) fn node_of(flags: u8) -> usize {
    usize::from((flags & NODE) >> 1)
}

fn slot(list: List) -> usize {
    match list {
        List::Inactive => 0,
        List::Active => 1,
    }
}
