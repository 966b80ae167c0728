//! From clocks and pairs of samples to counts.
//!
//! Two samples of a thread that see the same clock give the number of executions between them,
//! exactly, if the clock was not set anew in between. Whether it was is told by the pairs themselves:
//! a clock that is set anew runs backwards about as often as the intervals are long against its
//! range, and gives rates far off the usual. Intervals without a trusted pair count as the mean of
//! the trusted ones.

use std::collections::BTreeMap;

use crate::callers::Level;
use crate::cfg::{BlockId, Function, LoopId};
use crate::code::{Code, FunctionId};
use crate::counters::{Counter, counters};
use crate::instruction::RegisterSet;
use crate::observe::{Observed, Seen};
use crate::trips::Trip;

/// Samples that may lie between the two of a pair without seeing the clock, unless an outer clock tells
/// what happened in between.
const LONGEST_GAP: usize = 8;
/// A clock with more than this share of pairs that run backwards is not trusted.
const BACKWARD_SHARE: f64 = 0.3;
/// Trusted rates of a clock that is set anew lie within this factor of the median: caches make no larger
/// difference in code that runs long enough to be sampled twice.
const RATE_SPREAD: f64 = 10.0;
/// A clock that ran forwards this often and next to never backwards is not set anew: one that is would
/// have done so by chance once in 256 times. It may be as slow as it likes: data that are touched for
/// the first time come a page fault at a time. Where it is once in so many pairs or less much faster
/// than else, it leaps: over what other threads of the team do.
const ALWAYS_FORWARDS: usize = 8;
/// Next to never.
const RARELY: f64 = 0.02;
const LEAPS_ONE_IN: usize = 10;
/// More instructions per ns than any processor retires (8 wide at 6 GHz).
pub(crate) const MOST_INSTRUCTIONS_PER_NS: f64 = 48.0;
/// No round of a loop waits longer than this for each of its memory operands and for all its arithmetic:
/// ten misses of memory one after the other (a page walk of a virtual machine and the line itself).
const LONGEST_WAIT_NS: f64 = 1000.0;
/// A clock of which a smaller share of samples gives trusted pairs is not trusted either.
const TRUSTED_SHARE: f64 = 0.25;
/// Rounds per instance that are known this well make up for instances between two samples.
const EXACT_TRIP: f64 = 0.02;
/// Fewer pairs than this say nothing about a clock, unless two agree.
const FEWEST_PAIRS: usize = 3;
/// Relative error of a single pair, which nothing confirms.
const SINGLE_PAIR_ERROR: f64 = 0.3;

/// Executions of a block, counted by a clock.
#[derive(Debug, Clone)]
pub(crate) struct Count {
    pub(crate) function: FunctionId,
    pub(crate) block: BlockId,
    pub(crate) executions: f64,
    /// One standard deviation, relative.
    pub(crate) relative_error: f64,
    /// Samples that see the clock.
    pub(crate) visible: usize,
    /// Trusted pairs.
    pub(crate) trusted: usize,
    /// Share of neighbouring pairs between which the clock ran backwards.
    pub(crate) backward: f64,
    /// Executions since the sample before, by sample: trusted pairs only.
    pub(crate) by_sample: BTreeMap<usize, f64>,
}

/// What one clock showed.
#[derive(Default)]
struct Readings {
    visible: usize,
    pairs: Vec<Pair>,
}

impl Readings {
    /// Without the pairs that lie too far apart to tell that the clock was not set anew in between.
    fn close(&self) -> Self {
        let close = self.pairs.iter().filter(|pair| pair.intervals <= LONGEST_GAP);
        Self { visible: self.visible, pairs: close.copied().collect() }
    }
}

#[derive(Clone, Copy)]
struct Pair {
    before: usize,
    seen: usize,
    /// Executions; `None` when the clock moved by no whole number of steps.
    executions: Option<f64>,
    /// Sample intervals between the two.
    intervals: usize,
    elapsed_ns: f64,
}

