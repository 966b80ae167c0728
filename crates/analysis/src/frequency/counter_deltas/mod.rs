//! From clocks and pairs of samples to counts.
//!
//! Two samples of a thread that see the same clock give the number of executions between them,
//! exactly, if the clock was not set anew in between. Whether it was is told by the pairs themselves
//! (`posterior`), of all of them together or of each calling context by itself (`contexts`).

pub(crate) mod contexts;
pub(crate) mod delta;
pub(crate) mod posterior;
mod short_pairs;
pub(crate) mod spacing;

use std::collections::BTreeMap;

use crate::attribution::callers::CallerFrame;
use crate::attribution::{AttributedSample, Callers, Observed};
use crate::frequency::counter_deltas::contexts::{CallContexts, agrees, by_kind, falls_behind_calls, paced};
use crate::frequency::counter_deltas::delta::{Count, Delta, Passed, RARELY, Readings};
use crate::frequency::counter_deltas::posterior::{Clock, evaluate, is_possible};
use crate::frequency::counter_deltas::spacing::Spacing;
use crate::frequency::evidence::aliased;
use crate::frequency::trip_count::TripCounts;
use tierloom_binary::call_graph::unique_callers::Level;
use tierloom_binary::cfg::{BlockId, Function};
use tierloom_binary::code::{Code, FunctionId};
use tierloom_binary::dataflow::induction::{InductionVariable, counters};
use tierloom_binary::dataflow::modular::steps;
use tierloom_binary::dataflow::state::{Shown, State};
use tierloom_binary::dataflow::update::Step;

/// No round of a loop waits longer than this for each of its memory operands and for all its arithmetic:
/// ten misses of memory one after the other (a page walk of a virtual machine and the line itself).
const LONGEST_WAIT_NS: f64 = 1000.0;
/// Rounds per instance that are known this well make up for instances between two samples.
const EXACT_TRIP: f64 = 0.02;

/// Counters of all functions with samples and of their callers' loops.
pub(crate) struct Clocks {
    by_function: BTreeMap<FunctionId, Vec<InductionVariable>>,
}

impl Clocks {
    fn of(&mut self, code: &Code, function: FunctionId) -> &[InductionVariable] {
        self.by_function.entry(function).or_insert_with(|| counters(&code.functions[function].function))
    }
}

/// Counts of all clocks that can be trusted, the best first for each block.
pub(crate) fn count(observed: &Observed, trips: &TripCounts, spacing: Spacing) -> Vec<Count> {
    let mut clocks = Clocks { by_function: BTreeMap::new() };
    let (readings, shown) = read_all(observed, &mut clocks, spacing);
    let (mut counts, mut kinds, mut unpaced) = (Vec::new(), Vec::new(), Vec::new());
    for (&(function, number), readings) in &readings {
        let counter = &clocks.by_function[&function][number];
        let block = counter.counted;
        let least = slowest(&observed.code.functions[function].function, function, block, trips, spacing.mean_ns());
        let length = round_length(&observed.code.functions[function].function, function, block, trips);
        let clock = Clock { function, counter, length, least };
        let restarts = is_set_anew(function, counter, trips);
        let trusted =
            |readings: &Readings| evaluate(clock, readings).filter(|count| !aliased(observed, count, restarts, trips));
        let close = readings.close();
        if counter.step == Step::Unknown {
            unpaced.extend(
                by_kind(observed, clock, &close, |readings| trusted(&paced(readings)?)).map(CallContexts::count),
            );
            continue;
        }
        let runs_on = Some(&close).filter(|_| !counter.skips);
        let direct = runs_on
            .and_then(|close| evaluate(clock, close))
            .filter(|count| !restarts || !aliased(observed, count, true, trips));
        let whole = direct.or_else(|| {
            let pairs = across(observed, &clocks, trips, (function, counter), (&shown, &readings.pairs));
            evaluate(clock, &readings.with(pairs))
        });
        let whole = whole.filter(|count| !aliased(observed, count, false, trips));
        let whole = whole.or_else(|| {
            let inside = observed.code.functions[function].function.blocks[block].inner_loop;
            let rounds = inside.and_then(|inside| trips.get(&(function, inside))).map(|trip| trip.rounds);
            spacing.shortest_pair().and_then(|shortest| short_pairs::evaluate(clock, &close, shortest, rounds))
        });
        let told = match &whole {
            Some(count) if count.backward <= RARELY => None,
            None if counter.skips => None,
            doubtful => by_kind(observed, clock, &close, trusted).filter(|kinds| doubtful.is_none() || kinds.differ),
        };
        match told {
            Some(told) => kinds.push((told.count(), whole)),
            // Made up for by the clocks around it: as good as what they say together.
            None if restarts => kinds.extend(whole.map(|count| (count, None))),
            None => counts.extend(whole),
        }
    }
    // A pace that the differences themselves tell is the last resort.
    unpaced.retain(|count: &Count| {
        !counts.iter().any(|known: &Count| (known.function, known.block) == (count.function, count.block))
    });
    counts.extend(unpaced);
    let kinds = kinds
        .into_iter()
        .filter_map(|(told, whole)| Some(told).filter(|told| agrees(observed, trips, &counts, told)).or(whole));
    let kinds: Vec<Count> = kinds.collect();
    counts.extend(kinds);
    let behind: Vec<bool> = counts.iter().map(|count| falls_behind_calls(observed, trips, &counts, count)).collect();
    let mut counts: Vec<Count> = counts.into_iter().zip(behind).filter(|(_, behind)| !behind).map(|(c, _)| c).collect();
    counts.sort_by(|left, right| {
        let place = (left.function, left.block).cmp(&(right.function, right.block));
        place.then(left.relative_error.total_cmp(&right.relative_error)).then(right.visible.cmp(&left.visible))
    });
    counts
}

