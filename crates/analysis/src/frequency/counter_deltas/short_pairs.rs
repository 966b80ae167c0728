//! Clocks that are set anew about as often as samples come.
//!
//! Between most samples lie ends of instances, and by how much the clock moved means nothing. But where samples come after
//! differently long times, some follow others within a small part of an instance: then the clock runs forwards, and shows
//! its pace. How long it ran at that pace is told by the time in its loop.

use crate::frequency::counter_deltas::delta::{Count, Delta, Readings};
use crate::frequency::counter_deltas::posterior::Clock;
use crate::frequency::evidence::WITHIN;
use std::collections::BTreeMap;

/// Fewest pairs that tell a pace. Of random ones half run forwards: that four in five of so many do is a chance of one in
/// a thousand.
const FEWEST_PAIRS: usize = 24;
const BACKWARD_SHARE: f64 = 0.2;
/// Pairs half as long must not run faster than this, and so many deviations more: they would if there were ends of
/// instances between the others. Assumed.
const FASTER: f64 = 1.2;
const DEVIATIONS: f64 = 3.0;
/// A clock that is set anew about as often as it is read falls back in half of the intervals. Assumed, with room.
const OFTEN: f64 = 0.3;
/// What the pace within short pairs is off from that of the whole loop, relative: ends of instances have none. Assumed.
const ENDS: f64 = 0.05;

/// Executions of the counted block by the longest pairs between which the clock is hardly ever set anew; `None` where there
/// are none that last as long as the `shortest` does. An instance has so many rounds, where that is known.
pub(super) fn evaluate(clock: Clock<'_>, readings: &Readings, shortest: f64, rounds: Option<f64>) -> Option<Count> {
    let mut adjacent: Vec<&Delta> =
        readings.pairs.iter().filter(|pair| pair.intervals == 1 && pair.length > shortest).collect();
    adjacent.sort_by(|left, right| left.length.total_cmp(&right.length));
    // One that hardly falls back, and is not believed, starts elsewhere each time, and what it moves is not what it counted.
    if Pace::any(clock, &adjacent).backward <= OFTEN {
        return None;
    }
    let mut within = &adjacent[..];
    while within.len() >= FEWEST_PAIRS {
        let shorter = &within[..within.len() / 2];
        let is_right = |pace: &Pace| {
            let fits = rounds.is_none_or(|rounds| pace.moves(within) <= WITHIN * rounds);
            fits && pace.is_that_of(&Pace::any(clock, shorter))
        };
        if let Some(pace) = Pace::of(clock, within).filter(is_right) {
            return Some(pace.count(clock, readings, within.len()));
        }
        within = &within[..within.len() * 3 / 4];
    }
    None
}

/// Executions in a mean interval.
struct Pace {
    rate: f64,
    deviation: f64,
    /// Pairs that move at all, and the share of them that run backwards.
    moving: usize,
    backward: f64,
}

impl Pace {
    /// Of pairs that nearly all run forwards.
    fn of(clock: Clock<'_>, pairs: &[&Delta]) -> Option<Self> {
        let is_told = |pace: &Self| pace.moving >= FEWEST_PAIRS && pace.backward <= BACKWARD_SHARE;
        Some(Self::any(clock, pairs)).filter(is_told)
    }

    /// Of those that run forwards.
    fn any(clock: Clock<'_>, pairs: &[&Delta]) -> Self {
        let forwards: Vec<(f64, f64)> =
            pairs.iter().filter_map(|pair| Some((clock.between(pair)?, pair.length))).collect();
        let (executions, length) = forwards.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let length = f64::max(length, f64::MIN_POSITIVE);
        let rate = executions / length;
        let squares: f64 = forwards.iter().map(|(executions, length)| (executions - rate * length).powi(2)).sum();
        let still = forwards.iter().filter(|(executions, _)| *executions < 0.5).count();
        let moving = pairs.len() - still;
        let backward = (pairs.len() - forwards.len()) as f64 / moving.max(1) as f64;
        Self { rate, deviation: squares.sqrt() / length, moving, backward }
    }

