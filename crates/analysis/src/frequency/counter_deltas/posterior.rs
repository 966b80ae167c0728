//! Which clocks to believe, by how they ran between samples, and what they add up to.
//!
//! A clock that is set anew runs backwards about as often as the intervals are long against its range,
//! and gives rates far off the usual. Intervals without a trusted pair count as the mean of the trusted
//! ones.

use std::collections::BTreeMap;

use crate::frequency::counter_deltas::delta::{ALWAYS_FORWARDS, Count, Delta, RARELY, Readings};
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::induction::InductionVariable;

/// A clock with more than this share of pairs that run backwards is not trusted.
const BACKWARD_SHARE: f64 = 0.3;
/// Trusted rates of a clock that is set anew lie within this factor of the median: caches make no larger
/// difference in code that runs long enough to be sampled twice.
const RATE_SPREAD: f64 = 10.0;
/// A clock that always runs forwards and once in so many pairs, or less, is much faster than else, leaps: over what other
/// threads of the team do.
const LEAPS_ONE_IN: usize = 10;
/// A clock of which a smaller share of samples gives trusted pairs is not trusted either.
pub(crate) const TRUSTED_SHARE: f64 = 0.25;
/// Fewer pairs than this say nothing about a clock, unless two agree.
const FEWEST_PAIRS: usize = 3;
/// Relative error of a single pair, which nothing confirms.
const SINGLE_PAIR_ERROR: f64 = 0.3;
/// Samples one after the other that tell nothing: more than this is no chance. Assumed.
const LONG_GAP: usize = 16;
/// How far the pace in such a gap is off from that of the rest, relative. Assumed: the last third of a factorisation was
/// at 1.6 times the pace of the others.
const ELSEWHERE: f64 = 0.5;
/// Of what a clock that is set anew seems to have leapt over so much is one deviation: it may be the clock's own, or none of it.
/// Assumed.
const LEAPS: f64 = 0.5;
/// Two samples that follow each other within less than this part of the mean interval show no rate. Assumed.
const SHORTEST: f64 = 0.02;
/// More instructions per ns than any processor retires (8 wide at 6 GHz).
pub(crate) const MOST_INSTRUCTIONS_PER_NS: f64 = 48.0;

/// A clock and what is known of the code that moves it.
#[derive(Clone, Copy)]
pub(crate) struct Clock<'a> {
    pub(crate) function: FunctionId,
    pub(crate) counter: &'a InductionVariable,
    /// Fewest instructions from one execution of the counted block to the next: a processor can only do so many.
    pub(crate) length: f64,
    /// Fewest executions in a sample interval.
    pub(crate) least: f64,
}

/// Whether a processor can have done so many executions between two readings. Between them lie the whole rounds from the
/// first to the last, one fewer than there are executions: that of an outer loop falls between two samples by itself, however
/// long its round takes.
pub(crate) fn is_possible(executions: f64, length: f64, elapsed_ns: f64) -> bool {
    (executions - 1.0) * length <= elapsed_ns * MOST_INSTRUCTIONS_PER_NS
}

impl Clock<'_> {
    /// Executions between two readings, where there can have been so many.
    pub(super) fn between(&self, pair: &Delta) -> Option<f64> {
        pair.forwards().filter(|executions| is_possible(*executions, self.length, pair.elapsed_ns))
    }
}

