//! The state of one exact run: a byte of flags a page, and what the kernel and the policy keep beside it.

use super::pages::{ACTIVE, GROUP, IDLE, Pages, node_of};
use crate::engine::host::{Host, Setup};
use crate::kernel::first_touch::Dealer;
use crate::kernel::reclaim::{List, LruKind};
use crate::outcome::{Outcome, RegionUse};

/// The state of one run.
pub(crate) struct Exact<'a> {
    pub(super) host: Host<'a>,
    dealers: Vec<Dealer>,
    pub(super) pages: Pages,
    /// Private share of the faults of the stream that is being visited.
    pub(super) private: f64,
    /// Pages that faulted on the inactive list of a slow node (TPP), and promotions in fractions.
    pub(super) owed: f64,
    /// Misses by group since the last look.
    pub(super) touched: Vec<u32>,
    /// Until when kswapd has had its time, s.
    pub(super) reclaimed_s: f64,
}

impl<'a> Exact<'a> {
    pub(crate) fn new(setup: Setup<'a>) -> Self {
        let host = Host::new(setup);
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let span = host.layout.span() as usize;
        let sampled = host.policy.period_s().is_some();
        let regions = host.layout.regions.iter();
        Self {
            dealers: regions.map(|region| Dealer::new(&region.policy, host.nodes)).collect(),
            pages: Pages::new(span, host.nodes.len(), host.rule.demotion),
            private: 1.0,
            owed: 0.0,
            touched: vec![0; if sampled { span.div_ceil(GROUP) } else { 0 }],
            reclaimed_s: 0.0,
            host,
        }
    }

    /// First touch of one page; none where no node has room.
    pub(super) fn touch(&mut self, region: usize, page: u64) -> Option<usize> {
        let index = page - self.host.layout.regions[region].start;
        let node = self.dealers[region].one(index, &mut self.host.free, &mut self.host.ledger.counters)?;
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let (at, page) = (page as usize, page as u32);
        self.pages.set_node(at, node);
        self.pages.flags[at] &= !IDLE;
        self.pages.stamp[at] = 0;
        if self.host.keeps_list(node) {
            self.pages.link(page, node, List::Inactive);
        }
        Some(node)
    }

    pub(super) fn region_of(&self, page: u64) -> usize {
        self.host.layout.regions.partition_point(|region| region.start <= page).saturating_sub(1)
    }

    /// Moves a page and its place on lists: to the head of the inactive list, as `folio_add_lru` does
    /// for pages that are not active.
    pub(super) fn relocate(&mut self, page: usize, from: usize, to: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let id = page as u32;
        if self.host.keeps_list(from) {
            self.pages.unlink(id, from);
        }
        self.host.free[from] += 1.0;
        self.host.free[to] -= 1.0;
        let active = self.pages.flags[page] & ACTIVE != 0;
        self.pages.flags[page] &= !ACTIVE;
        self.pages.set_node(page, to);
        if self.host.keeps_list(to) {
            self.pages.link(
                id,
                to,
                if active && self.host.lru == LruKind::TwoLists { List::Active } else { List::Inactive },
            );
        }
    }

    /// Makes room for pages that a trace touches for the first time.
    pub(crate) fn grow(&mut self, pages: u64) {
        if pages <= self.host.layout.regions[0].pages {
            return;
        }
        self.host.layout.regions[0].pages = pages;
        let count = usize::try_from(pages).unwrap_or(usize::MAX);
        self.pages.grow(count);
        if !self.touched.is_empty() || self.host.policy.period_s().is_some() {
            self.touched.resize(count.div_ceil(GROUP), 0);
        }
        if let Some(scanner) = &mut self.host.scanner {
            scanner.grow(pages);
        }
    }

    /// Closes the books.
    pub(crate) fn outcome(self) -> Outcome {
        let regions = (0..self.host.layout.regions.len()).map(|region| self.region_use(region)).collect();
        self.host.close("exact", regions)
    }

    fn region_use(&self, region: usize) -> RegionUse {
        let placed = &self.host.layout.regions[region];
        RegionUse { region: placed.name.clone(), pages: placed.pages as f64, shares: self.shares(region) }
    }

    /// Shares of a region's pages by node.
    pub(super) fn shares(&self, region: usize) -> Vec<f64> {
        let placed = &self.host.layout.regions[region];
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let (first, last) = (placed.start as usize, (placed.start + placed.pages) as usize);
        let mut counts = vec![0u64; self.host.nodes.len()];
        for flags in &self.pages.flags[first..last] {
            if let Some(count) = counts.get_mut(node_of(*flags)) {
                *count += 1;
            }
        }
        counts.iter().map(|count| *count as f64 / placed.pages as f64).collect()
    }
}