/// Pairs of a clock that is set anew, with the instances in between made up for: each added the rounds
/// of its loop, where the clock does not show them itself. Where these are not known, only the pairs within one
/// instance.
fn across(
    observed: &Observed,
    clocks: &Clocks,
    trips: &TripCounts,
    (function, counter): (FunctionId, &InductionVariable),
    (shown, pairs): (&[Vec<Reading>], &[Delta]),
) -> Vec<Delta> {
    let outer = outer_clocks(observed, clocks, trips, (function, counter));
    let every_round = observed.code.functions[function].function.once_per_round(counter.region, counter.counted);
    let exact = trips.get(&(function, counter.region)).filter(|trip| every_round && trip.relative_error < EXACT_TRIP);
    let passed = |pair: &Delta| {
        outer.iter().find_map(|clock| {
            let reading = |seen: usize| shown[seen].iter().find(|reading| (reading.0, reading.1) == *clock);
            let (before, now) = (reading(pair.before)?, reading(pair.seen)?);
            let around = &clocks.by_function[&clock.0][clock.1];
            let passed = difference(around, before.2, now.2, now.3)?;
            let outer = &observed.code.functions[clock.0].function;
            let length = round_length(outer, clock.0, around.counted, trips);
            is_possible(passed, length, pair.elapsed_ns).then_some(passed)
        })
    };
    let rounds = |instances: f64| if instances == 0.0 { Some(0.0) } else { Some(instances * exact?.rounds) };
    let pairs: Vec<(&Delta, f64)> = pairs.iter().filter_map(|pair| Some((pair, rounds(passed(pair)?)?))).collect();
    let own = runs_on(&pairs);
    let corrected = |(pair, rounds): (&Delta, f64)| {
        let made_up = if own { 0.0 } else { rounds };
        Delta { executions: pair.executions.map(|executions| executions + made_up), ..*pair }
    };
    pairs.into_iter().map(corrected).collect()
}

/// Whether a clock is set anew for each instance of its loop: as its code says, or by where instances start of which the
/// rounds are known.
fn is_set_anew(id: FunctionId, counter: &InductionVariable, trips: &TripCounts) -> bool {
    let exact = trips.get(&(id, counter.region)).filter(|trip| trip.relative_error < EXACT_TRIP);
    counter.restarts || exact.is_some_and(|trip| counter.starts_elsewhere_after(trip.rounds))
}

