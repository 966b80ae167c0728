//! `alto`: Alto on TPP (OSDI'25): promote less where a miss costs little.
//!
//! The cost of a miss is its latency over the misses that overlap with it (AOL). Steps of its published
//! script: nothing moves up to 40 ns, a tenth up to 60, 3 tenths up to 80, half up to 100, all above.

use super::contract::{Fault, Policy, Room, Verdict};
use super::tpp::Tpp;
use crate::kernel::counters::Counters;

/// Cost of a miss up to which this share of promotions goes through, ns.
const STEPS: [(f64, f64); 4] = [(40.0, 0.0), (60.0, 0.1), (80.0, 0.3), (100.0, 0.5)];

/// TPP, held back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alto {
    inner: Tpp,
}

impl Default for Alto {
    fn default() -> Self {
        Self { inner: Tpp { refault: false, ..Tpp::default() } }
    }
}

fn scale(cost_of_miss_ns: f64) -> f64 {
    STEPS.iter().find(|(most, _)| cost_of_miss_ns <= *most).map_or(1.0, |(_, share)| *share)
}

impl Policy for Alto {
    fn name(&self) -> &'static str {
        "alto"
    }

    fn about(&self) -> &'static str {
        "TPP that promotes less where misses overlap (Alto, OSDI'25)"
    }

    fn base(&self) -> Option<&dyn Policy> {
        Some(&self.inner)
    }

    fn base_mut(&mut self) -> Option<&mut dyn Policy> {
        Some(&mut self.inner)
    }

    fn on_fault(&mut self, fault: &Fault, room: &Room, counters: &mut Counters) -> Verdict {
        let verdict = self.inner.on_fault(fault, room, counters);
        Verdict { promote: verdict.promote * scale(room.cost_of_miss_ns), ..verdict }
    }

    fn limits(&self) -> Option<&'static str> {
        Some("single pages in the exact evaluator move in fractions of a promotion, carried over")
    }
}

#[cfg(test)]
mod tests {
    use super::scale;

    #[test]
    fn dear_misses_promote_and_cheap_ones_do_not() {
        assert!(scale(20.0) < 1e-12 && (scale(70.0) - 0.3).abs() < 1e-12 && (scale(200.0) - 1.0).abs() < 1e-12);
    }
}
