//! A machine and a profile, compiled for one run; asked for the time of many placements.

use tierloom_contention::{Fabric, Work};
use tierloom_model::{Machine, Profile};

use crate::behind::{Lines, behind, cache_of};
use crate::compile::{Works, all_teams};
use crate::demand::Demand;
use crate::doubt::Doubt;
use crate::error::PredictError;
use crate::labels::Labels;
use crate::open::open;
use crate::phase::solve;
use crate::run::{Run, check};

/// Machine × profile × run, compiled once.
#[derive(Debug, Clone)]
pub struct Predictor {
    pub(crate) fabric: Fabric,
    pub(crate) labels: Labels,
    pub(crate) likely: Works,
    /// By object, its likely work over the whole run.
    totals: Vec<Work>,
    /// What the run leaves open, each with all doubts for the better, and for the worse.
    pub(crate) low: Vec<Works>,
    pub(crate) high: Vec<Works>,
}

impl Predictor {
    /// Compiles a machine and a profile for a run on one socket.
    ///
    /// # Errors
    /// [`PredictError`] for a socket that is not there, no threads or more than the socket has
    /// cores, or an access to an object that is not there.
    pub fn new(machine: &Machine, profile: &Profile, run: Run) -> Result<Self, PredictError> {
        Self::over(machine, profile, &[run])
    }

    /// Compiles a machine and a profile for threads on several sockets, which share each phase's work
    /// evenly and wait for each other at its end.
    ///
    /// # Errors
    /// As [`Predictor::new`], and for no socket or one that is named twice.
    pub fn over(machine: &Machine, profile: &Profile, runs: &[Run]) -> Result<Self, PredictError> {
        let sockets: Vec<usize> = runs.iter().map(|run| run.socket).collect();
        let fabric = Fabric::over(machine, &sockets)?;
        check(machine, profile, runs)?;
        let cache = cache_of(machine, profile, runs.iter().map(|run| run.socket));
        let teams = all_teams(machine, profile, runs, Doubt::NONE);
        let likely = Works::new(profile, &behind(profile, cache, Lines::Likely), &teams, Doubt::NONE)?;
        let predictor = Self {
            fabric,
            labels: Labels::new(machine, profile, runs),
            totals: (0..profile.objects.len()).map(|object| likely.of_object(object)).collect(),
            likely,
            low: Vec::new(),
            high: Vec::new(),
        };
        predictor.leaving_open(machine, profile, runs)
    }

    /// Takes into the range of predictions that the profile may be another one, of the same objects and phases.
    ///
    /// # Errors
    /// An access to an object that is not there.
    pub fn leaving_open(mut self, machine: &Machine, profile: &Profile, runs: &[Run]) -> Result<Self, PredictError> {
        let cache = cache_of(machine, profile, runs.iter().map(|run| run.socket));
        let [at_least, at_most] = [Doubt::LOW, Doubt::HIGH].map(|doubt| all_teams(machine, profile, runs, doubt));
        for phases in open(machine, profile, cache) {
            self.low.push(Works::new(profile, &phases, &at_least, Doubt::LOW)?);
            self.high.push(Works::new(profile, &phases, &at_most, Doubt::HIGH)?);
        }
        Ok(self)
    }

    /// Objects of the profile.
    pub fn objects(&self) -> usize {
        self.labels.objects.len()
    }

    /// Memories of the machine.
    pub fn memories(&self) -> usize {
        self.fabric.memories()
    }

    /// What a placement asks of each memory.
    ///
    /// `rows` has one row per object with one fraction per memory, as in
    /// [`Placement::rows`](tierloom_model::Placement::rows); objects without a row have no traffic.
    pub fn demand<R: AsRef<[f64]>>(&self, rows: impl IntoIterator<Item = R>) -> Demand {
        self.demand_under(&self.likely, rows)
    }

    pub(crate) fn demand_under<R: AsRef<[f64]>>(&self, works: &Works, rows: impl IntoIterator<Item = R>) -> Demand {
        let mut cells = vec![Work::default(); works.compute_s.len() * self.fabric.ways()];
        for (object, fractions) in rows.into_iter().enumerate() {
            for (row, cells) in cells.chunks_exact_mut(self.memories()).enumerate() {
                let work = works.of_row(row)[object];
                for (cell, fraction) in cells.iter_mut().zip(fractions.as_ref()).filter(|(_, share)| **share != 0.0) {
                    *cell += work * *fraction;
                }
            }
        }
        Demand { cells }
    }

    /// Moves a share (0 to 1 of the whole object) from one memory to another.
    pub fn shift(&self, demand: &mut Demand, object: usize, from: usize, to: usize, fraction: f64) {
        for (row, cells) in demand.cells.chunks_exact_mut(self.memories()).enumerate() {
            let moved = self.likely.of_row(row)[object] * fraction;
            cells[from] = (cells[from] + moved * -1.0).without_dust(self.likely.whole_of_row(row));
            cells[to] += moved;
        }
    }

    /// Run time, s; infinite where a memory in use cannot be reached.
    pub fn time_s(&self, demand: &Demand) -> f64 {
        self.time_under(&self.likely, demand)
    }

    pub(crate) fn time_under(&self, works: &Works, demand: &Demand) -> f64 {
        let phases = demand.cells.chunks_exact(self.fabric.ways()).zip(&works.compute_s);
        phases.map(|(cells, compute_s)| solve(*compute_s, cells, &self.fabric, works.doubt.latency).time_s).sum()
    }

    /// Seconds of waiting per nanosecond of latency over the whole run, if all of the object were in
    /// one memory: its traffic weighted by how much the threads wait for it (its criticality).
    pub fn stall_per_ns(&self, object: usize) -> f64 {
        self.totals[object].wait
    }

    /// Bytes to and from memory over the whole run.
    pub fn dram_bytes(&self, object: usize) -> f64 {
        self.totals[object].bytes()
    }
}