/// Fewest instructions of a round of the loop around a block: what each round passes, and loops inside of which the rounds
/// are known.
fn round_length(function: &Function, id: FunctionId, block: BlockId, trips: &TripCounts) -> f64 {
    let own = function.blocks[block].len() as f64;
    let Some(inside) = function.blocks[block].inner_loop else { return own };
    if !function.once_per_round(inside, block) {
        return own;
    }
    let of_block = |block: &BlockId| {
        let mut times = 1.0;
        let mut within = *block;
        for around in function.loops_around(*block).take_while(|around| *around != inside) {
            let trip = trips.get(&(id, around)).filter(|trip| trip.relative_error < EXACT_TRIP);
            times *= trip.filter(|_| function.in_every_round(around, within)).map_or(0.0, |trip| trip.rounds);
            within = function.loops[around].header;
        }
        if function.in_every_round(inside, within) { times * function.blocks[*block].len() as f64 } else { 0.0 }
    };
    function.loops[inside].body.iter().map(of_block).sum::<f64>().max(own)
}

/// Whether a clock shows by itself what the instances in between add, as an address does that goes through a
/// table row by row: most pairs are then nearer to the rounds that are expected than to none.
fn runs_on(pairs: &[(&Delta, f64)]) -> bool {
    let apart = || pairs.iter().filter(|(_, rounds)| *rounds > 0.0);
    let near = apart().filter(|(pair, rounds)| pair.executions.is_some_and(|executions| executions > 0.5 * rounds));
    2 * near.count() > apart().count()
}

/// Clocks that move once for each instance of a clock's loop: those of the loop around it, here or in
/// the caller, that are not themselves set anew.
fn outer_clocks(
    observed: &Observed,
    clocks: &Clocks,
    trips: &TripCounts,
    (id, counter): (FunctionId, &InductionVariable),
) -> Vec<(FunctionId, usize)> {
    let function = &observed.code.functions[id].function;
    let (outer, around) = match function.loops[counter.region].parent {
        Some(parent) => (id, parent),
        None => match observed.levels.known(id).first() {
            Some(Level { function, inside: Some(inside), .. }) => (*function, *inside),
            _ => return Vec::new(),
        },
    };
    let function = &observed.code.functions[outer].function;
    let all = clocks.by_function.get(&outer).map_or(&[][..], Vec::as_slice).iter().enumerate();
    let counts_rounds = |clock: &InductionVariable| {
        clock.step != Step::Unknown && function.blocks[clock.counted].inner_loop == Some(around)
    };
    all.filter(|(_, clock)| counts_rounds(clock) && !is_set_anew(outer, clock, trips))
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
    position: Passed,
    value: u64,
    pace: i64,
    /// How far it was in the region.
    inside: Passed,
}

/// Pairs of each clock, and what each sample shows.
fn read_all(observed: &Observed, clocks: &mut Clocks, spacing: Spacing) -> (ByClock, Vec<Vec<Reading>>) {
    let mut shown = Vec::with_capacity(observed.seen.len());
    let mut readings = ByClock::new();
    let mut last: BTreeMap<(usize, FunctionId, usize), Last> = BTreeMap::new();
    let mut positions = vec![Passed::default(); observed.threads.len()];
    let mut times: Vec<Option<u64>> = vec![None; observed.threads.len()];
    for (number, seen) in observed.seen.iter().enumerate() {
        let before_ns = times[seen.thread].replace(seen.time_ns);
        let length = before_ns.map_or(1.0, |before_ns| spacing.length(seen.time_ns.saturating_sub(before_ns) as f64));
        let position = positions[seen.thread].further(length);
        let mut all = Vec::new();
        for (function, clock, shows) in around(observed, clocks, number) {
            let reading = readings.entry((function, clock)).or_default();
            let inside = reading.enter(seen.thread, number, length);
            let Some((value, pace)) = shows else { continue };
            all.push((function, clock, value, pace));
            reading.seen.push(number);
            let now = Last { seen: number, position, value, pace, inside };
            if let Some(before) = last.insert((seen.thread, function, clock), now).filter(|last| last.pace == pace) {
                let elapsed = seen.time_ns.saturating_sub(observed.seen[before.seen].time_ns);
                reading.pairs.push(Delta {
                    before: before.seen,
                    seen: number,
                    executions: difference(&clocks.by_function[&function][clock], before.value, value, pace),
                    intervals: position.samples - before.position.samples,
                    length: position.length - before.position.length,
                    inside: inside.samples - before.inside.samples,
                    length_inside: inside.length - before.inside.length,
                    elapsed_ns: elapsed as f64,
                });
            }
        }
        shown.push(all);
    }
    (readings, shown)
}

