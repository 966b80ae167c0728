//! Which pages of a cohort are visited between two points of the run, in closed form.

use super::cohorts::Rate;
use super::state::Cohort;
use crate::workload::sweep::LastSweep;

impl Cohort<'_> {
    /// Share of idle pages that are visited between two times, which are progress of the program.
    pub(super) fn visited(&self, cohort: usize, last: LastSweep, after: f64, until: f64) -> f64 {
        let Rate { swept, random, .. } = self.rates[cohort];
        let met = if swept > 0.0 { last.met(1.0 / swept, after, until) } else { 0.0 };
        1.0 - (1.0 - met) * unvisited(random, until - after)
    }

    /// Share of pages that are visited between two times; when a sweep last passed by these, and by the others.
    pub(super) fn parted(&self, cohort: usize, last: LastSweep, after: f64, until: f64) -> (f64, [LastSweep; 2]) {
        let Rate { swept, random, .. } = self.rates[cohort];
        let (met, swept) =
            if swept > 0.0 { last.parted(1.0 / swept, after, until) } else { (0.0, [LastSweep::by(until); 2]) };
        // What was visited at random as well may have been met or not.
        let swept = if random > 0.0 { [LastSweep::by(until), swept[1]] } else { swept };
        (1.0 - (1.0 - met) * unvisited(random, until - after), swept)
    }

    /// How far between two times the fault is on average, given that it falls between them.
    pub(super) fn mean_share(&self, cohort: usize, last: LastSweep, after: f64, until: f64) -> f64 {
        let Rate { swept, random, .. } = self.rates[cohort];
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

/// Share of pages that nobody visits at random in so much of the program.
fn unvisited(random: f64, progress: f64) -> f64 {
    if random > 0.0 { (-random * progress).exp() } else { 1.0 }
}
