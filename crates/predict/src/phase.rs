//! The time of one phase: where the time that the traffic is given equals the time that it takes.

use tierloom_contention::{Bracket, Fabric, Flow, increasing_root};

use crate::demand::Work;

/// Relative width at which the time is good enough.
const TOLERANCE: f64 = 1e-11;

/// Distances from a wall, relative to it, between which the time is looked for, from far to near.
const DISTANCES: [f64; 7] = [1.0, 0.1, 1e-2, 1e-4, 1e-6, 1e-8, TOLERANCE];

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
    if floor == 0.0 || !floor.is_finite() {
        return Solved { time_s: floor, flow };
    }
    let at_floor = needed(floor);
    let time_s = if at_floor <= floor { floor } else { above(floor, at_floor, needed) };
    Solved { time_s, flow }
}

/// The fixed point above a floor where more time is needed than the floor gives.
fn above(floor: f64, at_floor: f64, needed: impl Fn(f64) -> f64) -> f64 {
    if at_floor.is_infinite() {
        return above_wall(floor, needed);
    }
    // F falls, so its value at a time that is too short is a time that is long enough.
    let bracket =
        Bracket { low: floor, at_low: floor - at_floor, high: at_floor, at_high: at_floor - needed(at_floor) };
    increasing_root(bracket, TOLERANCE, |seconds| seconds - needed(seconds))
}

/// The fixed point above a floor where latency has a pole, `1/(1-u) = T/(T - floor)`.
///
/// Solves for the missing time multiplied by the distance from the wall, which takes the pole away.
fn above_wall(floor: f64, needed: impl Fn(f64) -> f64) -> f64 {
    let left_over = |seconds: f64| (seconds - needed(seconds)) * (seconds - floor);
    let mut enough = None;
    for gap in DISTANCES {
        let seconds = floor * (1.0 + gap);
        let at = left_over(seconds);
        if at <= 0.0 {
            // F falls, so its value at a time that is too short is a time that is long enough.
            let (high, at_high) = enough.unwrap_or_else(|| (needed(seconds), left_over(needed(seconds))));
            return increasing_root(Bracket { low: seconds, at_low: at, high, at_high }, TOLERANCE, left_over);
        }
        enough = Some((seconds, at));
    }
    floor
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Calls of `F` that it takes to solve for the time above a floor.
    fn calls(floor: f64, needed: impl Fn(f64) -> f64) -> u32 {
        let count = Cell::new(0);
        let counted = |seconds: f64| {
            count.set(count.get() + 1);
            needed(seconds)
        };
        let time_s = above(floor, needed(floor), counted);
        assert!(needed(time_s * (1.0 + 1e-10)) <= time_s * (1.0 + 1e-10), "{time_s}");
        assert!(needed(time_s * (1.0 - 1e-10)) >= time_s * (1.0 - 1e-10), "{time_s}");
        count.get()
    }

    #[test]
    fn a_wall_takes_a_few_steps_however_close_the_time_is_to_it() {
        for waiting in [1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0] {
            let wait = |seconds: f64| if seconds > 1.0 { waiting * seconds / (seconds - 1.0) } else { f64::INFINITY };
            assert!(calls(1.0, |seconds| 0.3 + wait(seconds)) <= 14, "{waiting}");
        }
    }

    #[test]
    fn a_smooth_rise_takes_a_few_steps() {
        for waiting in [0.1, 1.0, 10.0] {
            assert!(calls(1.0, |seconds| 0.9 + waiting / seconds.powi(3)) <= 14, "{waiting}");
        }
    }
}