/// Clocks around a sample, each with what it shows: its value and pace.
type Around = Vec<(FunctionId, usize, Option<(u64, i64)>)>;

fn around(observed: &Observed, clocks: &mut Clocks, sample: usize) -> Around {
    let seen = &observed.seen[sample];
    let Some((function, step)) = seen.at else { return Vec::new() };
    let mut found = around_place(observed, clocks, (function, step), observed.shown(sample));
    match observed.callers(sample) {
        Some(callers) => {
            // Of calls in calls of the same function none is the one that its counters are of.
            let others = |frame: &&CallerFrame| {
                frame.function != function
                    && callers.iter().filter(|other| other.function == frame.function).count() == 1
            };
            let is_shown = matches!(seen.callers, Callers::Shown(_));
            for frame in callers.iter().filter(others) {
                let state = observed.state_in(sample, frame.function).unwrap_or_else(State::unknown);
                let likely = Shown { state: &state, stack: &[] };
                let shown = if is_shown { observed.shown_of(sample, frame) } else { likely };
                found.extend(around_place(observed, clocks, (frame.function, frame.site), shown));
            }
        }
        None => {
            for level in observed.levels.known(function) {
                found.extend(around_call(observed, clocks, seen, level));
            }
        }
    }
    found
}

/// Those of the loops around an instruction.
fn around_place(observed: &Observed, clocks: &mut Clocks, at: (FunctionId, usize), shown: Shown<'_>) -> Around {
    let (id, instruction) = at;
    let function = &observed.code.functions[id].function;
    let block = function.block_of(instruction);
    let all = clocks.of(&observed.code, id).iter().enumerate();
    let open = all.filter(|(_, counter)| function.loops[counter.region].contains(block));
    open.map(|(number, counter)| (id, number, read(counter, shown, instruction))).collect()
}

fn around_call(observed: &Observed, clocks: &mut Clocks, seen: &AttributedSample, level: &Level) -> Around {
    let (Some(&site), Some(inside)) = (level.sites.first(), level.inside) else { return Vec::new() };
    let function = &observed.code.functions[level.function].function;
    let header = function.loops[inside].header;
    debug_assert!(function.loops[inside].contains(function.block_of(site)));
    let all = clocks.of(&observed.code, level.function).iter().enumerate();
    let open = all.filter(|(_, counter)| function.loops[counter.region].contains(header));
    let mut state = seen.state;
    state.forget(level.valid.others());
    let shown = Shown { state: &state, stack: &[] };
    open.map(|(number, counter)| (level.function, number, read(counter, shown, site))).collect()
}

/// What a clock shows before an instruction.
fn read(counter: &InductionVariable, shown: Shown<'_>, instruction: usize) -> Option<(u64, i64)> {
    Some((counter.value.read(shown, instruction)?, counter.step.value(shown.state)?))
}

fn difference(counter: &InductionVariable, before: u64, after: u64, pace: i64) -> Option<f64> {
    let moved = after.wrapping_sub(before);
    let moved = if counter.narrow {
        i64::from(u32::try_from(moved & 0xffff_ffff).unwrap_or(0).cast_signed())
    } else {
        moved.cast_signed()
    };
    // No address moves so far at once: a register that goes around, of which the steps are counted modulo its width.
    if u32::try_from(pace.unsigned_abs()).is_err() {
        return steps(moved.cast_unsigned(), pace.cast_unsigned(), 64).map(|steps| steps.cast_signed() as f64);
    }
    // From one instance of a loop to the next an address may move by a part of a step; a short way
    // that is no whole number of steps is another array.
    let far = moved.unsigned_abs() / 64 >= pace.unsigned_abs();
    (far || moved % pace == 0).then(|| moved as f64 / pace as f64)
}