/// Executions of the counted block; `None` where the clock cannot be believed.
pub(crate) fn evaluate(clock: Clock<'_>, readings: &Readings) -> Option<Count> {
    let adjacent: Vec<&Delta> = readings.pairs.iter().filter(|pair| pair.intervals == 1).collect();
    let rates = Rates::of(adjacent.iter().filter_map(|pair| Some((clock.between(pair)?, pair.length))).collect());
    let backward = adjacent.len() - rates.len();
    if rates.len() < FEWEST_PAIRS && !(backward == 0 && rates.are_two_alike())
        || backward as f64 > BACKWARD_SHARE * adjacent.len() as f64
        || !jumps_far(&adjacent, &rates)
    {
        return None;
    }
    let median = rates.median();
    // Less than one round in an interval shows in some of them alone.
    if median < clock.least.floor() {
        return None;
    }
    let always_forwards = backward as f64 <= RARELY * adjacent.len() as f64 && adjacent.len() >= ALWAYS_FORWARDS;
    let fast = rates.fast();
    let beside = Beside::of(&readings.pairs);
    let usual = |pair: &Delta, executions: f64| {
        let at = |rate: f64| rate * pair.length;
        let slack = 2.0 * pair.intervals as f64;
        if always_forwards {
            executions <= at(RATE_SPREAD * fast.max(beside.fastest(pair))) + slack
        } else {
            executions <= at(RATE_SPREAD * median) + slack && executions >= at(median / RATE_SPREAD) - slack
        }
    };
    let forwards = readings.pairs.iter().filter_map(|pair| Some((pair, clock.between(pair)?)));
    let (trusted, others): (Vec<(&Delta, f64)>, Vec<_>) =
        forwards.partition(|(pair, executions)| usual(pair, *executions));
    if (trusted.len() as f64) < TRUSTED_SHARE * readings.seen.len() as f64 {
        return None;
    }
    // One that never moved shows that an instance has one round, and not how many instances there are.
    if trusted.iter().all(|(_, executions)| *executions == 0.0) {
        return None;
    }
    let backward = backward as f64 / adjacent.len() as f64;
    let count = total(clock, readings, &trusted);
    // A team's counter leaps over what other threads do; one that is set anew may have leaped by itself.
    let leaps = if always_forwards { 0.0 } else { leapt(&others, count.executions / readings.time_around().max(1.0)) };
    let relative_error = count.relative_error + LEAPS * leaps / count.executions.max(1.0);
    Some(Count { relative_error, backward, ..count })
}

/// Executions beyond the mean of the others in pairs that are not trusted because they are so fast: where a few rounds take most
/// of the time, as those of the best connected vertices do, it is all others that look so.
fn leapt(others: &[(&Delta, f64)], rate: f64) -> f64 {
    let beyond = |(pair, executions): &(&Delta, f64)| (executions - rate * pair.length).max(0.0);
    others.iter().map(beyond).sum()
}

/// Executions of pairs and their lengths, the slowest first.
struct Rates(Vec<(f64, f64)>);

impl Rates {
    fn of(mut pairs: Vec<(f64, f64)>) -> Self {
        pairs.sort_by(|left, right| rate(*left).total_cmp(&rate(*right)));
        Self(pairs)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn are_two_alike(&self) -> bool {
        matches!(self.0[..], [slower, faster] if rate(faster) < 2.0 * rate(slower))
    }

    /// Executions in a mean interval, at which half of the time is spent.
    fn median(&self) -> f64 {
        Self::beyond(self.0.iter(), 0.5)
    }

    /// That which is not reached but in some of the time.
    fn fast(&self) -> f64 {
        Self::beyond(self.0.iter().rev(), 1.0 / LEAPS_ONE_IN as f64)
    }

    /// The rate behind this part of the time.
    fn beyond<'p>(mut pairs: impl Iterator<Item = &'p (f64, f64)> + Clone, part: f64) -> f64 {
        let all: f64 = pairs.clone().map(|pair| pair.1).sum();
        let mut passed = 0.0;
        let is_beyond = |pair: &&(f64, f64)| {
            passed += pair.1;
            passed > part * all
        };
        pairs.find(is_beyond).map_or(0.0, |pair| rate(*pair))
    }
}

/// Executions in a mean interval.
fn rate((executions, length): (f64, f64)) -> f64 {
    executions / length.max(SHORTEST)
}

/// Rates of the pairs before and behind each: rounds that get shorter and shorter, as those of a factorisation do, are fast
/// one after the other; a leap stands alone.
struct Beside {
    by_start: BTreeMap<usize, f64>,
    by_end: BTreeMap<usize, f64>,
}

impl Beside {
    fn of(pairs: &[Delta]) -> Self {
        let rate = |pair: &Delta| pair.executions.map(|executions| rate((executions, pair.length)));
        let by =
            |place: fn(&Delta) -> usize| pairs.iter().filter_map(|pair| Some((place(pair), rate(pair)?))).collect();
        Self { by_start: by(|pair| pair.before), by_end: by(|pair| pair.seen) }
    }

    fn fastest(&self, pair: &Delta) -> f64 {
        let beside = [self.by_end.get(&pair.before), self.by_start.get(&pair.seen)];
        beside.into_iter().flatten().copied().fold(0.0, f64::max)
    }
}