    /// Executions between two samples of these pairs.
    fn moves(&self, pairs: &[&Delta]) -> f64 {
        self.rate * pairs.iter().map(|pair| pair.length).sum::<f64>() / pairs.len() as f64
    }

    fn is_that_of(&self, shorter: &Self) -> bool {
        shorter.rate <= FASTER * self.rate + DEVIATIONS * self.deviation.hypot(shorter.deviation)
    }

    fn count(&self, clock: Clock<'_>, readings: &Readings, trusted: usize) -> Count {
        Count {
            function: clock.function,
            block: clock.counter.counted,
            executions: self.rate * readings.time_around(),
            relative_error: (self.deviation / self.rate).hypot(ENDS),
            visible: readings.seen.len(),
            trusted,
            backward: self.backward,
            by_sample: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::counter_deltas::posterior::tests::CLOCK;

    /// A sample takes so much of a mean interval.
    const SHORTEST: f64 = 0.02;

    /// Readings of a clock that moves by `pace` in an interval and is set anew every `rounds`, by samples at uneven times.
    fn readings(pace: f64, rounds: f64) -> Readings {
        let (shorter, longer) = (1.618_033_988_75, 2.618_033_988_75);
        let mut times: Vec<f64> = (1..2000).flat_map(|k| [shorter, longer].map(|of| of * f64::from(k))).collect();
        times.retain(|time| *time < 2000.0);
        times.sort_by(f64::total_cmp);
        let shown = |time: f64| (pace * time) % rounds;
        let mut readings = Readings::default();
        for (seen, pair) in times.windows(2).enumerate() {
            let length = pair[1] - pair[0];
            readings.enter(0, seen + 1, length);
            readings.seen.push(seen + 1);
            let executions = (shown(pair[1]) - shown(pair[0])).round();
            readings.pairs.push(Delta { length, elapsed_ns: 1e6 * length, ..Delta::next(seen + 1, executions) });
        }
        readings
    }

    #[test]
    fn instances_that_are_shorter_than_intervals_are_counted() {
        for instances in [0.61, 0.83, 1.13, 2.3, 5.02, 11.7] {
            let counted = evaluate(CLOCK, &readings(1000.0, 1000.0 / instances), SHORTEST, None).unwrap();
            let off = counted.executions / (1000.0 * 2000.0) - 1.0;
            assert!(off.abs() < 3.0 * counted.relative_error, "{instances} in an interval: {off}");
        }
    }

    #[test]
    fn instances_that_are_shorter_than_the_shortest_pairs_or_in_step_with_samples_are_not() {
        for instances in [0.5, 1.0, 333.3, 1234.5, 20_000.7] {
            assert!(evaluate(CLOCK, &readings(1e6, 1e6 / instances), SHORTEST, None).is_none(), "{instances}");
        }
    }

    #[test]
    fn samples_that_are_taken_at_once_tell_nothing_of_what_runs_between_others() {
        let mut at_once = readings(1e6, 1e6 / 333.3);
        for seen in 5000..5200 {
            at_once.seen.push(seen);
            at_once.pairs.push(Delta { length: 0.0, elapsed_ns: 5e3, ..Delta::next(seen, 0.0) });
            at_once.pairs.push(Delta { length: 0.025, elapsed_ns: 4e4, ..Delta::next(seen, 0.0) });
        }
        assert!(evaluate(CLOCK, &at_once, SHORTEST, None).is_none());
    }

    #[test]
    fn pairs_of_which_an_instance_is_a_part_tell_nothing() {
        let counted =
            |rounds| evaluate(CLOCK, &readings(1000.0, 434.8), SHORTEST, Some(rounds)).map(|count| count.trusted);
        assert!(counted(434.8).unwrap() > counted(100.0).unwrap());
        assert_eq!(counted(50.0), None, "pairs of so few rounds are hardly longer than a sample takes");
    }
}
