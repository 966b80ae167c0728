//! The state of one cohort run: pages by cohort and node, and what the kernel and the policy keep beside them.

use tierloom_contention::Work;

use super::cohorts::{CHUNK, Cohorts, Rate};
use super::protections::{Moment, Protections};
use super::queue::Queue;
use super::scale::{DUST, MOST_COHORTS, STEP_S};
use crate::engine::host::{Host, Setup};
use crate::engine::layout::Layout;
use crate::error::Result;
use crate::kernel::first_touch::Dealer;
use crate::kernel::reclaim::{List, Run};
use crate::kernel::vma::{VmaPolicy, Weight};
use crate::outcome::{Outcome, RegionUse};
use crate::workload::Workload;
use crate::workload::sweep::LastSweep;

/// A cohort's pages on one node.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) pages: f64,
    pub(super) protected: Protections,
    /// On the active list of a slow node (TPP).
    pub(super) active: f64,
    pub(super) demoted: f64,
    /// Left the node while their run still stands on a list.
    pub(super) gone: f64,
}

/// The state of one run.
pub(crate) struct Cohort<'a> {
    pub(super) host: Host<'a>,
    pub(crate) cohorts: Cohorts,
    /// By cohort and node.
    pub(super) cells: Vec<Cell>,
    pub(super) rates: Vec<Rate>,
    /// Visits per second are these times the rates.
    pub(super) speed: f64,
    pub(super) lists: Vec<[Queue; 2]>,
    pub(super) lengths: Vec<[f64; 2]>,
    /// Phases done, the share of the one that runs included: what visits go by, however fast the program is.
    pub(super) progress: f64,
    /// Where the last step ended.
    pub(super) last: Moment,
    /// The phase's work by node, if it all were done with the pages as they are.
    pub(super) sums: Vec<Work>,
    /// The part of it that belongs to another node, by node: a visit that moves its page is served by
    /// the page's new node. As the last step had it.
    pub(super) rerouted: Vec<Work>,
    pub(super) since_refresh: u32,
    /// Program time of the next step, and of the last, s.
    pub(super) step_s: f64,
    pub(super) last_step_s: f64,
    /// Most visits per second to a page that the last scan protected below the nearest node.
    pub(super) fresh: f64,
    /// Cohorts that may have protected pages.
    pub(super) watched: Vec<u32>,
    pub(super) is_watched: Vec<bool>,
    /// Time of this step that kswapd has not had yet, s.
    pub(super) reclaim_s: f64,
}

impl<'a> Cohort<'a> {
    pub(crate) fn new(setup: Setup<'a>, workload: &Workload) -> Self {
        let host = Host::new(setup);
        let cohorts = Cohorts::new(workload, &host.layout, chunk_pages(&host.layout));
        let (count, nodes) = (cohorts.places.len(), host.nodes.len());
        Self {
            cells: vec![Cell::default(); count * nodes],
            rates: vec![Rate::default(); count],
            speed: 0.0,
            lists: vec![[Queue::new(count), Queue::new(count)]; nodes],
            lengths: vec![[0.0; 2]; nodes],
            progress: 0.0,
            last: Moment { s: 0.0, progress: 0.0 },
            sums: vec![Work::default(); nodes],
            rerouted: vec![Work::default(); nodes],
            since_refresh: 0,
            step_s: STEP_S,
            last_step_s: STEP_S,
            fresh: 0.0,
            watched: Vec::new(),
            is_watched: vec![false; count],
            reclaim_s: 0.0,
            host,
            cohorts,
        }
    }

    #[inline]
    pub(super) fn at(&self, cohort: usize, node: usize) -> usize {
        cohort * self.host.nodes.len() + node
    }

    /// Puts each cohort's pages where `shares` says, by cohort and node; what finds no room spills.
    pub(crate) fn touch_as(&mut self, shares: &[Vec<f64>]) -> Result<()> {
        for (cohort, shares) in shares.iter().enumerate() {
            let place = &self.cohorts.places[cohort];
            let weights = shares.iter().enumerate().map(|(node, share)| Weight { node, pages: *share }).collect();
            let policy = VmaPolicy::Placed { weights, balancing: false };
            let dealer = Dealer::new(&policy, self.host.nodes);
            let placed = dealer
                .many(place.pages(), &mut self.host.free, &mut self.host.ledger.counters)
                .map_err(|missing| self.host.full(place.region, missing))?;
            self.fill(cohort, &placed);
        }
        Ok(())
    }

