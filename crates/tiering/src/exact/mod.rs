//! The exact evaluator: page by page, visit by visit.
//!
//! A run goes in windows of some milliseconds. Within a window, visits read the flags of their page and
//! fault where the entry is protected; at its end the clock moves by the window's time (computing, and
//! waits at the loaded latency of the nodes that served it) and by what its events cost, and the
//! kernel's own threads get as much time: the scanner, kswapd, the policy's sampler.

mod drive;
mod groups;
mod lists;
mod pages;
mod ranks;
mod source;
mod visit;

use tierloom_contention::Work;
use tierloom_model::units::LINE_BYTES_F64;

use crate::costs::Costs;
use crate::error::Result;
use crate::filling::{Step, Taken};
use crate::layout::{Dealer, Layout, Placed, full};
use crate::ledger::Ledger;
use crate::nodes::Nodes;
use crate::outcome::{Outcome, RegionUse};
use crate::policy::{Policy, Room, ScanRule};
use crate::reclaim::{Kswapd, List, LruKind, ReclaimRule};
use crate::scanner::{Mapping, Scanner};
use crate::settle::{Settled, settle};

use groups::GROUP;
use pages::{ACTIVE, IDLE, PROTECTED, Pages, node_of};

pub(crate) use drive::run;
pub use pages::BYTES_PER_PAGE;
pub(crate) use ranks::zipf_share;
pub(crate) use source::Seen;

/// Program time per window, s: a tenth of the least scan period, and finer than any threshold.
const WINDOW_S: f64 = 0.01;

/// The state of one run.
pub(crate) struct Exact<'a> {
    nodes: &'a Nodes,
    policy: &'a mut dyn Policy,
    layout: Layout,
    dealers: Vec<Dealer>,
    pages: Pages,
    free: Vec<f64>,
    scan: Option<ScanRule>,
    scanner: Option<Scanner>,
    rule: ReclaimRule,
    lru: LruKind,
    kswapd: Vec<Kswapd>,
    pub(crate) ledger: Ledger,
    threads: u32,
    /// Private share of the faults of the stream that is being visited.
    private: f64,
    now_s: f64,
    settled: Settled,
    cost_of_miss_ns: f64,
    /// Pages that faulted on the inactive list of a slow node (TPP), and promotions in fractions.
    owed: f64,
    /// Misses by group since the last look.
    touched: Vec<u32>,
    last_look_s: f64,
    /// Until when kswapd has had its time, s.
    reclaimed_s: f64,
}

/// One kind of visit: what it asks of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerVisit {
    pub(crate) read: Work,
    pub(crate) write: Work,
}

impl<'a> Exact<'a> {
    pub(crate) fn new(
        nodes: &'a Nodes,
        layout: Layout,
        policy: &'a mut dyn Policy,
        costs: Costs,
        lru: LruKind,
        threads: u32,
        expected_s: f64,
    ) -> Self {
        let (scan, rule) = (policy.scan(), policy.reclaim());
        let mapping = |region: &crate::layout::Placed| Mapping {
            pages: region.pages,
            migrates: region.policy.migrates_on_fault(),
        };
        let mappings = layout.regions.iter().map(mapping).collect();
        let scanner = scan.map(|rule| Scanner::new(rule.knobs, mappings, threads, layout.main_works));
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let span = layout.span() as usize;
        let sampled = policy.period_s().is_some();
        Self {
            nodes,
            dealers: layout.regions.iter().map(|region| Dealer::new(&region.policy, nodes)).collect(),
            pages: Pages::new(span, nodes.len(), rule.demotion),
            free: nodes.list.iter().map(|node| node.pages).collect(),
            scan,
            scanner,
            rule,
            lru,
            kswapd: vec![Kswapd::new(); nodes.len()],
            ledger: Ledger::new(costs, threads, nodes.len(), expected_s),
            threads,
            private: 1.0,
            now_s: 0.0,
            settled: Settled {
                time_s: 0.0,
                latency_ns: settle(nodes, 0.0, &vec![Work::default(); nodes.len()]).latency_ns,
            },
            cost_of_miss_ns: 100.0,
            owed: 0.0,
            touched: vec![0; if sampled { span.div_ceil(GROUP) } else { 0 }],
            last_look_s: 0.0,
            reclaimed_s: 0.0,
            policy,
            layout,
        }
    }

