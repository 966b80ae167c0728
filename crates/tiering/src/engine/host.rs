//! What both evaluators run against: the nodes, the kernel's threads, the policy, the clock and the books.
//!
//! What they keep of the pages differs, and stands behind [`PageState`](super::page_state::PageState).

use tierloom_contention::Work;
use tierloom_model::units::LINE_BYTES_F64;

use super::costs::Costs;
use super::layout::{Layout, Placed};
use super::ledger::Ledger;
use super::settle::{Settled, settle};
use crate::error::TieringError;
use crate::kernel::first_touch::full;
use crate::kernel::nodes::Nodes;
use crate::kernel::reclaim::{Kswapd, LruKind, ReclaimRule};
use crate::kernel::scanner::{Mapping, Scanner};
use crate::outcome::{Outcome, RegionUse};
use crate::policy::{Policy, Room, ScanRule};

/// Cost of a miss before any was seen, ns: about what DRAM at rest takes.
const FIRST_COST_NS: f64 = 100.0;

/// What a run is made of.
pub(crate) struct Setup<'a> {
    pub(crate) nodes: &'a Nodes,
    pub(crate) layout: Layout,
    pub(crate) policy: &'a mut dyn Policy,
    pub(crate) costs: Costs,
    pub(crate) lru: LruKind,
    pub(crate) threads: u32,
    /// Time that the run may take, s: how far apart the points of its series are.
    pub(crate) expected_s: f64,
}

/// The machine and its kernel while a program runs.
pub(crate) struct Host<'a> {
    pub(crate) nodes: &'a Nodes,
    pub(crate) policy: &'a mut dyn Policy,
    pub(crate) layout: Layout,
    /// Free pages by node.
    pub(crate) free: Vec<f64>,
    pub(crate) scan: Option<ScanRule>,
    pub(crate) scanner: Option<Scanner>,
    pub(crate) rule: ReclaimRule,
    pub(crate) lru: LruKind,
    pub(crate) kswapd: Vec<Kswapd>,
    pub(crate) ledger: Ledger,
    pub(crate) threads: u32,
    pub(crate) now_s: f64,
    /// Free pages by node that no watermark sees now.
    hidden: Vec<f64>,
    pub(crate) settled: Settled,
    pub(crate) cost_of_miss_ns: f64,
    pub(crate) last_look_s: f64,
}

impl<'a> Host<'a> {
    pub(crate) fn new(setup: Setup<'a>) -> Self {
        let Setup { nodes, layout, policy, costs, lru, threads, expected_s } = setup;
        let (scan, rule) = (policy.scan(), policy.reclaim());
        let mapping = |region: &Placed| Mapping { pages: region.pages, migrates: region.policy.migrates_on_fault() };
        let mappings = layout.regions.iter().map(mapping).collect();
        let at_rest = settle(nodes, 0.0, &vec![Work::default(); nodes.len()]);
        Self {
            free: nodes.list.iter().map(|node| node.pages).collect(),
            scan,
            scanner: scan.map(|rule| Scanner::new(rule.knobs, mappings, threads, layout.main_works)),
            rule,
            lru,
            kswapd: vec![Kswapd::new(); nodes.len()],
            ledger: Ledger::new(costs, threads, nodes.len(), expected_s),
            threads,
            now_s: 0.0,
            hidden: hidden(nodes, 0.0),
            settled: Settled { time_s: 0.0, latency_ns: at_rest.latency_ns },
            cost_of_miss_ns: FIRST_COST_NS,
            last_look_s: 0.0,
            nodes,
            policy,
            layout,
        }
    }

    /// A phase on so many threads begins.
    pub(crate) fn set_threads(&mut self, threads: u32) {
        self.threads = threads;
        self.ledger.set_threads(threads);
    }

    pub(crate) fn keeps_list(&self, node: usize) -> bool {
        self.rule.demotion && self.nodes.list[node].demotion.is_some()
    }

    /// So much time passes.
    pub(crate) fn pass(&mut self, seconds: f64) {
        self.now_s += seconds;
        self.hidden = hidden(self.nodes, self.now_s);
    }

    /// Free pages that watermarks see.
    pub(crate) fn visible(&self, node: usize) -> f64 {
        self.free[node] - self.hidden[node]
    }

    /// Room on the node that pages are promoted to.
    pub(crate) fn room(&self) -> Room {
        let node = &self.nodes.list[0];
        Room { free: self.visible(0), marks: node.marks, plenty: node.plenty(), cost_of_miss_ns: self.cost_of_miss_ns }
    }

    /// Whether the scanner protects pages of a node: a lone thread's own never (`change_pte_range`).
    pub(crate) fn may_protect(&self, rule: &ScanRule, node: usize) -> bool {
        let alone = self.threads <= 1 && node == 0;
        !(alone || rule.slow_only && self.nodes.list[node].top)
    }

    /// Whether pages of a region are protected as soon as they are demoted.
    pub(crate) fn protects_demoted(&self, region: usize) -> bool {
        self.scan.is_some_and(|scan| scan.protect_demoted) && self.layout.regions[region].policy.migrates_on_fault()
    }

    /// Whether faults on slow pages tell the scanner nothing (`task_numa_fault` in mode 2).
    pub(crate) fn ignores_slow(&self) -> bool {
        self.scan.is_some_and(|scan| !scan.counts_slow)
    }

    /// Tells the policy what misses cost, and the books what sampling them does: `work` is what was asked of the
    /// nodes, `bytes` what the program moved.
    pub(crate) fn met(&mut self, work: &[Work], bytes: &[f64]) {
        let reads: f64 = work.iter().map(|work| work.read).sum();
        let waits = || work.iter().zip(&self.settled.latency_ns).filter(|(work, _)| work.wait > 0.0);
        if reads > 0.0 && waits().next().is_some() {
            let extra_ns = |at: usize| self.nodes.fabric.random_extra_ns(self.nodes.list[at].memory);
            let waits = work.iter().zip(&self.settled.latency_ns).enumerate().filter(|(_, (work, _))| work.wait > 0.0);
            let stall_s: f64 = waits.map(|(at, (work, ns))| work.wait * ns + work.random * extra_ns(at)).sum();
            self.cost_of_miss_ns = stall_s * 1e9 * f64::from(self.threads) / (reads / LINE_BYTES_F64);
        }
        let misses = bytes.iter().sum::<f64>() / LINE_BYTES_F64;
        self.ledger.sampled(misses, self.policy);
    }

    /// Pages in use by node.
    pub(crate) fn used_pages(&self) -> Vec<f64> {
        self.nodes.list.iter().zip(&self.free).map(|(node, free)| node.pages - free).collect()
    }

    /// Adds a point to the series where it is time.
    pub(crate) fn record(&mut self) {
        let used = self.used_pages();
        self.ledger.record(self.now_s, used, &self.settled.latency_ns, false);
    }

    /// Closes the books.
    pub(crate) fn close(mut self, evaluator: &str, regions: Vec<RegionUse>) -> Outcome {
        let used = self.used_pages();
        self.ledger.record(self.now_s, used.clone(), &self.settled.latency_ns, true);
        self.ledger.close(evaluator, self.nodes, self.policy, &used, regions)
    }

    /// `missing` pages of a region find no room.
    pub(crate) fn full(&self, region: usize, missing: f64) -> TieringError {
        full(&self.layout.regions[region].name, missing, self.nodes)
    }
}

/// By node.
fn hidden(nodes: &Nodes, now_s: f64) -> Vec<f64> {
    nodes.list.iter().map(|node| node.on_cpu_lists(now_s)).collect()
}