    pub(super) fn fill(&mut self, cohort: usize, placed: &[f64]) {
        for (node, pages) in placed.iter().enumerate().filter(|(_, pages)| **pages > 0.0) {
            let at = self.at(cohort, node);
            self.cells[at].pages += *pages;
            if self.host.keeps_list(node) {
                let id = u32::try_from(cohort).unwrap_or(u32::MAX);
                // Bits are set by the fault that maps a page, so they read as visited.
                let swept = LastSweep::by(self.progress);
                let run = Run { id, pages: *pages, referenced: false, cleared: f64::NEG_INFINITY, swept };
                self.lengths[node][0] += run.pages;
                self.lists[node][0].append(run, f64::NEG_INFINITY);
            }
        }
    }

    pub(super) fn refresh_sums(&mut self) {
        self.sums = vec![Work::default(); self.host.nodes.len()];
        for cohort in 0..self.rates.len() {
            for node in 0..self.host.nodes.len() {
                let pages = self.cells[cohort * self.host.nodes.len() + node].pages;
                self.sums[node] += self.rates[cohort].work * pages;
            }
        }
        self.since_refresh = 0;
    }

    /// Moves pages of a cohort, of which so many are active; those that stand on a list are crossed off when their run
    /// is met.
    pub(super) fn relocate(&mut self, cohort: usize, from: usize, to: usize, pages: f64, active: f64) {
        let (source, target) = (self.at(cohort, from), self.at(cohort, to));
        self.leave(source, pages, active);
        self.cells[target].pages += pages;
        self.host.free[from] += pages;
        self.host.free[to] -= pages;
        self.sums[from] += self.rates[cohort].work * -pages;
        self.sums[to] += self.rates[cohort].work * pages;
        if self.host.keeps_list(from) {
            self.cells[source].gone += pages;
            let lengths = &mut self.lengths[from];
            let inactive = lengths[0].min(pages);
            lengths[0] -= inactive;
            lengths[1] = (lengths[1] - (pages - inactive)).max(0.0);
        }
        if self.host.keeps_list(to) {
            let id = u32::try_from(cohort).unwrap_or(u32::MAX);
            // A fault has just used them.
            let swept = self.just_swept(cohort);
            self.enlist(to, List::Inactive, Run { id, pages, referenced: false, cleared: f64::NEG_INFINITY, swept });
        }
    }

    /// Puts a run at the head of a list.
    pub(super) fn enlist(&mut self, node: usize, list: List, run: Run) {
        let slot = usize::from(list == List::Active);
        self.lengths[node][slot] += run.pages;
        self.lists[node][slot].put(run, self.host.now_s, STEP_S * self.speed);
    }

    /// Takes pages out of a cell, those of them that are active, and their even share of those that were demoted once.
    pub(super) fn leave(&mut self, at: usize, pages: f64, active: f64) {
        let cell = &mut self.cells[at];
        let kept = if cell.pages > pages { (cell.pages - pages) / cell.pages } else { 0.0 };
        cell.pages = (cell.pages - pages).max(0.0);
        cell.active = (cell.active - active).clamp(0.0, cell.pages);
        cell.demoted *= kept;
    }

    /// When a sweep last passed by pages that fault in this step.
    pub(super) fn just_swept(&self, cohort: usize) -> LastSweep {
        let from = if self.rates[cohort].random > 0.0 { f64::NEG_INFINITY } else { self.last.progress };
        LastSweep::between(from, self.progress)
    }

    /// Pages of each cohort by node, as shares.
    pub(crate) fn shares(&self) -> Vec<Vec<f64>> {
        let share = |cohort: usize| {
            let pages: Vec<f64> =
                (0..self.host.nodes.len()).map(|node| self.cells[self.at(cohort, node)].pages).collect();
            let sum: f64 = pages.iter().sum();
            pages.into_iter().map(|count| count / sum.max(DUST)).collect()
        };
        (0..self.rates.len()).map(share).collect()
    }

    /// Closes the books.
    pub(crate) fn outcome(self) -> Outcome {
        let regions = (0..self.host.layout.regions.len()).map(|region| self.region_use(region)).collect();
        self.host.close("cohort", regions)
    }

    fn region_use(&self, region: usize) -> RegionUse {
        let mut pages = vec![0.0; self.host.nodes.len()];
        for cohort in self.cohorts.by_region[region]..self.cohorts.by_region[region + 1] {
            for (node, sum) in pages.iter_mut().enumerate() {
                *sum += self.cells[self.at(cohort, node)].pages;
            }
        }
        let all: f64 = pages.iter().sum();
        let name = self.host.layout.regions[region].name.clone();
        RegionUse { region: name, pages: all, shares: pages.iter().map(|count| count / all.max(DUST)).collect() }
    }
}

/// The scanner's window, or more where that would make too many cohorts.
pub(crate) fn chunk_pages(layout: &Layout) -> u64 {
    let pages: u64 = layout.regions.iter().map(|region| region.pages).sum();
    CHUNK.max(pages.div_ceil(MOST_COHORTS))
}