    /// Touches every page of every region once, as memory fills.
    pub(crate) fn touch_all(&mut self) -> Result<()> {
        let mut taken = Taken::default();
        for step in self.layout.filling.clone() {
            match step {
                Step::Touch(region, from, to) => self.touch_part(region, from, to)?,
                Step::Take(name, policy, pages) => {
                    taken.take((&name, &policy, pages), self.nodes, &mut self.free, &mut self.ledger.counters)?;
                }
                Step::Free(name) => taken.free(&name, &mut self.free),
            }
        }
        Ok(())
    }

    fn touch_part(&mut self, region: usize, from: u64, to: u64) -> Result<()> {
        let Placed { start, pages, .. } = self.layout.regions[region];
        for index in from..to {
            self.touch(region, start + index)
                .ok_or_else(|| full(&self.layout.regions[region].name, (pages - index) as f64, self.nodes))?;
        }
        Ok(())
    }

    /// First touch of one page; none where no node has room.
    fn touch(&mut self, region: usize, page: u64) -> Option<usize> {
        let index = page - self.layout.regions[region].start;
        let node = self.dealers[region].one(index, &mut self.free, &mut self.ledger.counters)?;
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let (at, page) = (page as usize, page as u32);
        self.pages.set_node(at, node);
        self.pages.flags[at] &= !IDLE;
        self.pages.stamp[at] = 0;
        if self.keeps_list(node) {
            self.pages.link(page, node, List::Inactive);
        }
        Some(node)
    }

    fn keeps_list(&self, node: usize) -> bool {
        self.rule.demotion && self.nodes.list[node].demotion.is_some()
    }

    fn region_of(&self, page: u64) -> usize {
        self.layout.regions.partition_point(|region| region.start <= page).saturating_sub(1)
    }

    /// Free pages that watermarks see.
    fn visible(&self, node: usize) -> f64 {
        self.free[node] - self.nodes.list[node].on_cpu_lists(self.now_s)
    }

    fn room(&self) -> Room {
        let node = &self.nodes.list[0];
        Room { free: self.visible(0), marks: node.marks, plenty: node.plenty(), cost_of_miss_ns: self.cost_of_miss_ns }
    }

    /// Moves a page and its place on lists: to the head of the inactive list, as `folio_add_lru` does
    /// for pages that are not active.
    fn relocate(&mut self, page: usize, from: usize, to: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let id = page as u32;
        if self.keeps_list(from) {
            self.pages.unlink(id, from);
        }
        self.free[from] += 1.0;
        self.free[to] -= 1.0;
        let active = self.pages.flags[page] & ACTIVE != 0;
        self.pages.flags[page] &= !ACTIVE;
        self.pages.set_node(page, to);
        if self.keeps_list(to) {
            self.pages.link(
                id,
                to,
                if active && self.lru == LruKind::TwoLists { List::Active } else { List::Inactive },
            );
        }
    }

    /// `change_prot_numa` over pages of one region.
    fn protect(&mut self, region: usize, from: u64, to: u64) -> f64 {
        let Some(rule) = self.scan else { return 0.0 };
        let start = self.layout.regions[region].start;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ms of a run, pages in range")]
        let (now_ms, first, last) = ((self.now_s * 1e3) as u32, (start + from) as usize, (start + to) as usize);
        let mut eligible = [false; 8];
        for (node, flag) in eligible.iter_mut().enumerate().take(self.nodes.len()) {
            let alone = self.threads == 1 && node == 0;
            *flag = !(alone || rule.slow_only && self.nodes.list[node].top);
        }
        let mut updated = 0.0;
        for page in first..last {
            let flags = self.pages.flags[page];
            if flags & PROTECTED == 0 && eligible[node_of(flags)] {
                self.pages.flags[page] = flags | PROTECTED;
                self.pages.stamp[page] = now_ms;
                updated += 1.0;
            }
        }
        updated
    }

    /// Ends a window: time passes, and the kernel's threads work.
    pub(crate) fn end_window(&mut self, compute_s: f64, cells: &mut [Work]) {
        let bytes: Vec<f64> = cells.iter().map(|work| work.bytes()).collect();
        let waits: f64 = cells.iter().map(|work| work.wait).sum();
        for (cell, copies) in cells.iter_mut().zip(self.ledger.take_copies()) {
            cell.read += copies.read;
            cell.write += copies.write;
        }
        self.settled = settle(self.nodes, compute_s, cells);
        let reads: f64 = cells.iter().map(|work| work.read).sum();
        if reads > 0.0 && waits > 0.0 {
            let stall: f64 = cells.iter().zip(&self.settled.latency_ns).map(|(work, ns)| work.wait * ns).sum();
            self.cost_of_miss_ns = stall * 1e9 * f64::from(self.threads) / (reads / LINE_BYTES_F64);
        }
        let misses: f64 = bytes.iter().sum::<f64>() / LINE_BYTES_F64;
        self.ledger.sampled(misses, self.policy);
        let passed_s = self.settled.time_s + self.ledger.overhead_s();
        self.ledger.step(compute_s, self.settled.time_s - compute_s, &bytes);
        self.now_s += passed_s;
        self.kernel_works();
        let used = self.used_pages();
        self.ledger.record(self.now_s, used, &self.settled.latency_ns, false);
    }

