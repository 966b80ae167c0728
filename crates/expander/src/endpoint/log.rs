//! The flash translation layer: a log of pages in blocks that are erased as a whole.
//!
//! Overwritten pages leave holes; when few free blocks are left, the fullest of holes is collected:
//! its live pages are appended again and it is erased. The device starts as one that has been in use
//! for long, in the steady state of random writes, as `MQSim` preconditions it: the older a block, the
//! more of its pages have been overwritten since, and what lies together has nothing in common.

use tierloom_model::hash::nth;

/// Blocks kept back for the pages that a collection moves.
const RESERVE: usize = 1;
/// Free blocks beyond the reserve with which a device in steady state starts.
const AT_START: usize = 2;

/// Where every page lives, and how much of every block is alive.
#[derive(Debug)]
pub(crate) struct Log {
    block_of: Vec<u32>,
    live: Vec<u32>,
    /// Pages appended to a block since it was erased; those that have been overwritten may be missing.
    appended: Vec<Vec<u32>>,
    free: Vec<u32>,
    open: u32,
    fill: u32,
    block_pages: u32,
}

/// A block to be erased; the fewer live pages the better, then the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Victim {
    /// Pages to be moved before.
    pub(crate) live: u32,
    pub(crate) block: u32,
}

impl Log {
    /// A log that holds `pages` pages, with `spare` times more space.
    pub(crate) fn aged(pages: u32, block_pages: u32, spare: f64) -> Self {
        let filled = pages.div_ceil(block_pages);
        let extra = ((f64::from(filled) * spare) as u32).max((RESERVE + AT_START) as u32 + 1);
        let blocks = (filled + extra) as usize;
        let closed = blocks - RESERVE - AT_START - 1;
        let mut log = Self {
            block_of: vec![0; pages as usize],
            live: vec![0; blocks],
            appended: vec![Vec::new(); blocks],
            free: (closed as u32 + 1..blocks as u32).rev().collect(),
            open: closed as u32,
            fill: 0,
            block_pages,
        };
        log.scatter(closed);
        log
    }

    /// Deals all pages, in no order, to the closed blocks, the oldest of which is the first.
    fn scatter(&mut self, closed: usize) {
        let mut pages: Vec<u32> = (0..self.block_of.len() as u32).collect();
        for at in (1..pages.len()).rev() {
            pages.swap(at, (nth(0, at as u64) % (at as u64 + 1)) as usize);
        }
        let mut dealt = 0;
        for block in 0..closed {
            let up_to = older(pages.len(), self.block_pages, closed, block + 1);
            let mine = &pages[dealt..up_to];
            for &page in mine {
                self.block_of[page as usize] = block as u32;
            }
            self.live[block] = mine.len() as u32;
            self.appended[block] = mine.to_vec();
            dealt = up_to;
        }
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

    /// The block with the fewest live pages.
    pub(crate) fn victim(&self) -> Option<Victim> {
        let closed = (0..self.live.len() as u32).filter(|block| *block != self.open && !self.free.contains(block));
        closed.map(|block| Victim { live: self.live[block as usize], block }).min()
    }

    /// Moves a block's live pages to the end of the log and erases it.
    pub(crate) fn collect(&mut self, block: u32) {
        for page in std::mem::take(&mut self.appended[block as usize]) {
            if self.block_of[page as usize] == block {
                self.append(page);
            }
        }
        self.free.insert(0, block);
    }
}

/// Live pages of the `count` oldest of `closed` blocks. Under random writes a page lives on with the
/// same odds whatever its age, so that the live share of blocks falls from 1 for the newest to `u` for
/// the oldest by the same factor from one to the next; on average it is (1 - u) / -ln u (Desnoyers,
/// Analytic Modeling of SSD Write Performance, 2012; greedy collection does the same where blocks have
/// hundreds of pages, Van Houdt, SIGMETRICS 2013).
fn older(pages: usize, block_pages: u32, closed: usize, count: usize) -> usize {
    if count == closed {
        return pages;
    }
    let used = pages as f64 / (closed as f64 * f64::from(block_pages));
    let (age, oldest) = (count as f64 / closed as f64, oldest_share(used));
    let part = if oldest > 0.999 { age } else { (oldest.powf(1.0 - age) - oldest) / (1.0 - oldest) };
    (part * pages as f64) as usize
}

/// The live share of the oldest block where blocks are `used` on average.
fn oldest_share(used: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if (1.0 - middle) / -middle.ln() < used { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Appends and collections never lose a page: every page lives in one block, and the live
        /// counts say how many live where.
        #[test]
        fn every_page_lives_in_one_block(
            writes in prop::collection::vec(0_u32..64, 1..400), spare in prop::sample::select(vec![0.25, 1.0, 4.0]),
        ) {
            let mut log = Log::aged(64, 8, spare);
            for page in writes {
                while log.is_short() {
                    let Victim { block, live } = log.victim().unwrap();
                    prop_assert!(live < 8, "collecting a full block gains nothing");
                    log.collect(block);
                }
                log.append(page);
                let mut live = vec![0; log.live.len()];
                log.block_of.iter().for_each(|&block| live[block as usize] += 1);
                prop_assert_eq!(&live, &log.live);
                prop_assert!(live.iter().all(|&live| live <= 8), "more pages than a block has");
                prop_assert!(log.free.iter().all(|&block| live[block as usize] == 0));
            }
        }
    }

    /// What a collection moves at the start is what it moves after the device has been overwritten at
    /// random many times: the steady state is one.
    #[test]
    fn a_log_starts_in_the_steady_state_of_random_writes() {
        let (pages, block_pages) = (20_000, 200);
        let mut log = Log::aged(pages, block_pages, 0.6);
        let mut moved = Vec::new();
        for write in 0..400_000 {
            while log.is_short() {
                let Victim { block, live } = log.victim().unwrap();
                moved.push(f64::from(live) / f64::from(block_pages));
                log.collect(block);
            }
            log.append((nth(7, write) % u64::from(pages)) as u32);
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = (mean(&moved[..200]), mean(&moved[moved.len() - 200..]));
        assert!((first - last).abs() < 0.03, "{first} against {last}");
        assert!((last - 0.35).abs() < 0.03, "{last}");
    }
}