/// Fewest rounds of a loop in a sample interval: 0 where a round may be long, with calls in it or with
/// loops of which nobody knows how often they go round.
fn slowest(function: &Function, id: FunctionId, block: BlockId, trips: &TripCounts, period_ns: f64) -> f64 {
    let Some(inside) = function.blocks[block].inner_loop else { return 0.0 };
    let mut waits = 1.0;
    for &block in &function.loops[inside].body {
        let instructions = function.instructions_of(block);
        if instructions.iter().any(|one| one.is_call() || one.operands.iter().any(|operand| operand.repeats.is_some()))
        {
            return 0.0;
        }
        let mut times = 1.0;
        for around in function.loops_around(block).take_while(|around| *around != inside) {
            let Some(trip) = trips.get(&(id, around)) else { return 0.0 };
            times *= trip.rounds;
        }
        waits += times * instructions.iter().map(|one| one.operands.len()).sum::<usize>() as f64;
    }
    period_ns / (LONGEST_WAIT_NS * waits)
}

#[cfg(test)]
mod tests {
    use tierloom_binary::cfg::LoopId;
    use tierloom_binary::dataflow::induction::Value;
    use tierloom_binary::instruction::Gpr;

    use super::*;
    use crate::frequency::nest::NEST;
    use crate::frequency::trip_count::TripCount;

    fn trips(rounds: f64, relative_error: f64) -> TripCounts {
        let trip = TripCount { rounds, relative_error, variance: None };
        TripCounts::from([((FunctionId::new(0), LoopId::new(1)), trip)])
    }

    #[test]
    fn a_column_starts_beside_the_one_before_and_not_below_it() {
        // Rows of 2 KiB: down a column, and the next one starts 16 bytes further.
        let counter = |start_step| InductionVariable {
            value: Value::Register(Gpr::new(1)),
            step: Step::Constant(2048),
            counted: BlockId::new(2),
            region: LoopId::new(1),
            narrow: false,
            restarts: false,
            start_step,
            skips: false,
        };
        let elsewhere = |start_step, trips: &TripCounts| is_set_anew(FunctionId::new(0), &counter(start_step), trips);
        assert!(elsewhere(Some(16), &trips(128.0, 0.003)) && elsewhere(Some(0), &trips(128.0, 0.003)));
        assert!(elsewhere(Some(128 * 2048 * 16), &trips(128.0, 0.003)), "it leaves out 15 of 16 blocks");
        assert!(!elsewhere(Some(130 * 2048), &trips(128.0, 0.003)), "rows with two points at their ends");
        assert!(!elsewhere(None, &trips(128.0, 0.003)) && !elsewhere(Some(16), &trips(128.0, 0.2)));
    }

    #[test]
    fn a_round_is_as_long_as_all_that_it_passes() {
        let function = Function::decode(NEST, 0x1000);
        let [inner, outer] = [2, 3].map(BlockId::new);
        let inside = function.blocks[inner].inner_loop.unwrap();
        let trip = TripCount { rounds: 10.0, relative_error: 0.001, variance: None };
        let known = TripCounts::from([((FunctionId::new(0), inside), trip)]);
        let length = |block, trips: &TripCounts| round_length(&function, FunctionId::new(0), block, trips);
        let of = |block: usize| function.blocks[BlockId::new(block)].len() as f64;
        assert!((length(inner, &known) - of(2)).abs() < 1e-9);
        assert!((length(outer, &known) - (of(1) + 10.0 * of(2) + of(3))).abs() < 1e-9);
        assert!((length(outer, &TripCounts::new()) - (of(1) + of(3))).abs() < 1e-9, "nobody knows how often");
    }

    #[test]
    fn a_clock_that_shows_what_lies_between_needs_nothing_made_up() {
        let pair = |executions| Delta::next(1, executions);
        // Rows of 4 rounds: a hundred rows further the address is 400 rounds on; a counter is at 0 to 3 again.
        let (address, counter) = ([pair(398.0), pair(403.0)], [pair(-2.0), pair(3.0)]);
        let expected = |pairs: &[Delta; 2]| runs_on(&[(&pairs[0], 400.0), (&pairs[1], 400.0)]);
        assert_eq!((expected(&address), expected(&counter)), (true, false));
        assert!(!runs_on(&[(&pair(2.0), 0.0)]), "within one instance there is nothing to make up");
    }
}
