//! Which pages of a cohort are visited between two points of the run, in closed form.

use super::cohorts::Rate;
use super::state::Cohort;
use crate::workload::sweep::{LastSweep, Parted};

impl Rate {
    /// Share of idle pages that are visited between two times, which are progress of the program.
    #[inline]
    pub(super) fn visited(&self, last: LastSweep, after: f64, until: f64) -> f64 {
        let Rate { swept, random, .. } = *self;
        let met = if swept > 0.0 { last.met(1.0 / swept, after, until) } else { 0.0 };
        1.0 - (1.0 - met) * unvisited(random, until - after)
    }

    /// How far between two times the fault is on average, given that it falls between them.
    #[inline]
    pub(super) fn mean_share(&self, last: LastSweep, after: f64, until: f64) -> f64 {
        let Rate { swept, random, .. } = *self;
        let x = (swept + random) * (until - after);
        if random > 0.0 && x >= 1e-6 {
            1.0 / x - 1.0 / x.exp_m1()
        } else if swept > 0.0 {
            last.met_at(1.0 / swept, after, until)
        } else {
            0.5
        }
    }
}

impl Cohort<'_> {
    /// Pages that are visited between two times, and the others.
    pub(super) fn parted(&self, cohort: usize, last: LastSweep, after: f64, until: f64) -> Parted {
        let Rate { swept, random, .. } = self.rates[cohort];
        let just = LastSweep::by(until);
        let met = if swept > 0.0 {
            last.parted(1.0 / swept, after, until)
        } else {
            Parted { share: 0.0, visited: just, others: just }
        };
        let share = 1.0 - (1.0 - met.share) * unvisited(random, until - after);
        // What was visited at random as well may have been met or not.
        Parted { share, visited: if random > 0.0 { just } else { met.visited }, ..met }
    }
}

/// Share of pages that nobody visits at random in so much of the program.
#[inline]
fn unvisited(random: f64, progress: f64) -> f64 {
    if random > 0.0 { (-random * progress).exp() } else { 1.0 }
}
