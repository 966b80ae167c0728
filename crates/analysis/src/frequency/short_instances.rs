//! Rounds of loops of which many instances lie between two samples, where nothing tells their ends.
//!
//! A clock that the loop around sets to the same value before each instance shows how far a sample is into its instance.
//! Where that value lies in memory nobody knows it, but the difference of two samples does not depend on it: if
//! instances are alike and samples fall anywhere, it is that of two random places of one instance.

use std::collections::BTreeMap;

use crate::attribution::Observed;
use crate::frequency::trip_count::{TripCount, TripCounts};
use tierloom_binary::cfg::{Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::induction::{InductionVariable, counters};
use tierloom_binary::dataflow::update::Step;

/// Fewer differences than this say nothing.
const FEWEST: usize = 40;
/// Where instances are short, the later of two samples is as often nearer to the start as further from it: by so much
/// the share may be off one half. Assumed: six standard deviations of the fewest differences are as much.
const EVEN: f64 = 0.1;
/// Percentiles of differences of which each must give the same rounds.
const PERCENTILES: [usize; 3] = [50, 75, 90];
/// Within this factor. Assumed.
const ALIKE: f64 = 1.25;

/// Rounds of those of these loops that have such a clock: samples in each, as (position of the sample, of the instruction).
pub(crate) fn trips(observed: &Observed, open: &BTreeMap<(FunctionId, LoopId), &[(usize, usize)]>) -> TripCounts {
    let mut known: BTreeMap<FunctionId, Vec<InductionVariable>> = BTreeMap::new();
    let mut found = TripCounts::new();
    for (&(id, inside), samples) in open {
        let function = &observed.code.functions[id].function;
        let clocks = known.entry(id).or_insert_with(|| counters(function)).iter();
        let trip = clocks
            .filter(|clock| clock.region == inside && restarts(function, clock))
            .find_map(|clock| of_differences(differences(observed, clock, samples)));
        found.extend(trip.map(|trip| ((id, inside), trip)));
    }
    found
}

/// Whether a clock counts the rounds of its loop from the same value on each time.
fn restarts(function: &Function, clock: &InductionVariable) -> bool {
    clock.restarts && function.once_per_round(clock.region, clock.counted)
}

/// Rounds between samples of a thread that follow each other, whatever instances lie between them.
fn differences(observed: &Observed, clock: &InductionVariable, samples: &[(usize, usize)]) -> Vec<f64> {
    let Step::Constant(step) = clock.step else { return Vec::new() };
    let mut last: BTreeMap<usize, u64> = BTreeMap::new();
    let mut moved = Vec::new();
    for &(number, at) in samples {
        let seen = &observed.seen[number];
        if let Some(value) = clock.value.read(observed.shown(number), at)
            && let Some(before) = last.insert(seen.thread, value)
        {
            moved.push(value.wrapping_sub(before).cast_signed() as f64 / step as f64);
        }
    }
    moved
}

/// Of two random places among so many the distance is less than a part of them in 1 - (1 - part)² of the cases.
fn of_differences(moved: Vec<f64>) -> Option<TripCount> {
    let count = moved.len();
    let falls = moved.iter().filter(|moved| **moved < 0.0).count() as f64;
    let rises = moved.iter().filter(|moved| **moved > 0.0).count() as f64;
    if count < FEWEST || (falls / (falls + rises) - 0.5).abs() > EVEN {
        return None;
    }
    let mut distances: Vec<f64> = moved.into_iter().map(f64::abs).collect();
    distances.sort_by(f64::total_cmp);
    let rounds = PERCENTILES.map(|percent| {
        let distance = distances[percent * count / 100];
        (distance + 0.5) / (1.0 - (1.0 - percent as f64 / 100.0).sqrt())
    });
    let [least, most] = [f64::min, f64::max].map(|of| rounds.into_iter().fold(rounds[1], of));
    let trip = TripCount { rounds: rounds[1], relative_error: 0.01 + 1.0 / (count as f64).sqrt(), variance: Some(0.0) };
    (most <= ALIKE * least && trip.rounds > 2.0).then_some(trip)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random places of samples in instances of so many rounds (a linear congruential generator; Knuth, vol. 2, 3.3.4).
    fn places(rounds: u64) -> impl Iterator<Item = f64> {
        let next =
            |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        std::iter::successors(Some(1u64), next).take(400).map(move |state| ((state >> 33) % rounds) as f64)
    }

    fn moved(places: &[f64]) -> Vec<f64> {
        places.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn differences_of_places_tell_the_length_of_instances() {
        for rounds in [12, 64, 1000] {
            let trip = of_differences(moved(&places(rounds).collect::<Vec<_>>())).unwrap();
            assert!((trip.rounds / rounds as f64 - 1.0).abs() < 3.0 * trip.relative_error, "{rounds}: {trip:?}");
        }
    }

    #[test]
    fn instances_of_different_length_and_clocks_that_run_on_tell_none() {
        let mixed: Vec<f64> =
            places(10).zip(places(1000)).flat_map(|(short, long)| [short, short, short, long]).collect();
        assert!(of_differences(moved(&mixed)).is_none());
        let onwards: Vec<f64> = places(64).enumerate().map(|(sample, place)| 100.0 * sample as f64 + place).collect();
        assert!(of_differences(moved(&onwards)).is_none());
        assert!(of_differences(vec![1.0, -1.0]).is_none(), "too few");
    }
}
