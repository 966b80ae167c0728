//! `hemem`: `HeMem` (SOSP'21), counters of samples by 2 MiB page.
//!
//! Constants from its published code (`pebs.h`): one sample in 5003 misses, hot from 8 reads or 4
//! writes, all counters halved when one passes 18, a look every 10 ms, at most 10 GB/s of copies by a
//! DMA engine. Counters hold expected values here: sampling noise is left out.

use tierloom_model::units::PAGE_BYTES_F64;

use super::contract::Policy;
use super::heat::{HUGE, exchange};
use super::heat::{Move, View};
use super::knobs::{Knob, knob};

const CODE: &str = "HeMem src/pebs.h";

/// Knobs and counters.
#[derive(Debug, Clone)]
pub(super) struct HeMem {
    pub(super) sample_period: f64,
    pub(super) hot_reads: f64,
    pub(super) hot_writes: f64,
    cool: f64,
    most_gb_s: f64,
    /// By group: reads and writes.
    counts: Vec<[f64; 2]>,
}

impl Default for HeMem {
    fn default() -> Self {
        Self { sample_period: 5003.0, hot_reads: 8.0, hot_writes: 4.0, cool: 18.0, most_gb_s: 10.0, counts: Vec::new() }
    }
}

impl HeMem {
    /// Counts new samples, and halves all counters when one is full.
    pub(super) fn count(&mut self, view: &View<'_>) {
        self.counts.resize(view.groups.len(), [0.0; 2]);
        for (count, group) in self.counts.iter_mut().zip(view.groups) {
            count[0] += group.reads * HUGE * view.since_s / self.sample_period;
            count[1] += group.writes * HUGE * view.since_s / self.sample_period;
        }
        let fullest = self.counts.iter().map(|count| count[0].max(count[1])).fold(0.0, f64::max);
        if fullest > self.cool {
            let halvings = (fullest / self.cool).log2().ceil();
            let factor = 0.5f64.powf(halvings);
            self.counts.iter_mut().flatten().for_each(|count| *count *= factor);
        }
    }

    /// Heat by group: 1 is just hot.
    pub(super) fn heat(&self) -> Vec<f64> {
        self.counts.iter().map(|count| (count[0] / self.hot_reads).max(count[1] / self.hot_writes)).collect()
    }

    /// Pages that may be copied since the last look.
    pub(super) fn budget(&self, view: &View<'_>) -> f64 {
        self.most_gb_s * 1e9 / PAGE_BYTES_F64 * view.since_s
    }
}

impl Policy for HeMem {
    fn name(&self) -> &'static str {
        "hemem"
    }

    fn about(&self) -> &'static str {
        "2 MiB pages with enough samples move up, cold ones make room (HeMem, SOSP'21)"
    }

    fn knobs(&self) -> Vec<Knob> {
        vec![
            knob("sample_period", self.sample_period, CODE),
            knob("hot_read_threshold", self.hot_reads, CODE),
            knob("hot_write_threshold", self.hot_writes, CODE),
            knob("cooling_threshold", self.cool, CODE),
            knob("migration_gb_s", self.most_gb_s, CODE),
        ]
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        match name {
            "sample_period" => self.sample_period = value,
            "hot_read_threshold" => self.hot_reads = value,
            "hot_write_threshold" => self.hot_writes = value,
            "cooling_threshold" => self.cool = value,
            "migration_gb_s" => self.most_gb_s = value,
            _ => return false,
        }
        true
    }

    fn period_s(&self) -> Option<f64> {
        Some(0.01)
    }

    fn sample_period(&self) -> f64 {
        self.sample_period
    }

    fn shootdowns(&self) -> f64 {
        1.0 / HUGE
    }

    fn look(&mut self, view: &View<'_>) -> Vec<Move> {
        self.count(view);
        let heat = self.heat();
        exchange(view, &heat, 1.0, 1.0, self.budget(view), view.nodes.list[0].marks.low)
    }

    fn limits(&self) -> Option<&'static str> {
        Some("samples are counted without noise, so a page is never taken for hot by chance")
    }
}
