//! `memtis`: MEMTIS (SOSP'23), a hot set as large as fast memory.
//!
//! From its published kernel (`mm/htmm_*.c`): one sample in 199 misses (stretched up to 19 997 to stay under 3 %
//! of a CPU), a histogram of 16 powers of two, the hot threshold is the smallest bin such that what lies above fits
//! into fast memory less 3 %, counters are halved every 2 million samples, migration every 500 ms.
//! Splitting of skewed huge pages is left out: pages are counted one by one.

use super::contract::Policy;
use super::heat::exchange;
use super::heat::{Move, View};
use super::knobs::{Knob, knob};

const CODE: &str = "MEMTIS linux/mm/htmm_core.c";
/// Bins of the histogram.
const BINS: f64 = 15.0;
/// Share of fast memory that stays free for promotions.
const RESERVE: f64 = 0.03;
/// Share of fast memory that the hot set should fill; below, the next bin is kept as well.
const WARM: f64 = 0.75;

/// Knobs and counters.
#[derive(Debug, Clone)]
pub(super) struct Memtis {
    sample_period: f64,
    cooling_samples: f64,
    migration_ms: f64,
    counts: Vec<f64>,
    samples: f64,
}

impl Default for Memtis {
    fn default() -> Self {
        Self { sample_period: 199.0, cooling_samples: 2e6, migration_ms: 500.0, counts: Vec::new(), samples: 0.0 }
    }
}

impl Memtis {
    fn count(&mut self, view: &View<'_>) {
        self.counts.resize(view.groups.len(), 0.0);
        for (count, group) in self.counts.iter_mut().zip(view.groups) {
            let samples = (group.reads + group.writes) * view.since_s / self.sample_period;
            *count += samples;
            self.samples += samples * group.all();
        }
        if self.samples > self.cooling_samples {
            let factor = 0.5f64.powf((self.samples / self.cooling_samples).floor().min(60.0));
            self.counts.iter_mut().for_each(|count| *count *= factor);
            self.samples %= self.cooling_samples;
        }
    }

    /// Smallest bin such that everything in it and above fits, and the pages that are in it and above.
    fn threshold(view: &View<'_>, bins: &[f64]) -> (f64, f64) {
        let room = view.nodes.list[0].pages * (1.0 - RESERVE);
        let (mut threshold, mut held) = (BINS + 1.0, 0.0);
        let mut bin = BINS;
        while bin >= 1.0 {
            let here: f64 =
                view.groups.iter().zip(bins).filter(|(_, b)| (**b - bin).abs() < 0.5).map(|(g, _)| g.all()).sum();
            if held + here > room {
                break;
            }
            (held, threshold) = (held + here, bin);
            bin -= 1.0;
        }
        (threshold, held)
    }
}

impl Policy for Memtis {
    fn name(&self) -> &'static str {
        "memtis"
    }

    fn about(&self) -> &'static str {
        "the hottest pages that fit, by a histogram of samples (MEMTIS, SOSP'23)"
    }

    fn knobs(&self) -> Vec<Knob> {
        vec![
            knob("htmm_sample_period", self.sample_period, CODE),
            knob("htmm_cooling_period", self.cooling_samples, CODE),
            knob("htmm_promotion_period_in_ms", self.migration_ms, CODE),
        ]
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        match name {
            "htmm_sample_period" => self.sample_period = value,
            "htmm_cooling_period" => self.cooling_samples = value,
            "htmm_promotion_period_in_ms" => self.migration_ms = value,
            _ => return false,
        }
        true
    }

    fn period_s(&self) -> Option<f64> {
        Some(self.migration_ms * 1e-3)
    }

    fn sample_period(&self) -> f64 {
        self.sample_period
    }

    fn shootdowns(&self) -> f64 {
        1.0
    }

    fn look(&mut self, view: &View<'_>) -> Vec<Move> {
        self.count(view);
        // `floor(log2(n + 1))`, with the counts of base pages scaled to those of huge ones.
        let bins: Vec<f64> =
            self.counts.iter().map(|count| (count * super::heat::HUGE + 1.0).log2().floor().min(BINS)).collect();
        let (hot, held) = Self::threshold(view, &bins);
        let fills = held >= WARM * view.nodes.list[0].pages;
        let cold = if fills { hot } else { hot - 1.0 };
        exchange(view, &bins, hot, cold, f64::INFINITY, RESERVE * view.nodes.list[0].pages)
    }

    fn limits(&self) -> Option<&'static str> {
        Some("samples are counted without noise; huge pages are not split, pages are counted one by one")
    }
}
