//! Clocks that hold for some kinds of calls and not for others.
//!
//! A function that sweeps an array along this dimension or that one, as it is told, has the same loops each
//! time, but an address that runs on from loop to loop in one sweep falls back all the time in another. What
//! kind a call is, is told by registers that its outermost loop leaves alone and that take few values: strides
//! and lengths. Each kind is judged by itself; what ran in kinds that no clock counts is taken to have run at
//! the mean pace of the others.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::Observed;
use crate::frequency::counter_deltas::delta::{ALWAYS_FORWARDS, Count, Delta, RARELY, Readings};
use crate::frequency::counter_deltas::posterior::{Clock, TRUSTED_SHARE};
use crate::frequency::evidence::CONTRADICTION;
use crate::frequency::trip_count::TripCounts;
use tierloom_binary::arch::STACK_POINTER;
use tierloom_binary::call_graph::unique_callers::Level;
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::instruction::{Gpr, RegisterSet};

/// A register with more values than this tells calls apart, not kinds of them. Assumed.
const MOST_KINDS: usize = 8;
/// How far the pace of one kind is from that of others, relative. Assumed: the sweeps of the workload `adi` along
/// x, y and z, one after the other through the same arrays, were 0.1 to 0.25 off their mean pace in a virtual machine on a Xeon.
const KINDS_APART: f64 = 0.3;
/// So many differences without a common measure but their own are not random: of eight random multiples the
/// greatest common divisor is the step in 996 cases of 1000. Derived: one over the Riemann zeta function of 8.
const FEWEST_MULTIPLES: usize = 8;

/// What a clock counts, kind by kind.
pub(crate) struct CallContexts {
    count: Count,
    /// Whether it counts in some kinds and does not in others. One that falls back now and then in all of them
    /// is the better judged of all together, the fewer samples a kind has the more.
    pub(crate) differ: bool,
}

impl CallContexts {
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
) -> Option<CallContexts> {
    let kinds: Vec<(usize, Found)> = split(observed, clock, readings)
        .values()
        .map(|own| (own.around.len(), Found::of(own, evaluate(own))))
        .collect();
    let differ = kinds.iter().any(|kind| matches!(kind.1, Found::Sure(_)))
        && kinds.iter().any(|kind| matches!(kind.1, Found::Broken));
    Some(CallContexts { count: together(&kinds)?, differ })
}

/// What the clock is in one kind of calls.
enum Found {
    Sure(Count),
    /// It may be as good as all kinds together, or there are too few samples to tell.
    Unsure,
    /// It does not count.
    Broken,
}

impl Found {
    fn of(readings: &Readings, count: Option<Count>) -> Self {
        match count {
            Some(count) if is_steady(&count, readings) => Self::Sure(count),
            None if readings.pairs.len() >= ALWAYS_FORWARDS => Self::Broken,
            _ => Self::Unsure,
        }
    }
}

/// A loop that takes as long as a sample interval, or a third or two of it, seems to stand still, or to move
/// slowly: of a kind by itself, few samples at an even pace, only a clock that next to never fails is sure.
fn is_steady(count: &Count, readings: &Readings) -> bool {
    let failed = readings.pairs.len().saturating_sub(count.trusted) as f64;
    count.backward <= RARELY && failed <= RARELY * readings.pairs.len() as f64
}

/// An address that runs on from loop to loop may do so by less than the loops did, where they go through the
/// same memory side by side. Clocks of the loops around and known rounds find that out; one that agrees is enough, as
/// others may be as wrong. What some rounds go past may have run less often.
pub(crate) fn agrees(observed: &Observed, trips: &TripCounts, known: &[Count], count: &Count) -> bool {
    let function = &observed.code.functions[count.function].function;
    let clocks = |around: LoopId| {
        let of_loop =
            move |other: &&Count| other.function == count.function && function.once_per_round(around, other.block);
        known.iter().filter(of_loop).map(|other| other.executions)
    };
    let (mut rounds, mut always, mut contradicted) = (1.0, true, false);
    let mut inside = count.block;
    for around in function.loops_around(count.block) {
        always &= function.in_every_round(around, inside);
        inside = function.loops[around].header;
        let near = |other: f64| {
            count.executions < CONTRADICTION * other && (!always || other < CONTRADICTION * count.executions)
        };
        if clocks(around).any(|outer| near(outer * rounds)) {
            return true;
        }
        contradicted |= clocks(around).next().is_some();
        let Some(trip) = trips.get(&(count.function, around)) else { break };
        rounds *= trip.rounds;
    }
    !contradicted
}

