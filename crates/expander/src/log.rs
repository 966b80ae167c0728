//! The flash translation layer: a log of pages in blocks that are erased as a whole.
//!
//! Overwritten pages leave holes; when few free blocks are left, the fullest of holes is collected:
//! its live pages are appended again and it is erased. At the start the data lies in order and the
//! spare blocks hold dead data, as in a device that has been overwritten from end to end.

/// Blocks kept back for the pages that a collection moves.
const RESERVE: usize = 1;
/// Free blocks beyond the reserve with which a device in steady state starts.
const AT_START: usize = 2;

/// Where every page lives, and how much of every block is alive.
#[derive(Debug)]
pub(crate) struct Log {
    block_of: Vec<u32>,
    live: Vec<u32>,
    /// Pages appended to a block since it was erased; empty for the blocks of the initial data.
    appended: Vec<Vec<u32>>,
    free: Vec<u32>,
    open: u32,
    fill: u32,
    block_pages: u32,
}

impl Log {
    /// A log that holds `pages` pages in order, with `spare` more space.
    pub(crate) fn new(pages: u32, block_pages: u32, spare: f64) -> Self {
        let filled = pages.div_ceil(block_pages) as usize;
        let extra = ((filled as f64 * spare) as usize).max(RESERVE + AT_START + 1);
        let blocks = filled + extra;
        let block_of = (0..pages).map(|page| page / block_pages).collect();
        let mut live = vec![block_pages; filled];
        live[filled - 1] = pages - (filled as u32 - 1) * block_pages;
        live.resize(blocks, 0);
        let free = (filled as u32 + 1..blocks as u32).rev().take(RESERVE + AT_START).collect();
        Self { block_of, live, appended: vec![Vec::new(); blocks], free, open: filled as u32, fill: 0, block_pages }
    }

    /// Whether a page more may be appended without the reserve.
    pub(crate) fn has_room(&self) -> bool {
        self.fill < self.block_pages || self.free.len() > RESERVE
    }

    /// Whether a collection is due.
    pub(crate) fn is_short(&self) -> bool {
        self.free.len() <= RESERVE
    }

    /// Writes a page at the end of the log.
    pub(crate) fn append(&mut self, page: u32) {
        let Some(block) = self.block_of.get_mut(page as usize) else { return };
        if self.fill == self.block_pages {
            // The callers keep the reserve; without any block the open one is overfilled.
            let Some(next) = self.free.pop() else { return };
            self.open = next;
            self.fill = 0;
        }
        self.live[*block as usize] -= 1;
        *block = self.open;
        self.live[self.open as usize] += 1;
        self.appended[self.open as usize].push(page);
        self.fill += 1;
    }

    /// The block with the fewest live pages, and how many those are.
    pub(crate) fn victim(&self) -> Option<(u32, u32)> {
        let closed = (0..self.live.len() as u32).filter(|block| *block != self.open && !self.free.contains(block));
        closed.map(|block| (self.live[block as usize], block)).min().map(|(live, block)| (block, live))
    }

    /// Moves a block's live pages to the end of the log and erases it.
    pub(crate) fn collect(&mut self, block: u32) {
        for page in self.pages_of(block) {
            if self.block_of[page as usize] == block {
                self.append(page);
            }
        }
        self.free.insert(0, block);
    }

    fn pages_of(&mut self, block: u32) -> Vec<u32> {
        let appended = std::mem::take(&mut self.appended[block as usize]);
        if !appended.is_empty() {
            return appended;
        }
        let start = block.saturating_mul(self.block_pages).min(self.block_of.len() as u32);
        (start..(start + self.block_pages).min(self.block_of.len() as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Appends and collections never lose a page: every page lives in one block, and the live
        /// counts say how many live where.
        #[test]
        fn every_page_lives_in_one_block(writes in prop::collection::vec(0_u32..64, 1..400)) {
            let mut log = Log::new(64, 8, 0.25);
            for page in writes {
                while log.is_short() {
                    let (block, live) = log.victim().unwrap();
                    prop_assert!(live < 8, "collecting a full block gains nothing");
                    log.collect(block);
                }
                log.append(page);
                let mut live = vec![0; log.live.len()];
                log.block_of.iter().for_each(|&block| live[block as usize] += 1);
                prop_assert_eq!(&live, &log.live);
                prop_assert!(log.free.iter().all(|&block| live[block as usize] == 0));
            }
        }
    }
}
