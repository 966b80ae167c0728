//! Clocks that hold for some kinds of calls and not for others.
//!
//! A function that sweeps an array along this dimension or that one, as it is told, has the same loops each
//! time, but an address that runs on from loop to loop in one sweep falls back all the time in another. What
//! kind a call is, is told by registers that its outermost loop leaves alone and that take few values: strides
//! and lengths. Each kind is judged by itself; what ran in kinds that no clock counts is taken to have run at
//! the mean pace of the others.

use std::collections::{BTreeMap, BTreeSet};

use crate::anchors::CONTRADICTION;
use crate::cfg::{Function, LoopId};
use crate::code::FunctionId;
use crate::instruction::{GENERAL, Gpr, RegisterSet, STACK_POINTER};
use crate::judge::{Clock, RARELY, TRUSTED_SHARE};
use crate::observe::Observed;
use crate::pairs::{Count, Pair, Readings};
use crate::trips::Trip;

/// A register with more values than this tells calls apart, not kinds of them. Assumed.
const MOST_KINDS: usize = 8;
/// How far the pace of one kind is from that of others, relative. Assumed: the sweeps of the workload `adi` along
/// x, y and z, one after the other through the same arrays, were 0.1 to 0.25 off their mean pace in a virtual machine on a Xeon.
const KINDS_APART: f64 = 0.3;
/// So many differences without a common measure but their own are not random: of eight random multiples the
/// greatest common divisor is the step in 996 cases of 1000. Derived: one over the Riemann zeta function of 8.
const FEWEST_MULTIPLES: usize = 8;

/// What a clock counts, kind by kind.
pub(crate) struct Kinds {
    count: Count,
    /// Whether it can be believed for some kinds only.
    pub(crate) differ: bool,
}

impl Kinds {
    pub(crate) fn count(self) -> Count {
        self.count
    }
}

/// Counts each kind of call by itself.
pub(crate) fn by_kind(
    observed: &Observed,
    clock: Clock<'_>,
    readings: &Readings,
    evaluate: impl Fn(&Readings) -> Option<Count>,
) -> Option<Kinds> {
    let kinds = split(observed, clock, readings);
    let counts: Vec<(usize, Option<Count>)> = kinds
        .values()
        .map(|readings| (readings.around.len(), evaluate(readings).filter(|count| is_steady(count, readings))))
        .collect();
    let differ = counts.iter().any(|kind| kind.1.is_some()) && counts.iter().any(|kind| kind.1.is_none());
    Some(Kinds { count: together(&counts)?, differ })
}

/// A loop that takes as long as a sample interval, or a third or two of it, seems to stand still, or to move
/// slowly: of a kind by itself, few samples at an even pace, only a clock that next to never fails is sure.
fn is_steady(count: &Count, readings: &Readings) -> bool {
    let failed = readings.pairs.len().saturating_sub(count.trusted) as f64;
    count.backward <= RARELY && failed <= RARELY * readings.pairs.len() as f64
}

/// An address that runs on from loop to loop may do so by less than the loops did, where they go through the
/// same memory side by side. Clocks of the loops around and known rounds find that out.
pub(crate) fn agrees(
    observed: &Observed,
    trips: &BTreeMap<(FunctionId, LoopId), Trip>,
    known: &[Count],
    count: &Count,
) -> bool {
    let function = &observed.code.functions[count.function].function;
    let clocks = |around: LoopId| {
        let of_loop =
            move |other: &&Count| other.function == count.function && function.once_per_round(around, other.block);
        known.iter().filter(of_loop).map(|other| other.executions)
    };
    let mut rounds = 1.0;
    for around in function.loops_around(count.block) {
        if clocks(around).next().is_some() {
            let expected = clocks(around).map(|outer| outer * rounds);
            let near = |other: f64| count.executions.max(other) < CONTRADICTION * count.executions.min(other);
            return expected.into_iter().any(near);
        }
        let Some(trip) = trips.get(&(count.function, around)) else { break };
        rounds *= trip.rounds;
    }
    true
}

/// Readings of a clock whose pace nobody knows, in steps of the greatest common divisor of what it moved.
pub(crate) fn paced(readings: &Readings) -> Option<Readings> {
    let moved = || readings.pairs.iter().filter_map(|pair| pair.executions).filter(|moved| *moved != 0.0);
    let pace = moved().fold(0.0, divisor);
    if moved().count() < FEWEST_MULTIPLES || pace <= 1.0 {
        return None;
    }
    let falls = moved().filter(|moved| *moved < 0.0).count();
    let sign = if 2 * falls > moved().count() { -1.0 } else { 1.0 };
    let paced = |pair: &Pair| Pair { executions: pair.executions.map(|moved| sign * moved / pace), ..*pair };
    Some(readings.with(readings.pairs.iter().map(paced).collect()))
}

/// Greatest common divisor of whole numbers (Euclid).
fn divisor(left: f64, right: f64) -> f64 {
    let (mut left, mut right) = (left.abs(), right.abs());
    while right >= 1.0 {
        (left, right) = (right, left % right);
    }
    left
}

