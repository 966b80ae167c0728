//! The books of a run: what events cost whom, and the series over time. Shared by both evaluators.

use tierloom_contention::{Traffic, Work};
use tierloom_model::units::{NS, PAGE_BYTES_F64};

use crate::engine::costs::Costs;
use crate::kernel::counters::Counters;
use crate::kernel::nodes::{Node, Nodes};
use crate::kernel::reclaim::Pace;
use crate::kernel::scanner::Walked;
use crate::outcome::{NodeUse, Outcome, POINTS, Parts, PhaseUse, Point, RegionUse};
use crate::policy::Policy;

/// Most pages of one batch of demotions (`NR_MAX_BATCHED_MIGRATION`, since 6.3).
const DEMOTION_BATCH: f64 = 512.0;

/// What was counted and charged.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    costs: Costs,
    threads: f64,
    pub(crate) counters: Counters,
    pub(crate) parts: Parts,
    /// Charged since the last step.
    step: Parts,
    /// Bytes that migration moves since the last step, by node.
    pub(crate) copies: Vec<Traffic>,
    pub(crate) copied: Vec<f64>,
    pub(crate) bytes: Vec<f64>,
    phases: Vec<PhaseUse>,
    series: Vec<Point>,
    /// Time between two points of the series.
    pub(crate) every_s: f64,
    since: Vec<f64>,
    since_s: f64,
}

impl Ledger {
    pub(crate) fn new(costs: Costs, threads: u32, nodes: usize, expected_s: f64) -> Self {
        Self {
            costs,
            threads: f64::from(threads.max(1)),
            counters: Counters::default(),
            parts: Parts::default(),
            step: Parts::default(),
            copies: vec![Traffic::default(); nodes],
            copied: vec![0.0; nodes],
            bytes: vec![0.0; nodes],
            phases: Vec::new(),
            series: Vec::new(),
            every_s: expected_s / POINTS as f64 * 2.0,
            since: vec![0.0; nodes],
            since_s: 0.0,
        }
    }

    pub(crate) fn set_threads(&mut self, threads: u32) {
        self.threads = f64::from(threads.max(1));
    }

    /// Hint faults; each stalls the thread that meets it.
    pub(crate) fn faults(&mut self, pages: f64, local: bool) {
        self.counters.numa_hint_faults += pages;
        self.counters.numa_hint_faults_local += if local { pages } else { 0.0 };
        self.step.fault_s += pages * self.costs.hint_fault_ns.value * NS / self.threads;
    }

    /// A turn of the scanner; returns what it cost the thread that did it, s.
    pub(crate) fn scan(&mut self, walked: Walked) -> f64 {
        self.counters.numa_pte_updates += walked.updated;
        let skipped = walked.visited - walked.updated;
        let cost_s = (walked.updated * self.costs.protect_ns.value + skipped * self.costs.skip_ns.value) * NS;
        self.step.scan_s += cost_s / self.threads;
        if walked.updated > 0.0 {
            self.step.shootdown_s += self.costs.shootdown_ns.value * NS;
        }
        cost_s
    }

    /// Pages moved up by a hint fault.
    pub(crate) fn promoted(&mut self, pages: f64, from: usize, to: usize, tiers: bool, policy: &dyn Policy) {
        self.counters.numa_pages_migrated += pages;
        self.counters.pgmigrate_success += pages;
        self.counters.pgpromote_success += if tiers { pages } else { 0.0 };
        if policy.waits_for_copy() {
            self.step.copy_s += pages * self.costs.promote_ns.value * NS / self.threads;
        }
        self.step.shootdown_s += pages * policy.shootdowns() * self.costs.shootdown_ns.value * NS;
        self.copy(pages, from, to);
    }

    /// Pages moved down by kswapd; `shadowed` of them need no copy.
    pub(crate) fn demoted(&mut self, pages: f64, from: usize, to: usize, shadowed: f64) {
        self.counters.pgdemote_kswapd += pages;
        self.counters.pgmigrate_success += pages;
        self.step.shootdown_s += pages / DEMOTION_BATCH * self.costs.shootdown_ns.value * NS;
        self.copy(pages * (1.0 - shadowed), from, to);
    }

    /// Pages moved by a policy's own thread.
    pub(crate) fn moved(&mut self, pages: f64, from: usize, to: usize, policy: &dyn Policy) {
        self.counters.pgmigrate_success += pages;
        if to == 0 {
            self.counters.pgpromote_success += pages;
        } else {
            self.counters.pgdemote_policy += pages;
        }
        self.step.shootdown_s += pages * policy.shootdowns() * self.costs.shootdown_ns.value * NS;
        self.copy(pages, from, to);
    }

    pub(crate) fn failed(&mut self, pages: f64) {
        self.counters.pgmigrate_fail += pages;
    }

