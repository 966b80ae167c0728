//! The time that takes as long as it is given: `T = F(T)`, where `F` only falls.
//!
//! The more time traffic has, the less it waits, so there is one such time. It is looked for above a floor that no
//! time can be under: the roofline, or the waits at rest. Both engines that turn traffic into time solve for it here,
//! so they agree where nothing else tells them apart.

use crate::root::{Bracket, increasing_root};

/// Relative width at which the time is good enough.
const TOLERANCE: f64 = 1e-11;

/// Distances from a wall, relative to it, between which the time is looked for, from far to near.
const DISTANCES: [f64; 7] = [1.0, 0.1, 1e-2, 1e-4, 1e-6, 1e-8, TOLERANCE];

/// The time at or above `floor` that `needed` asks for when it is given that time; the floor itself where that is
/// enough, or where it is 0 or infinite.
///
/// ```
/// // A queue before a wall: 1 s of transfer, and waits that grow without bound as the time nears it.
/// let needed = |seconds: f64| if seconds > 1.0 { 0.5 * seconds / (seconds - 1.0) } else { f64::INFINITY };
/// let time_s = tierloom_contention::fixed_point(1.0, needed);
/// assert!((needed(time_s) / time_s - 1.0).abs() < 1e-9);
/// ```
pub fn fixed_point(floor: f64, needed: impl Fn(f64) -> f64) -> f64 {
    if floor == 0.0 || !floor.is_finite() {
        return floor;
    }
    let at_floor = needed(floor);
    if at_floor <= floor { floor } else { above(floor, at_floor, needed) }
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