/// Whether the clock, where it ran backwards, fell back much further than it moves between samples:
/// else it is set anew more often than it is read, and its differences mean nothing.
fn jumps_far(adjacent: &[&Delta], rates: &Rates) -> bool {
    let mut falls: Vec<f64> =
        adjacent.iter().filter_map(|pair| pair.executions).filter(|n| *n < 0.0).map(f64::abs).collect();
    falls.sort_by(f64::total_cmp);
    let moving =
        rates.0.iter().filter(|pair| pair.0 > 0.0).fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let mean = rate(moving);
    falls.len() < 2 || falls[falls.len() / 2] > 1.5 * mean
}

/// Sums up trusted pairs; the other intervals that end in the clock's region count as the mean of theirs.
fn total(clock: Clock<'_>, readings: &Readings, trusted: &[(&Delta, f64)]) -> Count {
    let adjacent: Vec<(f64, f64)> =
        trusted.iter().filter(|(pair, _)| pair.intervals == 1).map(|(pair, n)| (*n, pair.length)).collect();
    let moved = adjacent.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let (number, centre) = (adjacent.len().max(1) as f64, moved.0 / moved.1.max(1e-9));
    let squares: f64 = adjacent.iter().map(|(n, length)| (n - centre * length).powi(2)).sum();
    let spread = (squares / number).sqrt() / (moved.0 / number).max(1e-9);
    let (counted, told) = trusted.iter().fold((0.0, 0.0), |sum, (pair, n)| (sum.0 + n, sum.1 + pair.length_inside));
    let all = readings.time_around();
    let guessed = (all - told).max(0.0);
    let rate = rate((counted, told));
    let executions = counted + guessed * rate + ends(readings) * (1.0 - rate).max(0.0);
    let by_sample = trusted.iter().map(|(pair, n)| (pair.seen, n / pair.intervals as f64)).collect();
    // Each guessed interval is off by the spread of the known ones.
    let share = guessed / all.max(1.0);
    let few = SINGLE_PAIR_ERROR / (adjacent.len().max(1) as f64).powi(2);
    // And their mean is that of the known ones, by chance.
    let by_chance = spread * (1.0 / guessed.max(1.0) + 1.0 / number).sqrt();
    let relative_error = 0.003 + few + share * by_chance + 0.05 * share + 0.2 * share.powi(4);
    let relative_error =
        relative_error + ELSEWHERE * long_gaps(readings, trusted) / (readings.around.len() as f64).max(1.0);
    Count {
        function: clock.function,
        block: clock.counter.counted,
        executions,
        relative_error,
        visible: readings.seen.len(),
        trusted: trusted.len(),
        backward: 0.0,
        by_sample,
    }
}

/// Samples in the clock's region that no trusted pair tells of, in long gaps: there code may run at another pace.
fn long_gaps(readings: &Readings, trusted: &[(&Delta, f64)]) -> f64 {
    let mut told = vec![false; readings.around.len()];
    for (pair, _) in trusted {
        let end = readings.around.partition_point(|interval| interval.seen <= pair.seen);
        told[end.saturating_sub(pair.inside)..end].fill(true);
    }
    let gaps = told.chunk_by(|left, right| left == right).filter(|run| !run[0] && run.len() > LONG_GAP);
    gaps.map(<[bool]>::len).sum::<usize>() as f64
}

