//! The fault driver of unified virtual memory, and of `GPUDirect` storage, which differs in where
//! pages come from.
//!
//! Faults collect while a batch is served; then the driver takes up to a batch of pages, makes room
//! by evicting the least recently used, and copies. Every batch costs the host's runtime, and so does every
//! block that it brings pages of.

use std::ops::Range;

use tierloom_model::units::LINE_BYTES;

use crate::endpoint::media::Media;
use crate::parameters::{Parameters, Uvm};
use crate::setup::{Config, Prefetch};
use crate::time::{Ps, from_ns, ps_per_byte};

/// Bytes of a block, which the driver serves as one (`UVM_VA_BLOCK_SIZE` of NVIDIA's open driver), and of a leaf of the
/// prefetch tree that is laid over it (`uvm_perf_prefetch.c`).
const BLOCK_BYTES: u64 = 2 << 20;
const LEAF_BYTES: u64 = 64 << 10;
/// A part of the tree that is there by more than this is brought whole (`uvm_perf_prefetch_threshold`).
const DENSE_PERCENT: usize = 51;
const NONE: u32 = u32::MAX;

/// Pages of GPU memory in order of use.
#[derive(Debug)]
struct Residents {
    next: Vec<u32>,
    previous: Vec<u32>,
    resident: Vec<bool>,
    dirty: Vec<bool>,
    count: usize,
    /// The two ends: last used, and first to go.
    newest: u32,
    oldest: u32,
}

/// A page that leaves GPU memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) page: u32,
    /// It has been written to.
    pub(crate) dirty: bool,
}

/// What a batch does.
#[derive(Debug)]
pub(crate) struct Batch {
    /// When it is done.
    pub(crate) done: Ps,
    /// Pages that leave.
    pub(crate) evicted: Vec<Evicted>,
    /// Pages that come.
    pub(crate) fetched: Vec<u32>,
}

/// The driver.
#[derive(Debug)]
pub(crate) struct Driver {
    pages: Residents,
    capacity: usize,
    page_bytes: u64,
    host: Ps,
    host_per_block: Ps,
    copy_ps_per_byte: f64,
    read: Ps,
    write_ps_per_byte: f64,
    batch: usize,
    prefetch: Prefetch,
    pub(crate) faults: u64,
    pub(crate) batches: u64,
    pub(crate) evictions: u64,
    pub(crate) moved_bytes: u64,
}

impl Driver {
    /// A driver for `lines` lines of data; storage is given where pages come from an SSD.
    pub(crate) fn new(parameters: &Parameters, config: Config, prefetch: Prefetch, lines: u32, media: &str) -> Self {
        let uvm = &parameters.uvm;
        let page_bytes = uvm.page_bytes.value;
        let pages = (u64::from(lines) * LINE_BYTES).div_ceil(page_bytes) as usize + 1;
        let local = u64::from(lines) as f64 * LINE_BYTES as f64 / parameters.scale.local_ratio.value;
        let source = (config == Config::Gds).then(|| parameters.media.get(media)).flatten();
        let copy = ps_per_byte(uvm.copy_gb_s.value);
        let (read, read_byte, write_byte) = source.map_or((0, copy, copy), |medium| {
            let (read, write) = Media::rates(medium);
            (read, copy.max(ps_per_byte(medium.bus_gb_s.value)), copy.max(write))
        });
        Self {
            pages: Residents::new(pages),
            capacity: ((local / page_bytes as f64) as usize).max(2),
            page_bytes,
            host: from_ns(uvm.host_ns.value),
            host_per_block: uvm.block_ns.as_ref().map_or(0, |time| from_ns(time.value)),
            copy_ps_per_byte: read_byte,
            read,
            write_ps_per_byte: write_byte,
            batch: Self::batch_of(uvm, local),
            prefetch,
            faults: 0,
            batches: 0,
            evictions: 0,
            moved_bytes: 0,
        }
    }

    /// A batch never evicts what it has just brought.
    fn batch_of(uvm: &Uvm, local: f64) -> usize {
        (uvm.batch.value as usize).clamp(1, ((local / uvm.page_bytes.value as f64) as usize / 2).max(1))
    }

    /// The page of a line.
    pub(crate) fn page(&self, line: u32) -> u32 {
        (u64::from(line) * LINE_BYTES / self.page_bytes) as u32
    }

    /// Lines of a page.
    pub(crate) fn lines(&self, page: u32) -> Range<u32> {
        let lines = (self.page_bytes / LINE_BYTES) as u32;
        page * lines..(page + 1) * lines
    }

    /// Whether a page is on the GPU; counts as a use.
    pub(crate) fn touch(&mut self, page: u32, write: bool) -> bool {
        let resident = self.pages.resident[page as usize];
        if resident {
            self.pages.use_now(page);
            self.pages.dirty[page as usize] |= write;
        }
        resident
    }