/// Counters of all functions with samples and of their callers' loops.
pub(crate) struct Clocks {
    by_function: BTreeMap<FunctionId, Vec<Counter>>,
}

impl Clocks {
    fn of(&mut self, code: &Code, function: FunctionId) -> &[Counter] {
        self.by_function.entry(function).or_insert_with(|| counters(&code.functions[function].function))
    }
}

/// Counts of all clocks that can be trusted, the best first for each block.
pub(crate) fn count(observed: &Observed, trips: &BTreeMap<(FunctionId, LoopId), Trip>, period_ns: f64) -> Vec<Count> {
    let mut clocks = Clocks { by_function: BTreeMap::new() };
    let (readings, shown) = read_all(observed, &mut clocks);
    let mut counts: Vec<Count> = readings
        .into_iter()
        .filter_map(|((function, number), readings)| {
            let counter = &clocks.by_function[&function][number];
            let least =
                slowest(&observed.code.functions[function].function, function, counter.counted, trips, period_ns);
            let length = observed.code.functions[function].function.blocks[counter.counted].len();
            let limits = Limits { length: length as f64, least };
            evaluate(function, counter, limits, &readings.close()).or_else(|| {
                let pairs = across(observed, &clocks, trips, (function, counter), (&shown, &readings.pairs));
                evaluate(function, counter, limits, &Readings { pairs, ..readings })
            })
        })
        .collect();
    counts.sort_by(|left, right| {
        let place = (left.function, left.block).cmp(&(right.function, right.block));
        place.then(left.relative_error.total_cmp(&right.relative_error)).then(right.visible.cmp(&left.visible))
    });
    counts
}

/// Pairs of a clock that is set anew, with the instances in between made up for: each added the rounds
/// of its loop. Where these are not known, only the pairs within one instance.
fn across(
    observed: &Observed,
    clocks: &Clocks,
    trips: &BTreeMap<(FunctionId, LoopId), Trip>,
    (function, counter): (FunctionId, &Counter),
    (shown, pairs): (&[Vec<Reading>], &[Pair]),
) -> Vec<Pair> {
    let outer = outer_clocks(observed, clocks, function, counter);
    let exact = trips.get(&(function, counter.region)).filter(|trip| trip.relative_error < EXACT_TRIP);
    let passed = |pair: &Pair| {
        outer.iter().find_map(|clock| {
            let reading = |seen: usize| shown[seen].iter().find(|reading| (reading.0, reading.1) == *clock);
            let (before, now) = (reading(pair.before)?, reading(pair.seen)?);
            difference(&clocks.by_function[&clock.0][clock.1], before.2, now.2, now.3)
        })
    };
    let corrected = |pair: &Pair| {
        let instances = passed(pair)?;
        let rounds = if instances == 0.0 { 0.0 } else { instances * exact?.rounds };
        Some(Pair { executions: pair.executions.map(|executions| executions + rounds), ..*pair })
    };
    pairs.iter().filter_map(corrected).collect()
}

/// Clocks that move once for each instance of a clock's loop: those of the loop around it, here or in
/// the caller.
fn outer_clocks(observed: &Observed, clocks: &Clocks, id: FunctionId, counter: &Counter) -> Vec<(FunctionId, usize)> {
    let function = &observed.code.functions[id].function;
    let (outer, around) = match function.loops[counter.region].parent {
        Some(parent) => (id, parent),
        None => match observed.levels.known(id).first() {
            Some(Level { function, inside: Some(inside), .. }) => (*function, *inside),
            _ => return Vec::new(),
        },
    };
    let blocks = &observed.code.functions[outer].function.blocks;
    let all = clocks.by_function.get(&outer).map_or(&[][..], Vec::as_slice).iter().enumerate();
    all.filter(|(_, clock)| blocks[clock.counted].inner_loop == Some(around))
        .map(|(number, _)| (outer, number))
        .collect()
}