    /// Hardware samples of so many misses.
    pub(crate) fn sampled(&mut self, misses: f64, policy: &dyn Policy) {
        if policy.sample_period() > 0.0 {
            self.step.sample_s += misses / policy.sample_period() * self.costs.sample_ns.value * NS / self.threads;
        }
    }

    fn copy(&mut self, pages: f64, from: usize, to: usize) {
        let bytes = pages * PAGE_BYTES_F64;
        self.copies[from].read += bytes;
        self.copies[to].write += bytes;
        self.copied[from] += bytes;
        self.copied[to] += bytes;
    }

    /// What the events since the last step cost the program, s.
    pub(crate) fn overhead_s(&self) -> f64 {
        self.step.overhead_s()
    }

    /// Ends a step: moves what was charged into the sum.
    pub(crate) fn step(&mut self, compute_s: f64, stall_s: f64, bytes: &[f64]) {
        self.parts.add_overhead(&std::mem::take(&mut self.step));
        self.parts.compute_s += compute_s;
        self.parts.stall_s += stall_s;
        for (node, bytes) in bytes.iter().enumerate() {
            self.bytes[node] += bytes;
            self.since[node] += bytes;
        }
    }

    /// A phase is over that began at this sum of parts.
    pub(crate) fn phase(&mut self, name: &str, from_s: f64) {
        self.phases.push(PhaseUse { phase: name.to_owned(), time_s: self.parts.sum() - from_s });
    }

    /// Corrects the bytes of the step that ended last.
    pub(crate) fn rerouted(&mut self, work: &[Work]) {
        for (node, work) in work.iter().enumerate() {
            self.bytes[node] += work.bytes();
            self.since[node] += work.bytes();
        }
    }

    /// Migration's traffic since the last step, which then counts as done.
    pub(crate) fn take_copies(&mut self) -> Vec<Traffic> {
        let none = vec![Traffic::default(); self.copies.len()];
        std::mem::replace(&mut self.copies, none)
    }

    /// What kswapd can do in so much time.
    pub(crate) fn reclaim_pace(&self, seconds: f64) -> Pace {
        Pace { seconds, look_s: self.costs.reclaim_ns.value * NS, move_s: self.costs.demote_ns.value * NS }
    }

    /// Adds a point where it is time; halves their number when there are too many.
    pub(crate) fn record(&mut self, now_s: f64, used_pages: Vec<f64>, latency_ns: &[f64], last: bool) {
        let span_s = now_s - self.since_s;
        // Of no time there is no bandwidth: the last step may be what a point is of already.
        let is_new = self.series.is_empty() || span_s > 0.0;
        if !is_new || span_s < self.every_s && !last {
            return;
        }
        let span_s = span_s.max(f64::MIN_POSITIVE);
        let sum: f64 = self.since.iter().sum();
        self.series.push(Point {
            time_s: now_s,
            counters: self.counters,
            used_pages,
            gb_s: self.since.iter().map(|bytes| bytes * 1e-9 / span_s).collect(),
            latency_ns: latency_ns.to_vec(),
            fast_share: if sum > 0.0 { self.since[0] / sum } else { 1.0 },
        });
        self.since_s = now_s;
        self.since.iter_mut().for_each(|bytes| *bytes = 0.0);
        if self.series.len() > POINTS {
            // The last one stays.
            let mut from_last = self.series.len();
            self.series.retain(|_| {
                from_last -= 1;
                from_last.is_multiple_of(2)
            });
            self.every_s *= 2.0;
        }
    }

    pub(crate) fn take_series(&mut self) -> Vec<Point> {
        std::mem::take(&mut self.series)
    }

    /// What both evaluators tell in the end; `used` is pages by node.
    pub(crate) fn close(
        mut self,
        evaluator: &str,
        nodes: &Nodes,
        policy: &dyn Policy,
        used: &[f64],
        regions: Vec<RegionUse>,
    ) -> Outcome {
        let node = |(index, node): (usize, &Node)| NodeUse {
            memory: node.name.clone(),
            tier: node.tier,
            top: node.top,
            pages: node.pages,
            used_pages: used[index],
            bytes: self.bytes[index],
            copied_bytes: self.copied[index],
        };
        Outcome {
            policy: policy.name().to_owned(),
            about: policy.about().to_owned(),
            placement: String::new(),
            evaluator: evaluator.to_owned(),
            time_s: self.parts.sum(),
            parts: self.parts,
            counters: self.counters,
            fast_share: self.fast_share(),
            nodes: nodes.list.iter().enumerate().map(node).collect(),
            regions,
            phases: std::mem::take(&mut self.phases),
            series: self.take_series(),
            knobs: policy.knobs(),
            warnings: policy.limits().map(str::to_owned).into_iter().collect(),
        }
    }

    pub(crate) fn fast_share(&self) -> f64 {
        let sum: f64 = self.bytes.iter().sum();
        if sum > 0.0 { self.bytes[0] / sum } else { 1.0 }
    }
}