    /// Serves the faults on `wanted` pages, the oldest first.
    pub(crate) fn serve(&mut self, now: Ps, wanted: impl Iterator<Item = u32>) -> Batch {
        let mut batch = Batch { done: 0, evicted: Vec::new(), fetched: Vec::new() };
        // A batch takes what the GPU has reported, also where one page serves several.
        for page in wanted.take(self.batch) {
            if !self.pages.resident[page as usize] {
                self.faults += 1;
                self.bring(page, &mut batch);
                self.bring_around(page, &mut batch);
            }
        }
        self.batches += 1;
        let in_bytes = batch.fetched.len() as u64 * self.page_bytes;
        let out_bytes = batch.evicted.iter().filter(|page| page.dirty).count() as u64 * self.page_bytes;
        self.moved_bytes += in_bytes + out_bytes;
        let copies = in_bytes as f64 * self.copy_ps_per_byte + out_bytes as f64 * self.write_ps_per_byte;
        let host = self.host + self.blocks_of(&batch.fetched) * self.host_per_block;
        batch.done = now + host + self.read + copies as Ps;
        batch
    }

    /// How many blocks pages are of.
    fn blocks_of(&self, pages: &[u32]) -> u64 {
        let mut blocks: Vec<u64> = pages.iter().map(|&page| u64::from(page) * self.page_bytes / BLOCK_BYTES).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len() as u64
    }

    fn bring(&mut self, page: u32, batch: &mut Batch) {
        if self.pages.resident[page as usize] {
            return;
        }
        if self.pages.count >= self.capacity
            && let Some(evicted) = self.pages.evict()
        {
            self.evictions += 1;
            batch.evicted.push(evicted);
        }
        self.pages.add(page);
        batch.fetched.push(page);
    }

    /// Prefetching: the leaf of a page, and the largest part of its tree that is then there for the most part.
    fn bring_around(&mut self, page: u32, batch: &mut Batch) {
        if self.prefetch == Prefetch::None || LEAF_BYTES <= self.page_bytes {
            return;
        }
        self.bring_all(self.part(page, LEAF_BYTES), batch);
        if self.prefetch == Prefetch::Tree {
            let parts = (1..).map(|level| LEAF_BYTES << level).take_while(|&bytes| bytes <= BLOCK_BYTES);
            // A part that is not there yet says nothing of the larger ones.
            if let Some(part) = parts.map(|bytes| self.part(page, bytes)).filter(|part| self.is_dense(part)).last() {
                self.bring_all(part, batch);
            }
        }
    }

    /// The pages of an aligned part of a block.
    fn part(&self, page: u32, bytes: u64) -> Range<u32> {
        let count = (bytes / self.page_bytes) as u32;
        let first = page / count * count;
        first..(first + count).min(self.pages.resident.len() as u32)
    }

    fn is_dense(&self, part: &Range<u32>) -> bool {
        let there = part.clone().filter(|&page| self.pages.resident[page as usize]).count();
        there * 100 > part.len() * DENSE_PERCENT
    }

    /// Brings what there is room for: a batch never evicts what it has just brought.
    fn bring_all(&mut self, part: Range<u32>, batch: &mut Batch) {
        if batch.fetched.len() + part.len() <= self.capacity / 2 {
            part.for_each(|page| self.bring(page, batch));
        }
    }
}

impl Residents {
    fn new(pages: usize) -> Self {
        Self {
            next: vec![NONE; pages],
            previous: vec![NONE; pages],
            resident: vec![false; pages],
            dirty: vec![false; pages],
            count: 0,
            newest: NONE,
            oldest: NONE,
        }
    }

    fn add(&mut self, page: u32) {
        self.resident[page as usize] = true;
        self.dirty[page as usize] = false;
        self.count += 1;
        self.link(page);
    }

    fn use_now(&mut self, page: u32) {
        if self.newest != page {
            self.unlink(page);
            self.link(page);
        }
    }

    fn evict(&mut self) -> Option<Evicted> {
        let page = self.oldest;
        if page == NONE {
            return None;
        }
        self.unlink(page);
        self.resident[page as usize] = false;
        self.count -= 1;
        Some(Evicted { page, dirty: self.dirty[page as usize] })
    }

    fn link(&mut self, page: u32) {
        self.previous[page as usize] = NONE;
        self.next[page as usize] = self.newest;
        if self.newest == NONE {
            self.oldest = page;
        } else {
            self.previous[self.newest as usize] = page;
        }
        self.newest = page;
    }

    fn unlink(&mut self, page: u32) {
        let (before, after) = (self.previous[page as usize], self.next[page as usize]);
        if before == NONE {
            self.newest = after;
        } else {
            self.next[before as usize] = after;
        }
        if after == NONE {
            self.oldest = before;
        } else {
            self.previous[after as usize] = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_leave_in_the_order_of_their_last_use(uses in prop::collection::vec(0_u32..12, 1..200)) {
            let (mut pages, mut order) = (Residents::new(12), VecDeque::new());
            for page in uses {
                if pages.resident[page as usize] {
                    pages.use_now(page);
                    order.retain(|&other| other != page);
                } else {
                    if pages.count == 4 {
                        prop_assert_eq!(pages.evict().map(|evicted| evicted.page), order.pop_front());
                    }
                    pages.add(page);
                }
                order.push_back(page);
                prop_assert_eq!(pages.count, order.len());
            }
        }
    }
}