/// How often an instance of the loop ended: where the clock ran backwards, and at last in each thread. Of an end no sample
/// shows the last round: where rounds take longer than intervals, that is one execution in an interval that the mean of the
/// others has less of.
fn ends(readings: &Readings) -> f64 {
    let falls = readings.pairs.iter().filter(|pair| pair.executions.is_some_and(|executions| executions < 0.0)).count();
    (falls + readings.inside.len()) as f64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::frequency::counter_deltas::delta::{Interval, Passed};
    use tierloom_binary::cfg::{BlockId, LoopId};
    use tierloom_binary::dataflow::induction::Value;
    use tierloom_binary::dataflow::update::Step;
    use tierloom_binary::instruction::Gpr;

    const COUNTER: InductionVariable = InductionVariable {
        value: Value::Register(Gpr::new(0)),
        step: Step::Constant(1),
        counted: BlockId::from_raw_unchecked(0),
        region: LoopId::from_raw_unchecked(0),
        narrow: false,
        restarts: false,
        start_step: None,
        skips: false,
    };
    pub(in super::super) const CLOCK: Clock<'static> =
        Clock { function: FunctionId::from_raw_unchecked(0), counter: &COUNTER, length: 1.0, least: 0.0 };

    fn readings(pairs: Vec<Delta>) -> Readings {
        let seen: Vec<usize> = (0..=pairs.len()).collect();
        let around = seen.iter().map(|seen| Interval { seen: *seen, length: 1.0 }).collect();
        Readings { around, seen, pairs, ..Readings::default() }
    }

    fn moved(moves: &[f64]) -> Readings {
        readings(moves.iter().enumerate().map(|(before, moved)| Delta::next(before + 1, *moved)).collect())
    }

    fn evaluated(moves: &[f64]) -> Option<Count> {
        evaluate(CLOCK, &moved(moves))
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
    fn leaps_of_a_clock_that_is_set_anew_are_doubted() {
        let error = |leap: f64| evaluated(&[&[10.0; 20][..], &[-9000.0, leap, -9000.0, leap]].concat()).unwrap();
        let (usual, beyond, far) = (error(10.0), error(300.0), error(3000.0));
        assert_eq!((usual.trusted, beyond.trusted), (22, 20), "so fast it need not be this clock's");
        assert!(usual.relative_error < 0.1 && beyond.relative_error > 0.5, "but it may be");
        assert!(far.relative_error > 5.0 * beyond.relative_error);
    }

    #[test]
    fn a_pace_that_few_pairs_tell_is_unsure_as_far_as_they_differ() {
        let error = |slow: f64, fast: f64| {
            let mut known = moved(&[slow, fast, slow, fast, slow, fast]);
            known.around.extend((7..27).map(|seen| Interval { seen, length: 1.0 }));
            evaluate(CLOCK, &known).unwrap().relative_error
        };
        assert!(error(1.0, 19.0) > error(10.0, 10.0) + 0.2);
    }

    #[test]
    fn a_round_of_many_samples_ends_between_two_of_them() {
        let outer = Clock { length: 1e9, ..CLOCK };
        let pair = |before: usize| Delta::next(before + 1, f64::from(u8::from(before % 100 == 50)));
        let count = evaluate(outer, &readings((0..1000).map(pair).collect())).unwrap();
        assert_eq!((count.trusted, count.backward), (1000, 0.0));
        assert!((count.executions - 10.0).abs() < 0.1, "{}", count.executions);
    }

    #[test]
    fn a_clock_that_never_moves_does_not_tell_how_often_its_loop_is_entered() {
        assert!(evaluated(&[0.0; 100]).is_none(), "one round each time");
        assert!(evaluated(&[&[0.0; 99][..], &[1.0]].concat()).is_some());
    }

    #[test]
    fn a_clock_slower_than_any_memory_is_none() {
        let slow = Clock { least: 100.0, ..CLOCK };
        assert!(evaluate(slow, &readings(vec![Delta::next(1, 3.0); 12])).is_none());
    }

    #[test]
    fn the_last_round_of_an_instance_is_seen_by_no_sample() {
        // Five rounds of a hundred samples each: the clock moves four times between the first sample and the last.
        let rounds = |instances: usize| {
            let one: Vec<f64> = (1..500).map(|sample| f64::from(u8::from(sample % 100 == 0))).collect();
            let moves: Vec<Vec<f64>> = (0..instances).map(|_| one.clone()).collect();
            moves.join(&-4.0)
        };
        let counted = |moves: &[f64]| {
            let of_one_thread = Readings { inside: BTreeMap::from([(0, Passed::default())]), ..moved(moves) };
            evaluate(CLOCK, &of_one_thread).unwrap().executions
        };
        assert!((counted(&rounds(1)) - 5.0).abs() < 0.02, "{}", counted(&rounds(1)));
        assert!((counted(&rounds(3)) - 15.0).abs() < 0.1, "{}", counted(&rounds(3)));
        // Of rounds that are shorter than intervals the mean tells the last ones, too.
        assert!((counted(&[40.0; 99]) - 4000.0).abs() < 1e-6);
    }

    #[test]
    fn rounds_that_get_shorter_and_shorter_are_no_leaps() {
        let shorter: Vec<f64> = (0..8).map(|doubled| 2f64.powi(doubled)).collect();
        let count = |ends: &[f64]| evaluated(&[&[1.0; 200][..], ends].concat()).unwrap().trusted;
        assert_eq!(count(&shorter), 208);
        assert_eq!(count(&[1.0, 128.0, 1.0]), 202, "what stands alone may be another thread's part");
    }
}