/// Readings by the values of the registers that tell.
fn split(observed: &Observed, clock: Clock<'_>, readings: &Readings) -> BTreeMap<Vec<u64>, Readings> {
    let telling = telling(observed, clock, readings);
    let kind = |sample: usize| -> Vec<u64> {
        telling.iter().filter_map(|register| observed.seen[sample].state.get(*register)).collect()
    };
    let mut kinds: BTreeMap<Vec<u64>, Readings> = BTreeMap::new();
    for &sample in &readings.seen {
        kinds.entry(kind(sample)).or_default().seen.push(sample);
    }
    for &sample in &readings.around {
        kinds.entry(kind(sample)).or_default().around.push(sample);
    }
    for pair in &readings.pairs {
        let now = kind(pair.seen);
        if now == kind(pair.before) {
            kinds.entry(now).or_default().pairs.push(*pair);
        }
    }
    kinds
}

/// Registers that the outermost loop around the clock leaves alone and that take few values.
fn telling(observed: &Observed, clock: Clock<'_>, readings: &Readings) -> Vec<Gpr> {
    let function = &observed.code.functions[clock.function].function;
    let shown = readings.seen.iter().fold(left_alone(function, clock.counter.region), |set, sample| {
        RegisterSet(set.0 & shown(observed, clock, *sample).0)
    });
    let few = |register: &Gpr| {
        let values = readings.seen.iter().map(|sample| observed.seen[*sample].state.get(*register));
        (2..=MOST_KINDS).contains(&values.collect::<BTreeSet<_>>().len())
    };
    (0..GENERAL).filter(|register| shown.contains(*register)).filter(few).collect()
}

/// Registers that keep their values in all loops around one.
fn left_alone(function: &Function, inside: LoopId) -> RegisterSet {
    let outermost = std::iter::successors(Some(inside), |id| function.loops[*id].parent).last().unwrap_or(inside);
    RegisterSet(!function.loops[outermost].written.0 & !(1 << STACK_POINTER))
}

/// Registers of a clock's function that a sample shows: all, or those that callees left alone.
fn shown(observed: &Observed, clock: Clock<'_>, sample: usize) -> RegisterSet {
    let Some((function, _)) = observed.seen[sample].at else { return RegisterSet::default() };
    let levels = observed.levels.known(function).iter();
    let level = levels.filter(|level| level.function == clock.function).map(|level| level.valid).next();
    level.filter(|_| function != clock.function).unwrap_or(RegisterSet(!0))
}

/// Adds kinds up: (samples in the clock's region, what it counts if it can be believed).
fn together(kinds: &[(usize, Option<Count>)]) -> Option<Count> {
    let all = kinds.iter().map(|kind| kind.0).sum::<usize>() as f64;
    let known: Vec<&Count> = kinds.iter().filter_map(|kind| kind.1.as_ref()).collect();
    let sum = |part: fn(&Count) -> f64| known.iter().map(|count| part(count)).sum::<f64>();
    let told = kinds.iter().filter(|kind| kind.1.is_some()).map(|kind| kind.0).sum::<usize>() as f64;
    let (guessed, counted) = (all - told, sum(|count| count.executions));
    let first = *known.first().filter(|_| told > TRUSTED_SHARE * all)?;
    let errors = sum(|count| (count.relative_error * count.executions).powi(2)).sqrt() / counted.max(1e-9);
    Some(Count {
        executions: counted * all / told,
        relative_error: errors.hypot(KINDS_APART * guessed / all),
        visible: known.iter().map(|count| count.visible).sum(),
        trusted: known.iter().map(|count| count.trusted).sum(),
        backward: known.iter().map(|count| count.backward).fold(0.0, f64::max),
        by_sample: known.iter().flat_map(|count| count.by_sample.clone()).collect(),
        ..first.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(executions: f64, visible: usize) -> Count {
        Count {
            function: 0,
            block: 0,
            executions,
            relative_error: 0.01,
            visible,
            trusted: visible,
            backward: 0.0,
            by_sample: BTreeMap::new(),
        }
    }

    #[test]
    fn kinds_that_no_clock_counts_ran_at_the_pace_of_the_others() {
        let counted = together(&[(40, Some(count(4e6, 40))), (20, Some(count(1e6, 20))), (30, None)]).unwrap();
        assert!((counted.executions - 7.5e6).abs() < 1.0, "{}", counted.executions);
        assert!(counted.relative_error > 0.1, "a third is guessed");
        assert!(together(&[(10, Some(count(1e6, 10))), (90, None)]).is_none(), "too little is known");
    }

    #[test]
    fn steps_are_as_long_as_what_divides_all_moves() {
        let pair =
            |moved: f64| Pair { before: 0, seen: 1, executions: Some(moved), intervals: 1, inside: 1, elapsed_ns: 1e6 };
        let moves = [5.0, 3.0, 4.0, 7.0, 2.0, 6.0, 9.0, -120.0].map(|rounds| pair(rounds * 20736.0));
        let told = paced(&Readings::default().with(moves.to_vec())).unwrap();
        let sum: f64 = told.pairs.iter().map(|pair| pair.executions.unwrap()).sum();
        assert!((sum - (36.0 - 120.0)).abs() < 1e-9, "{sum}");
        assert!(paced(&Readings::default().with(moves[..7].to_vec())).is_none(), "too few");
    }
}