/// Whether a clock that runs on from call to call shows far less than the calls must have done: calls from
/// several places go through other memory by turns, and an address that moves in one of four calls, or that is
/// near the same place in all of them, moves by less than the loops. Clocks of the loop around the calls find
/// that out, with the fewest rounds of each call.
pub(crate) fn falls_behind_calls(observed: &Observed, trips: &TripCounts, known: &[Count], count: &Count) -> bool {
    let Some(Level { function: caller, inside: Some(around), sites, .. }) =
        observed.levels.known(count.function).first()
    else {
        return false;
    };
    let called = &observed.code.functions[count.function].function;
    let rounds = |around| trips.get(&(count.function, around)).map_or(1.0, |trip| trip.rounds);
    let of_call = fewest_rounds(called, count.block, rounds);
    let function = &observed.code.functions[*caller].function;
    let always = sites.iter().filter(|site| function.once_per_round(*around, function.block_of(**site))).count();
    let clocks = known.iter().filter(|other| other.function == *caller);
    let passed = clocks.filter(|other| function.once_per_round(*around, other.block)).map(|other| other.executions);
    let fewest = passed.min_by(f64::total_cmp).unwrap_or(0.0) * always as f64 * of_call;
    always > 1 && CONTRADICTION * count.executions < fewest
}

/// Executions of a block in a call of its function, at least, by the rounds of the loops around it: 0 where a call may go
/// past it.
fn fewest_rounds(function: &Function, block: BlockId, rounds: impl Fn(LoopId) -> f64) -> f64 {
    let mut within = block;
    let mut executions = 1.0;
    for around in function.loops_around(block) {
        if !function.in_every_round(around, within) {
            return 0.0;
        }
        executions *= rounds(around);
        within = function.loops[around].header;
    }
    if function.in_every_call(within) { executions } else { 0.0 }
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
    let paced = |pair: &Delta| Delta { executions: pair.executions.map(|moved| sign * moved / pace), ..*pair };
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
        let state = observed.state_in(sample, clock.function);
        telling.iter().filter_map(|register| state?.get(*register)).collect()
    };
    let mut kinds: BTreeMap<Vec<u64>, Readings> = BTreeMap::new();
    for &sample in &readings.seen {
        kinds.entry(kind(sample)).or_default().seen.push(sample);
    }
    for &interval in &readings.around {
        kinds.entry(kind(interval.seen)).or_default().around.push(interval);
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
    let shown = |sample: usize| {
        let unknown =
            observed.state_in(sample, clock.function).map_or(RegisterSet::ALL, |state| state.unknown_registers());
        unknown.others()
    };
    let shown =
        readings.seen.iter().fold(left_alone(function, clock.counter.region), |set, sample| set.common(shown(*sample)));
    let few = |register: &Gpr| {
        let values = readings.seen.iter().map(|sample| observed.state_in(*sample, clock.function)?.get(*register));
        (2..=MOST_KINDS).contains(&values.collect::<BTreeSet<_>>().len())
    };
    shown.iter().filter(few).collect()
}

/// Registers that keep their values in all loops around one.
fn left_alone(function: &Function, inside: LoopId) -> RegisterSet {
    let outermost = std::iter::successors(Some(inside), |id| function.loops[*id].parent).last().unwrap_or(inside);
    function.loops[outermost].written.others().without(RegisterSet::of(&[STACK_POINTER]))
}

