//! The time of one phase: where the time that the traffic is given equals the time that it takes.

use tierloom_contention::{Fabric, Flow, Station, Work, fixed_point, held_up_s};

/// Relative width within which a limit on lines counts as what set the time: the solver's, with room.
const AT_LIMIT: f64 = 1e-6;

/// One phase's time and what is behind it.
#[derive(Debug, Clone)]
pub(crate) struct Solved<'a> {
    /// Seconds.
    pub(crate) time_s: f64,
    /// The phase's traffic.
    pub(crate) flow: Flow<'a>,
    /// What it cannot be faster than, where it is known: a full station, or one that takes no more lines.
    pub(crate) bottleneck: Option<Station>,
}

impl Solved<'_> {
    /// The team whose waits set the time, by position; `cells` as they were solved.
    pub(crate) fn slowest(&self, cells: &[Work], memories: usize) -> usize {
        let waits = waits_s(cells, memories, &self.flow, 1.0, self.time_s).enumerate();
        waits.fold((0, 0.0), |most, team| if team.1 > most.1 { team } else { most }).0
    }
}

/// Seconds that each team waits when the traffic passes within `seconds`.
fn waits_s<'a>(
    cells: &'a [Work],
    memories: usize,
    flow: &'a Flow<'_>,
    stretch: f64,
    seconds: f64,
) -> impl Iterator<Item = f64> + 'a {
    cells.chunks_exact(memories).enumerate().map(move |(team, cells)| {
        let first = team * memories;
        let waits = cells.iter().enumerate().filter(|(_, work)| work.wait > 0.0);
        let waits_s: f64 = waits.map(|(memory, work)| flow.wait_s(first + memory, *work, seconds)).sum();
        let random = cells.iter().enumerate().filter(|(_, work)| work.has_beside());
        let parts = random.map(|(memory, work)| (*work, flow.random_ns(first + memory, seconds)));
        stretch * (waits_s + held_up_s(parts))
    })
}

/// `T = F(T)` of one phase, to be solved or only bounded.
#[derive(Debug, Clone)]
pub(crate) struct Problem<'a> {
    compute_s: f64,
    cells: &'a [Work],
    memories: usize,
    flow: Flow<'a>,
    /// On every latency, for ranges; 1 is the model.
    stretch: f64,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(compute_s: f64, cells: &'a [Work], fabric: &'a Fabric, stretch: f64) -> Self {
        let flow = fabric.flow(cells.iter().map(|work| work.traffic()));
        Self { compute_s, cells, memories: fabric.memories(), flow, stretch }
    }

    /// The right side: computing and waiting of the slowest team when the traffic passes within `seconds`, and no
    /// less than memories need that take only so many lines at once.
    fn needed_s(&self, seconds: f64) -> f64 {
        let waits_s = waits_s(self.cells, self.memories, &self.flow, self.stretch, seconds).fold(0.0, f64::max);
        (self.compute_s + waits_s).max(self.stretch * self.flow.held_back(seconds).1)
    }

    /// The solution over the roofline; infinite where a memory in use cannot be reached.
    pub(crate) fn time_s(&self) -> f64 {
        // Nothing takes less than the roofline, or than its waits at rest.
        let floor = self.flow.least_s().max(self.needed_s(f64::INFINITY));
        fixed_point(floor, |seconds| self.needed_s(seconds))
    }

    /// A bound on the solution from below, of one evaluation near it.
    pub(crate) fn at_least_s(&self, near_s: f64) -> f64 {
        let least_s = self.flow.least_s();
        if near_s <= least_s || !near_s.is_finite() {
            return least_s;
        }
        least_s.max(near_s.min(self.needed_s(near_s)))
    }
}

/// Solves `T = F(T)` of one phase.
pub(crate) fn solve<'a>(compute_s: f64, cells: &'a [Work], fabric: &'a Fabric, stretch: f64) -> Solved<'a> {
    let problem = Problem::new(compute_s, cells, fabric, stretch);
    let time_s = problem.time_s();
    let (memory, held_s) = problem.flow.held_back(time_s);
    let limited = memory.filter(|_| held_s >= time_s * (1.0 - AT_LIMIT)).map(Station::Memory);
    let bottleneck = limited.or_else(|| problem.flow.bottleneck());
    Solved { time_s, flow: problem.flow, bottleneck }
}