    fn kernel_works(&mut self) {
        if let Some(mut scanner) = self.scanner.take() {
            if let Some(thread) = scanner.due(self.now_s) {
                let walked = scanner.walk(self.now_s, |region, from, to| self.protect(region, from, to));
                let cost_s = self.ledger.scan(walked);
                scanner.scanned(thread, cost_s);
            }
            self.scanner = Some(scanner);
        }
        let now_s = self.now_s;
        for node in 0..self.nodes.len() {
            self.reclaim(node, now_s);
        }
        self.reclaimed_s = now_s;
        if self.policy.period_s().is_some_and(|period_s| self.now_s - self.last_look_s >= period_s) {
            self.look();
        }
    }

    /// Gives one node's kswapd the time until now.
    fn reclaim(&mut self, node: usize, now_s: f64) {
        if !self.keeps_list(node) {
            return;
        }
        let goal = self.rule.goal(&self.nodes.list[node]);
        if self.rule.proactive && self.visible(node) < goal.target {
            self.kswapd[node].wake(&self.rule, now_s);
        }
        let (pace, lru) = (self.ledger.reclaim_pace((now_s - self.reclaimed_s).max(0.0)), self.lru);
        let mut kswapd = std::mem::replace(&mut self.kswapd[node], Kswapd::new());
        let done = kswapd.work(self, node, goal, lru, pace, now_s);
        self.kswapd[node] = kswapd;
        self.ledger.failed(done.failed);
    }

    /// Makes room for pages that a trace touches for the first time.
    pub(crate) fn grow(&mut self, pages: u64) {
        if pages <= self.layout.regions[0].pages {
            return;
        }
        self.layout.regions[0].pages = pages;
        let count = usize::try_from(pages).unwrap_or(usize::MAX);
        self.pages.grow(count);
        if !self.touched.is_empty() || self.policy.period_s().is_some() {
            self.touched.resize(count.div_ceil(GROUP), 0);
        }
        if let Some(scanner) = &mut self.scanner {
            scanner.grow(pages);
        }
    }

    /// Visits one block of a trace, which computes for `span_s`.
    pub(crate) fn visit_block(&mut self, codes: &[u32], span_s: f64, per: PerVisit) -> Result<()> {
        let counts = self.visit(codes, self.now_s, span_s)?;
        let mut cells = vec![Work::default(); self.nodes.len()];
        for (node, cell) in cells.iter_mut().enumerate() {
            let [reads, writes] = counts.of(node);
            *cell = per.read * reads as f64 + per.write * writes as f64;
        }
        self.end_window(span_s, &mut cells);
        Ok(())
    }

    fn used_pages(&self) -> Vec<f64> {
        self.nodes.list.iter().zip(&self.free).map(|(node, free)| node.pages - free).collect()
    }

    /// Closes the books.
    pub(crate) fn outcome(mut self) -> Outcome {
        let used = self.used_pages();
        self.ledger.record(self.now_s, used.clone(), &self.settled.latency_ns, true);
        let regions = (0..self.layout.regions.len()).map(|region| self.region_use(region)).collect();
        self.ledger.close("exact", self.nodes, self.policy, &used, regions)
    }

    fn region_use(&self, region: usize) -> RegionUse {
        let placed = &self.layout.regions[region];
        RegionUse { region: placed.name.clone(), pages: placed.pages as f64, shares: self.shares(region) }
    }

    /// Shares of a region's pages by node.
    fn shares(&self, region: usize) -> Vec<f64> {
        let placed = &self.layout.regions[region];
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 pages")]
        let (first, last) = (placed.start as usize, (placed.start + placed.pages) as usize);
        let mut counts = vec![0u64; self.nodes.len()];
        for flags in &self.pages.flags[first..last] {
            if let Some(count) = counts.get_mut(node_of(*flags)) {
                *count += 1;
            }
        }
        counts.iter().map(|count| *count as f64 / placed.pages as f64).collect()
    }
}