/// Adds kinds up: (samples in the clock's region, what it is there).
fn together(kinds: &[(usize, Found)]) -> Option<Count> {
    let all = kinds.iter().map(|kind| kind.0).sum::<usize>() as f64;
    let sure = kinds.iter().filter_map(|(around, found)| match found {
        Found::Sure(count) => Some((*around, count)),
        Found::Unsure | Found::Broken => None,
    });
    let known: Vec<(usize, &Count)> = sure.collect();
    let sum = |part: fn(&Count) -> f64| known.iter().map(|(_, count)| part(count)).sum::<f64>();
    let told = known.iter().map(|kind| kind.0).sum::<usize>() as f64;
    let (guessed, counted) = (all - told, sum(|count| count.executions));
    let (_, first) = *known.first().filter(|_| told > TRUSTED_SHARE * all)?;
    let errors = sum(|count| (count.relative_error * count.executions).powi(2)).sqrt() / counted.max(1e-9);
    Some(Count {
        executions: counted * all / told,
        relative_error: errors.hypot(KINDS_APART * guessed / all),
        visible: known.iter().map(|(_, count)| count.visible).sum(),
        trusted: known.iter().map(|(_, count)| count.trusted).sum(),
        backward: known.iter().map(|(_, count)| count.backward).fold(0.0, f64::max),
        by_sample: known.iter().flat_map(|(_, count)| count.by_sample.clone()).collect(),
        ..first.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::nest::NEST;
    use tierloom_binary::code::FunctionId;

    fn count(executions: f64, visible: usize) -> Count {
        Count {
            function: FunctionId::new(0),
            block: BlockId::new(0),
            executions,
            relative_error: 0.01,
            visible,
            trusted: visible,
            backward: 0.0,
            by_sample: BTreeMap::new(),
        }
    }

    #[test]
    fn a_call_runs_a_block_at_least_as_often_as_its_loops_go_round() {
        let function = Function::decode(NEST, 0x1000);
        let rounds = |around: LoopId| if function.loops[around].parent.is_some() { 5.0 } else { 7.0 };
        let of = |block: usize| fewest_rounds(&function, BlockId::new(block), rounds);
        assert_eq!((of(0), of(1), of(2)), (1.0, 7.0, 35.0));
        // test rsi,rsi; je c | xor eax,eax | inc rax; cmp rax,rsi; (jne 7) | ret
        let guarded = &[0x48, 0x85, 0xf6, 0x74, 0x0a, 0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xf0, 0x75, 0xf8, 0xc3];
        let guarded = fewest_rounds(&Function::decode(guarded, 0), BlockId::new(2), |_| 5.0);
        assert!(guarded < 1.0, "a call may go past it");
    }

    #[test]
    fn kinds_that_no_clock_counts_ran_at_the_pace_of_the_others() {
        let sure = |executions, visible| (visible, Found::Sure(count(executions, visible)));
        let counted = together(&[sure(4e6, 40), sure(1e6, 20), (30, Found::Broken)]).unwrap();
        assert!((counted.executions - 7.5e6).abs() < 1.0, "{}", counted.executions);
        assert!(counted.relative_error > 0.1, "a third is guessed");
        assert!(together(&[sure(1e6, 10), (90, Found::Unsure)]).is_none(), "too little is known");
    }

    #[test]
    fn only_where_it_fails_often_is_a_clock_broken() {
        let readings = |pairs| Readings::default().with((1..=pairs).map(|seen| Delta::next(seen, 9.0)).collect());
        assert!(matches!(Found::of(&readings(20), Some(count(1e6, 20))), Found::Sure(_)));
        // Once in twenty, as in each of the kinds that a walk from block to block has.
        let falls_back = Count { backward: 0.05, trusted: 19, ..count(1e6, 20) };
        assert!(matches!(Found::of(&readings(20), Some(falls_back)), Found::Unsure));
        assert!(matches!(Found::of(&readings(20), None), Found::Broken));
        assert!(matches!(Found::of(&readings(3), None), Found::Unsure));
    }

    #[test]
    fn steps_are_as_long_as_what_divides_all_moves() {
        let moves = [5.0, 3.0, 4.0, 7.0, 2.0, 6.0, 9.0, -120.0].map(|rounds| Delta::next(1, rounds * 20736.0));
        let told = paced(&Readings::default().with(moves.to_vec())).unwrap();
        let sum: f64 = told.pairs.iter().map(|pair| pair.executions.unwrap()).sum();
        assert!((sum - (36.0 - 120.0)).abs() < 1e-9, "{sum}");
        assert!(paced(&Readings::default().with(moves[..7].to_vec())).is_none(), "too few");
    }
}