/// Function, number of the clock, value, pace.
type Reading = (FunctionId, usize, u64, i64);

/// Readings by function and number of the clock.
type ByClock = BTreeMap<(FunctionId, usize), Readings>;

/// Last reading of a clock by a thread.
struct Last {
    seen: usize,
    position: usize,
    value: u64,
    pace: i64,
}

/// Pairs of each clock, and what each sample shows.
fn read_all(observed: &Observed, clocks: &mut Clocks) -> (ByClock, Vec<Vec<Reading>>) {
    let mut shown = Vec::with_capacity(observed.seen.len());
    let mut readings = ByClock::new();
    let mut last: BTreeMap<(usize, FunctionId, usize), Last> = BTreeMap::new();
    let mut positions = vec![0usize; observed.threads.len()];
    for (number, seen) in observed.seen.iter().enumerate() {
        positions[seen.thread] += 1;
        let position = positions[seen.thread];
        let all = visible(observed, clocks, seen);
        for &(function, clock, value, pace) in &all {
            let reading = readings.entry((function, clock)).or_default();
            reading.visible += 1;
            let now = Last { seen: number, position, value, pace };
            if let Some(before) = last.insert((seen.thread, function, clock), now) {
                let counter = &clocks.by_function[&function][clock];
                let intervals = position - before.position;
                if before.pace == pace {
                    let elapsed = seen.time_ns.saturating_sub(observed.seen[before.seen].time_ns);
                    reading.pairs.push(Pair {
                        before: before.seen,
                        seen: number,
                        executions: difference(counter, before.value, value, pace),
                        intervals,
                        elapsed_ns: elapsed as f64,
                    });
                }
            }
        }
        shown.push(all);
    }
    (readings, shown)
}

/// Clocks that a sample shows: function, number, value, pace.
fn visible(observed: &Observed, clocks: &mut Clocks, seen: &Seen) -> Vec<Reading> {
    let Some((function, step)) = seen.at else { return Vec::new() };
    let mut found = Vec::new();
    let block = observed.code.functions[function].function.block_of(step);
    let own = &observed.code.functions[function].function;
    for (number, counter) in clocks.of(&observed.code, function).iter().enumerate() {
        if own.loops[counter.region].contains(block) {
            found.extend(
                read(counter, seen, step, RegisterSet(!0)).map(|(value, pace)| (function, number, value, pace)),
            );
        }
    }
    for level in observed.levels.known(function) {
        found.extend(visible_in(observed, clocks, seen, level));
    }
    found
}

fn visible_in(observed: &Observed, clocks: &mut Clocks, seen: &Seen, level: &Level) -> Vec<Reading> {
    let Some(&site) = level.sites.first() else { return Vec::new() };
    let Some(inside) = level.inside else { return Vec::new() };
    let function = &observed.code.functions[level.function].function;
    let header = function.loops[inside].header;
    debug_assert!(function.loops[inside].contains(function.block_of(site)));
    let all = clocks.of(&observed.code, level.function).iter().enumerate();
    let open = all.filter(|(_, counter)| function.loops[counter.region].contains(header));
    open.filter_map(|(number, counter)| {
        let (value, pace) = read(counter, seen, site, level.valid)?;
        Some((level.function, number, value, pace))
    })
    .collect()
}

/// What a clock shows in a sample at position `step`, or at a call there.
fn read(counter: &Counter, seen: &Seen, step: usize, valid: RegisterSet) -> Option<(u64, i64)> {
    let mut state = seen.state;
    state.forget(RegisterSet(!valid.0));
    Some((counter.dial.read(&state, step)?, counter.pace.value(&state)?))
}

