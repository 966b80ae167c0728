//! What a simulation answers.

use serde::{Deserialize, Serialize};

use crate::kernel::counters::Counters;
use crate::policy::Knob;

/// Most points of a series; runs of any length are drawn with as many.
pub(crate) const POINTS: usize = 200;

/// Run time, its parts, and what the kernel's counters would show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Policy.
    pub policy: String,
    /// What it does, in one line.
    pub about: String,
    /// How pages were placed at first.
    pub placement: String,
    /// `exact` or `cohort`, and why.
    pub evaluator: String,
    /// Run time, s.
    pub time_s: f64,
    /// Its parts; they sum to `time_s`.
    pub parts: Parts,
    /// Events, under the kernel's names.
    pub counters: Counters,
    /// Share of memory accesses (by bytes) that the fast node served.
    pub fast_share: f64,
    /// What each node did.
    pub nodes: Vec<NodeUse>,
    /// Where each region's pages were at the end, as shares by node.
    pub regions: Vec<RegionUse>,
    /// What each phase took, in order; none for a trace.
    pub phases: Vec<PhaseUse>,
    /// The same over time.
    pub series: Vec<Point>,
    /// Knobs in use.
    pub knobs: Vec<Knob>,
    /// What the reader should know before believing the numbers.
    pub warnings: Vec<String>,
}

/// Seconds of the run time by what they went to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Computing.
    pub compute_s: f64,
    /// Waiting for memory.
    pub stall_s: f64,
    /// Hint faults.
    pub fault_s: f64,
    /// Scanning page tables.
    pub scan_s: f64,
    /// Waiting for pages to be copied.
    pub copy_s: f64,
    /// Flushing TLBs.
    pub shootdown_s: f64,
    /// Handling samples.
    pub sample_s: f64,
}

/// One node over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeUse {
    /// Memory.
    pub memory: String,
    /// Tier number: smaller is faster.
    pub tier: u32,
    /// Whether it is in the top tier.
    pub top: bool,
    /// Pages that it has.
    pub pages: f64,
    /// Pages in use at the end.
    pub used_pages: f64,
    /// Bytes read and written by the program.
    pub bytes: f64,
    /// Bytes moved by migration.
    pub copied_bytes: f64,
}

/// One region at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionUse {
    /// Region.
    pub region: String,
    /// Pages.
    pub pages: f64,
    /// Share of them by node.
    pub shares: Vec<f64>,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseUse {
    /// Name.
    pub phase: String,
    /// Seconds of the run time.
    pub time_s: f64,
}

/// Everything at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// s from the start.
    pub time_s: f64,
    /// Events so far.
    pub counters: Counters,
    /// Pages in use by node.
    pub used_pages: Vec<f64>,
    /// Traffic by node since the point before, GB/s.
    pub gb_s: Vec<f64>,
    /// Latency by node, ns.
    pub latency_ns: Vec<f64>,
    /// Share of accesses that the fast node served since the point before.
    pub fast_share: f64,
}

impl Parts {
    /// All of them.
    pub fn sum(&self) -> f64 {
        self.compute_s + self.stall_s + self.overhead_s()
    }

    /// What migration costs the program's threads directly.
    pub fn overhead_s(&self) -> f64 {
        self.fault_s + self.scan_s + self.copy_s + self.shootdown_s + self.sample_s
    }

    pub(crate) fn add_overhead(&mut self, other: &Self) {
        self.fault_s += other.fault_s;
        self.scan_s += other.scan_s;
        self.copy_s += other.copy_s;
        self.shootdown_s += other.shootdown_s;
        self.sample_s += other.sample_s;
    }
}
