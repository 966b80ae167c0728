//! A demand with its time, phase by phase: what a search stands at while it looks for something faster.
//!
//! A step of a search moves a few objects and is mostly not worth it. [`Predictor::faster`] says so
//! without solving: phases that the step does not touch take as long as they did, and of the others
//! one evaluation bounds the time from below. `T = F(T)` with a falling `F` has its solution between
//! any `t` and `F(t)`, so `min(t, F(t))` at the phase's time before the step is such a bound.

use crate::demand::Demand;
use crate::doubt::Doubt;
use crate::phase::Problem;
use crate::predictor::Predictor;

/// A [`Demand`] with the time of each phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    demand: Demand,
    phases_s: Vec<f64>,
    time_s: f64,
}

impl Timed {
    /// What is asked of each memory.
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Run time, s.
    pub fn time_s(&self) -> f64 {
        self.time_s
    }
}

impl Predictor {
    /// A demand with its time.
    pub fn timed(&self, demand: Demand) -> Timed {
        let phases_s: Vec<f64> = self.problems(&demand).map(|phase| phase.time_s()).collect();
        Timed { time_s: phases_s.iter().sum(), demand, phases_s }
    }

    /// A demand with its time, if that is below `limit_s`; `near` is what most phases are as in.
    ///
    /// Answers as [`Predictor::time_s`] would, but for its tolerance.
    pub fn faster(&self, near: &Timed, demand: Demand, limit_s: f64) -> Option<Timed> {
        let ways = self.fabric.ways();
        let changed = |phase: &usize| {
            let cells = phase * ways..(phase + 1) * ways;
            demand.cells[cells.clone()] != near.demand.cells[cells]
        };
        let changed: Vec<usize> = (0..near.phases_s.len()).filter(changed).collect();
        let problems: Vec<(usize, Problem<'_>)> =
            changed.into_iter().map(|phase| (phase, self.problem(&demand, phase))).collect();
        let mut phases_s = near.phases_s.clone();
        for (phase, problem) in &problems {
            phases_s[*phase] = problem.at_least_s(phases_s[*phase]);
        }
        for (phase, problem) in &problems {
            if phases_s.iter().sum::<f64>() >= limit_s {
                return None;
            }
            phases_s[*phase] = problem.time_s();
        }
        let time_s = phases_s.iter().sum();
        drop(problems);
        (time_s < limit_s).then_some(Timed { demand, phases_s, time_s })
    }

    fn problems<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = Problem<'a>> {
        (0..self.likely.compute_s.len()).map(|phase| self.problem(demand, phase))
    }

    fn problem<'a>(&'a self, demand: &'a Demand, phase: usize) -> Problem<'a> {
        let ways = self.fabric.ways();
        let cells = &demand.cells[phase * ways..(phase + 1) * ways];
        Problem::new(self.likely.compute_s[phase], cells, &self.fabric, Doubt::NONE.latency)
    }
}