fn difference(counter: &Counter, before: u64, after: u64, pace: i64) -> Option<f64> {
    let moved = after.wrapping_sub(before);
    let moved = if counter.narrow {
        i64::from(u32::try_from(moved & 0xffff_ffff).unwrap_or(0).cast_signed())
    } else {
        moved.cast_signed()
    };
    // From one instance of a loop to the next an address may move by a part of a step; a short way
    // that is no whole number of steps is another array.
    let far = moved.unsigned_abs() / 64 >= pace.unsigned_abs();
    (far || moved % pace == 0).then(|| moved as f64 / pace as f64)
}

/// What a processor can do.
#[derive(Clone, Copy)]
struct Limits {
    /// Instructions of the counted block.
    length: f64,
    /// Fewest executions in a sample interval.
    least: f64,
}

/// Fewest rounds of a loop in a sample interval: 0 where a round may be long, with calls in it or with
/// loops of which nobody knows how often they go round.
fn slowest(
    function: &Function,
    id: FunctionId,
    block: BlockId,
    trips: &BTreeMap<(FunctionId, LoopId), Trip>,
    period_ns: f64,
) -> f64 {
    let Some(inside) = function.blocks[block].inner_loop else { return 0.0 };
    let mut waits = 1.0;
    for &block in &function.loops[inside].body {
        let steps = &function.steps[function.blocks[block].first..function.blocks[block].end];
        if steps.iter().any(|step| step.is_call() || step.operands.iter().any(|operand| operand.string)) {
            return 0.0;
        }
        let mut times = 1.0;
        for around in function.loops_around(block).take_while(|around| *around != inside) {
            let Some(trip) = trips.get(&(id, around)) else { return 0.0 };
            times *= trip.rounds;
        }
        waits += times * steps.iter().map(|step| step.operands.len()).sum::<usize>() as f64;
    }
    period_ns / (LONGEST_WAIT_NS * waits)
}

fn evaluate(function: FunctionId, counter: &Counter, limits: Limits, readings: &Readings) -> Option<Count> {
    let possible = |pair: &Pair| {
        let executions = pair.executions.filter(|executions| *executions >= 0.0)?;
        (executions * limits.length <= pair.elapsed_ns * MOST_INSTRUCTIONS_PER_NS).then_some(executions)
    };
    let adjacent: Vec<&Pair> = readings.pairs.iter().filter(|pair| pair.intervals == 1).collect();
    let mut rates: Vec<f64> = adjacent.iter().filter_map(|pair| possible(pair)).collect();
    let backward = adjacent.len() - rates.len();
    let twice = rates.len() == 2 && backward == 0 && rates[0].max(rates[1]) < 2.0 * rates[0].min(rates[1]);
    if rates.len() < FEWEST_PAIRS && !twice
        || backward as f64 > BACKWARD_SHARE * adjacent.len() as f64
        || !jumps_far(&adjacent, &rates)
    {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    if median < limits.least {
        return None;
    }
    let always_forwards = backward as f64 <= RARELY * adjacent.len() as f64 && adjacent.len() >= ALWAYS_FORWARDS;
    let near = |rate: f64| rate <= RATE_SPREAD * median + 2.0 && rate >= median / RATE_SPREAD - 2.0;
    let fast = rates[rates.len() - 1 - rates.len() / LEAPS_ONE_IN];
    let usual = |rate: f64| if always_forwards { rate <= RATE_SPREAD * fast + 2.0 } else { near(rate) };
    let trusted: Vec<(&Pair, f64)> = readings
        .pairs
        .iter()
        .filter_map(|pair| Some((pair, possible(pair)?)))
        .filter(|(pair, executions)| usual(executions / pair.intervals as f64))
        .collect();
    if (trusted.len() as f64) < TRUSTED_SHARE * readings.visible as f64 {
        return None;
    }
    let backward = backward as f64 / adjacent.len() as f64;
    Some(Count { backward, ..total(function, counter, readings.visible, &trusted) })
}

/// Whether the clock, where it ran backwards, fell back much further than it moves between samples:
/// else it is set anew more often than it is read, and its differences mean nothing.
fn jumps_far(adjacent: &[&Pair], rates: &[f64]) -> bool {
    let mut falls: Vec<f64> =
        adjacent.iter().filter_map(|pair| pair.executions).filter(|n| *n < 0.0).map(f64::abs).collect();
    falls.sort_by(f64::total_cmp);
    let moving: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).collect();
    let mean = moving.iter().sum::<f64>() / moving.len().max(1) as f64;
    falls.len() < 2 || falls[falls.len() / 2] > 1.5 * mean
}

