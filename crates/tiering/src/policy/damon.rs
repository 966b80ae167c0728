//! `damon`: DAMON with migration schemes, as HMSDK 2 and 3 set it up.
//!
//! Source: `tools/gen_migpol.py` of HMSDK: sampling 100 ms, aggregation 2 s, cold = no access for 30 s,
//! hot = accessed in 5 to 100 % of the samples, at most 50 GiB per 20 s. DAMON checks one page
//! of each region per sampling, so it sees how many pages of a region are in use, not how hot they are.

use tierloom_model::units::PAGE_BYTES_F64;

use super::contract::Policy;
use super::heat::{Move, View, exchange};
use super::knobs::{Knob, knob};

const HMSDK: &str = "HMSDK tools/gen_migpol.py";
/// Bytes per second that a quota of 50 GiB in 20 s lets through.
const QUOTA_BYTES_S: f64 = 50.0 * 1_073_741_824.0 / 20.0;

/// Knobs and ages.
#[derive(Debug, Clone)]
pub(super) struct Damon {
    sample_s: f64,
    aggregation_s: f64,
    hot_share: f64,
    cold_s: f64,
    /// By group: s without an access.
    idle_s: Vec<f64>,
}

impl Default for Damon {
    fn default() -> Self {
        Self { sample_s: 0.1, aggregation_s: 2.0, hot_share: 0.05, cold_s: 30.0, idle_s: Vec::new() }
    }
}

impl Policy for Damon {
    fn name(&self) -> &'static str {
        "damon"
    }

    fn about(&self) -> &'static str {
        "regions seen in use move up, regions idle for 30 s down (DAMON, HMSDK)"
    }

    fn knobs(&self) -> Vec<Knob> {
        vec![
            knob("sampling_us", self.sample_s * 1e6, HMSDK),
            knob("aggregation_us", self.aggregation_s * 1e6, HMSDK),
            knob("hot_access_share", self.hot_share, HMSDK),
            knob("cold_age_s", self.cold_s, HMSDK),
        ]
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        match name {
            "sampling_us" => self.sample_s = value * 1e-6,
            "aggregation_us" => self.aggregation_s = value * 1e-6,
            "hot_access_share" => self.hot_share = value,
            "cold_age_s" => self.cold_s = value,
            _ => return false,
        }
        true
    }

    fn period_s(&self) -> Option<f64> {
        Some(self.aggregation_s)
    }

    fn shootdowns(&self) -> f64 {
        1.0
    }

    fn look(&mut self, view: &View<'_>) -> Vec<Move> {
        self.idle_s.resize(view.groups.len(), 0.0);
        // Chance that a page is visited between two samples.
        let seen: Vec<f64> = view.groups.iter().map(|group| 1.0 - (-group.visits * self.sample_s).exp()).collect();
        for (idle_s, seen) in self.idle_s.iter_mut().zip(&seen) {
            *idle_s = if *seen * view.since_s / self.sample_s > 0.5 { 0.0 } else { *idle_s + view.since_s };
        }
        // Above 0: hot; below 0: cold, the longer idle the colder; between: left alone.
        let heat: Vec<f64> = seen
            .iter()
            .zip(&self.idle_s)
            .map(|(seen, idle_s)| {
                if *seen >= self.hot_share {
                    1.0 + seen
                } else if *idle_s >= self.cold_s {
                    -idle_s
                } else {
                    0.0
                }
            })
            .collect();
        let most = QUOTA_BYTES_S / PAGE_BYTES_F64 * view.since_s;
        exchange(view, &heat, 1.0, 0.0, most, view.nodes.list[0].marks.high)
    }
}
