//! The time of one phase: where the time that the traffic is given equals the time that it takes.

use tierloom_contention::{Fabric, Flow, Work, fixed_point};

/// One phase's time and what is behind it.
#[derive(Debug, Clone)]
pub(crate) struct Solved<'a> {
    /// Seconds.
    pub(crate) time_s: f64,
    /// The phase's traffic.
    pub(crate) flow: Flow<'a>,
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
        let waits = cells.iter().enumerate().filter(|(_, work)| work.wait > 0.0);
        let ways = waits.map(|(memory, work)| (team * memories + memory, work.wait));
        ways.map(|(way, wait)| wait * stretch * flow.latency_ns(way, seconds)).sum()
    })
}

/// The right side of `T = F(T)`: computing and waiting of the slowest team when the traffic passes
/// within `seconds`.
///
/// `stretch` multiplies every latency, for ranges; 1 is the model.
fn needed_s(compute_s: f64, cells: &[Work], memories: usize, flow: &Flow<'_>, stretch: f64, seconds: f64) -> f64 {
    compute_s + waits_s(cells, memories, flow, stretch, seconds).fold(0.0, f64::max)
}

/// Solves `T = F(T)` over the roofline; infinite where a memory in use cannot be reached.
pub(crate) fn solve<'a>(compute_s: f64, cells: &[Work], fabric: &'a Fabric, stretch: f64) -> Solved<'a> {
    let flow = fabric.flow(cells.iter().map(|work| work.traffic()));
    let needed = |seconds: f64| needed_s(compute_s, cells, fabric.memories(), &flow, stretch, seconds);
    // Nothing takes less than the roofline, or than its waits at rest.
    let floor = flow.least_s().max(needed(f64::INFINITY));
    let time_s = fixed_point(floor, needed);
    Solved { time_s, flow }
}