/// Sums up trusted pairs; the intervals before the other samples count as the mean of adjacent ones.
fn total(function: FunctionId, counter: &Counter, visible: usize, trusted: &[(&Pair, f64)]) -> Count {
    let adjacent: Vec<f64> = trusted.iter().filter(|(pair, _)| pair.intervals == 1).map(|(_, n)| *n).collect();
    let mean = adjacent.iter().sum::<f64>() / adjacent.len().max(1) as f64;
    let squares: f64 = adjacent.iter().map(|n| (n - mean).powi(2)).sum();
    let spread = (squares / adjacent.len().max(1) as f64).sqrt() / mean.max(1e-9);
    let guessed = (visible - trusted.len()) as f64;
    let executions = trusted.iter().map(|(_, n)| n).sum::<f64>() + guessed * mean;
    let by_sample = trusted.iter().map(|(pair, n)| (pair.seen, n / pair.intervals as f64)).collect();
    // Each guessed interval is off by the spread of the known ones.
    let share = guessed / (visible as f64).max(1.0);
    let few = SINGLE_PAIR_ERROR / (adjacent.len().max(1) as f64).powi(2);
    let relative_error =
        0.003 + few + share * spread.min(1.0) / (guessed.max(1.0)).sqrt() + 0.05 * share + 0.2 * share.powi(4);
    Count {
        function,
        block: counter.counted,
        executions,
        relative_error,
        visible,
        trusted: trusted.len(),
        backward: 0.0,
        by_sample,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Dial, Pace};

    const COUNTER: Counter =
        Counter { dial: Dial::Register(0), pace: Pace::Constant(1), counted: 0, region: 0, narrow: false };

    fn evaluated(moves: &[f64]) -> Option<Count> {
        let pair = |(seen, moved): (usize, &f64)| Pair {
            before: seen,
            seen: seen + 1,
            executions: Some(*moved),
            intervals: 1,
            elapsed_ns: 1e6,
        };
        let pairs = moves.iter().enumerate().map(pair).collect();
        evaluate(0, &COUNTER, Limits { length: 1.0, least: 0.0 }, &Readings { visible: moves.len() + 1, pairs })
    }

    #[test]
    fn a_clock_that_never_falls_back_is_trusted_at_any_pace() {
        // Page faults first, then twenty times as fast.
        let moves = [[100.0; 12], [2000.0; 12]].concat();
        let count = evaluated(&moves).unwrap();
        assert_eq!(count.trusted, 24);
        assert!((count.executions - 25.0 * 1050.0).abs() < 1.0, "{}", count.executions);
    }

    #[test]
    fn a_clock_that_falls_back_is_trusted_near_its_usual_pace() {
        let moves = [&[1000.0; 12][..], &[-9000.0, 20.0, -9000.0, 20.0]].concat();
        assert_eq!(evaluated(&moves).unwrap().trusted, 12);
    }

    #[test]
    fn a_clock_slower_than_any_memory_is_none() {
        let slow = Limits { length: 1.0, least: 100.0 };
        let pair = Pair { before: 0, seen: 1, executions: Some(3.0), intervals: 1, elapsed_ns: 1e6 };
        assert!(evaluate(0, &COUNTER, slow, &Readings { visible: 13, pairs: vec![pair; 12] }).is_none());
    }
}
