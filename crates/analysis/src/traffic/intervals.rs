//! How far counts of accesses may be off, by object.
//!
//! By chance: windows are few, and do not all see the same. All is worked out again without each tenth of them in turn,
//! and how far the results lie apart tells how far they may lie from the truth (the delete-a-group jackknife; Kott,
//! Journal of Official Statistics 17, 2001). By what windows cannot tell ([`Doubt`]): all is worked out with each of that
//! off by a standard deviation. These are independent, so their squares add up.
//!
//! Executions that were counted are not off. What remains is which object an operand touched, where few samples show it, or
//! where it takes longer on one object than on another; and all that no sample shows may be of any one object.
//!
//! Without windows the equations that were solved say how far their solution may be off, if all that went into them is as
//! good as it says. It is not: a clock may be believed that is none. How much wider 95 % intervals have to be was fitted to
//! programs with known counts ([`STRETCHED`]). However unsure the equations are, time bounds an object's count: the code that
//! touches it took between [`FASTEST_NS`] and [`SLOWEST_NS`] an instruction. And whatever ran without a sample that shows what it
//! touched may have touched any one object.

use std::collections::BTreeMap;

use tierloom_binary::code::FunctionId;
use tierloom_model::{AccessCount, CountSource};

use crate::address_space::objects::ObjectId;
use crate::attribution::Observed;
use crate::attribution::windows::CountedWindow;
use crate::frequency::Counts;
use crate::frequency::counted_runs;
use crate::frequency::instruction_time::InstructionTimes;
use crate::frequency::strata::{CpuTime, Stratum, stratum_at};
use crate::frequency::windows::{Chance, Doubt, Rates};
use crate::parallel::mapped;
use crate::traffic::accesses::{AllAccesses, OperandAccesses, Support, tally};
use crate::traffic::placement::Placements;
use crate::traffic::string_rounds::StringRounds;

/// Groups of windows.
const GROUPS: usize = 10;
/// Two-sided 95 % quantile of Student's t with one degree of freedom less than groups.
const BY_CHANCE: f64 = 2.262;
/// The same of the normal distribution.
const BY_DOUBT: f64 = 1.96;

/// A count that clocks give is this far off all the same, as a logarithm: ends of loops that no sample shows, copies of code
/// that are taken for one. Fitted to the kept recordings and to random programs (seeds 1 to 60).
const LEAST: f64 = 0.06;
/// Half an interval for each relative standard deviation of the equations. This and the next three are fitted to 421 objects,
/// each with 3 % or more of its program's bytes, of 22 real and 64 random programs (seeds 1 to 16, 700000 to 700023 and 800000
/// to 800023): 96 % of them lie in their intervals, and no fewer than 92 % of any of the four sets.
const STRETCHED: f64 = 8.0;
/// Fewest and most ns that an instruction takes in the mean of a loop, waits for memory with it: of 90 % of the objects the
/// code that touches them is between.
const FASTEST_NS: f64 = 1.0 / 24.0;
const SLOWEST_NS: f64 = 1.4;
/// The least half of an interval, as a logarithm, of what nothing but time tells: a factor of two.
const BY_TIME: f64 = 0.7;
/// No code is slower than this: each round of a chase of three instructions waits 100 ns for memory. Derived.
const IMPOSSIBLE_NS: f64 = 33.0;

/// Counts by windows where there are some.
pub(crate) struct Estimate<'a> {
    pub(crate) observed: &'a Observed,
    /// What registers and samples say.
    pub(crate) registers: &'a Counts,
    pub(crate) time: CpuTime,
    /// Functions in which the run that was counted is not like this one.
    pub(crate) differing: &'a [FunctionId],
}

impl Estimate<'_> {
    /// By all windows.
    pub(crate) fn whole(&self) -> (Counts, AllAccesses) {
        self.by(&self.observed.windows.iter().collect::<Vec<_>>(), Doubt::Nothing)
    }

    fn by(&self, windows: &[&CountedWindow], doubt: Doubt) -> (Counts, AllAccesses) {
        let rates = Rates::of(self.observed, windows, self.time, doubt);
        let mut counts = self.registers.clone();
        rates.replace(self.observed, &mut counts);
        counted_runs::replace(self.observed, self.differing, &mut counts);
        let placements = Placements::of(self.observed, windows, &rates);
        let accesses = tally(self.observed, &counts, &placements, &StringRounds::of(self.observed, windows));
        (counts, accesses)
    }

    /// By object.
    pub(crate) fn intervals(&self, counts: &Counts, whole: &AllAccesses) -> BTreeMap<ObjectId, AccessCount> {
        let times = self.instruction_times(counts, whole);
        let by_equations = |(object, support): (&ObjectId, &Support)| {
            let known = estimated(support, times.get(object).copied().unwrap_or(1.0), whole.unseen);
            // No more fit into the run.
            (*object, AccessCount { high: known.high.min(self.time.ns / FASTEST_NS).max(known.count), ..known })
        };
        let mut intervals: BTreeMap<ObjectId, AccessCount> = whole.support.iter().map(by_equations).collect();
        intervals.extend(self.by_windows(whole));
        let elsewhere = (whole.elsewhere, whole.not_sampled.accesses);
        let counted = |(object, support): (&ObjectId, &Support)| Some((*object, counted(support, elsewhere)?));
        intervals.extend(whole.support.iter().filter_map(counted));
        intervals
    }

    /// By object: ns that an instruction of the code that touches it takes, in the (geometric) mean of its accesses.
    fn instruction_times(&self, counts: &Counts, whole: &AllAccesses) -> BTreeMap<ObjectId, f64> {
        let sample_ns = self.time.ns / self.observed.seen.len().max(1) as f64;
        let rounds = StringRounds::of(self.observed, &self.observed.windows.iter().collect::<Vec<_>>());
        let rounds = |operand, executions| rounds.accesses(operand, executions);
        let times = InstructionTimes::of(self.observed, counts, rounds, sample_ns);
        let mut sums: BTreeMap<ObjectId, (f64, f64)> = BTreeMap::new();
        for OperandAccesses { operand, object, executions } in &whole.known {
            let sum = sums.entry(*object).or_default();
            let ns = times.near(self.observed, operand.function, operand.instruction);
            *sum = (sum.0 + executions * ns.ln(), sum.1 + executions);
        }
        sums.into_iter().map(|(object, (sum, executions))| (object, (sum / executions).exp())).collect()
    }

    fn by_windows(&self, whole: &AllAccesses) -> BTreeMap<ObjectId, AccessCount> {
        let counted = self.observed.windows.iter().filter(|window| window.duration_ns > 0.0).count();
        if counted < 2 * GROUPS {
            return BTreeMap::new();
        }
        let without = |group: usize| {
            let others = self.observed.windows.iter().enumerate().filter(|(number, _)| number % GROUPS != group);
            (others.map(|(_, window)| window).collect::<Vec<_>>(), Doubt::Nothing)
        };
        let all = || self.observed.windows.iter().collect::<Vec<_>>();
        let rates = Rates::of(self.observed, &all(), self.time, Doubt::Nothing);
        let scales = rates.replace(self.observed, &mut self.registers.clone());
        let few = self.few(whole, rates.chances(&scales));
        let mut ways: Vec<_> = (0..GROUPS).map(without).collect();
        ways.extend([(all(), Doubt::Pace(rates.layout(&scales))), (all(), Doubt::Registers)]);
        let results = mapped(&ways, |(windows, doubt)| by_object(&self.by(windows, *doubt).1));
        let (groups, doubts) = results.split_at(GROUPS);
        let few = |object| few.get(&object).copied().unwrap_or_default();
        let all = by_object(whole).into_iter();
        all.map(|(object, count)| (object, interval(object, count, groups, doubts, few(object)))).collect()
    }

    /// By object: how far it may be off because few samples and windows saw its code. Strata are independent.
    fn few(&self, whole: &AllAccesses, chance: impl Fn(Stratum) -> Option<Chance>) -> BTreeMap<ObjectId, Few> {
        let mut parts: BTreeMap<(ObjectId, Stratum), f64> = BTreeMap::new();
        for OperandAccesses { operand, object, executions } in &whole.known {
            let stratum = stratum_at(self.observed, Some((operand.function, operand.instruction)));
            *parts.entry((*object, stratum)).or_default() += executions;
        }
        let mut few: BTreeMap<ObjectId, Few> = BTreeMap::new();
        for ((object, stratum), executions) in parts {
            let Some(chance) = chance(stratum) else { continue };
            let sum = few.entry(object).or_default();
            sum.samples += executions * executions * chance.time;
            sum.windows += executions * executions * chance.pace;
        }
        few
    }
}

type ByObject = BTreeMap<ObjectId, f64>;

/// Variances of an object's count: few samples tell the time of its code, and few windows the pace.
#[derive(Debug, Clone, Copy, Default)]
struct Few {
    samples: f64,
    windows: f64,
}

fn by_object(accesses: &AllAccesses) -> ByObject {
    let mut sums = ByObject::new();
    for one in &accesses.known {
        *sums.entry(one.object).or_default() += one.executions;
    }
    sums
}

fn interval(object: ObjectId, count: f64, groups: &[ByObject], doubts: &[ByObject], few: Few) -> AccessCount {
    let of = |way: &ByObject| way.get(&object).copied().unwrap_or(0.0);
    let number = groups.len() as f64;
    let mean = groups.iter().map(of).sum::<f64>() / number;
    let squares: f64 = groups.iter().map(|way| (of(way) - mean).powi(2)).sum();
    // Of few windows, leaving one out shows little.
    let by_chance = (BY_CHANCE.powi(2) * (number - 1.0) / number * squares).max(BY_DOUBT.powi(2) * few.windows);
    let by_time = BY_DOUBT.powi(2) * few.samples;
    let by_doubt: f64 = doubts.iter().map(|way| (BY_DOUBT * (of(way) - count)).powi(2)).sum();
    let half = (by_chance + by_time + by_doubt).sqrt();
    AccessCount { count, low: (count - half).max(0.0), high: count + half, source: CountSource::Estimated }
}

/// Of an object as the equations say: a factor to both sides, for what is off is rates.
fn estimated(support: &Support, instruction_ns: f64, unseen: f64) -> AccessCount {
    /// A part of an object's executions that may belong elsewhere leaves something.
    const MOST: f64 = 0.99;
    let count = support.executions;
    let relative = |executions: f64| executions / count.max(f64::MIN_POSITIVE);
    // However sure equations are that ask for code slower than any, something in them is wrong: only time tells.
    let is_possible = instruction_ns <= IMPOSSIBLE_NS;
    let stretched = if is_possible { STRETCHED * relative(support.deviation) } else { f64::INFINITY };
    let half = |by_time: f64, by_place: f64| {
        let narrower = stretched.min(by_time.max(BY_TIME));
        (LEAST.powi(2) + narrower.powi(2) + by_place.powi(2)).sqrt()
    };
    let below = half((SLOWEST_NS / instruction_ns).ln(), (-relative(support.below.sqrt()).min(MOST)).ln_1p());
    let above = half((instruction_ns / FASTEST_NS).ln(), relative(support.above.sqrt()).ln_1p());
    AccessCount {
        count,
        low: count * (-below).exp(),
        high: count * above.exp() + unseen,
        source: CountSource::Estimated,
    }
}

/// Of an object all of whose executions were counted. What may be of any one object: so much, as a square, of operands that
/// few samples show, and all that none shows.
fn counted(support: &Support, (elsewhere, unseen): (f64, f64)) -> Option<AccessCount> {
    /// What is left may be estimated: it moves the count by less than rounding does. Assumed.
    const ALL: f64 = 0.99;
    let count = support.executions;
    let (low, high) = ((count - support.below.sqrt()).max(0.0), count + (support.above + elsewhere).sqrt() + unseen);
    (support.counted >= ALL * count).then_some(AccessCount { count, low, high, source: CountSource::Counted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(counts: &[f64]) -> Vec<ByObject> {
        counts.iter().map(|count| BTreeMap::from([(ObjectId::new(0), *count)])).collect()
    }

    #[test]
    fn without_each_group_the_mean_of_the_others_gives_the_error_of_the_mean() {
        // Ten groups of 1 to 10: the mean is 5.5, its standard error that of ten independent ones.
        let all: f64 = (1..=10).map(f64::from).sum();
        let groups: Vec<f64> = (1..=10).map(|group| (all - f64::from(group)) / 9.0).collect();
        let found = interval(ObjectId::new(0), 5.5, &alone(&groups), &[], Few::default());
        let error = (82.5f64 / 9.0 / 10.0).sqrt();
        assert!((found.high - 5.5 - BY_CHANCE * error).abs() < 1e-9, "{found:?}");
        assert!((found.low - 5.5 + BY_CHANCE * error).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_object_is_counted_if_all_of_it_was() {
        let all = Support { executions: 100.0, counted: 100.0, below: 25.0, above: 4.0, deviation: 0.0 };
        let found = counted(&all, (12.0, 3.0)).unwrap();
        assert!((found.low - 95.0).abs() < 1e-9 && (found.high - 107.0).abs() < 1e-9, "{found:?}");
        assert_eq!(counted(&Support { executions: 200.0, ..all }, (0.0, 3.0)), None);
    }

    /// Logarithms of how far below and above a count of 100 may be.
    fn halves(deviation: f64, below: f64, instruction_ns: f64, unseen: f64) -> (f64, f64) {
        let known = Support { executions: 100.0, deviation, below, ..Support::default() };
        let found = estimated(&known, instruction_ns, unseen);
        ((found.count / found.low).ln(), (found.high / found.count).ln())
    }

    #[test]
    fn an_estimate_is_as_sure_as_its_equations_and_never_below_none() {
        let off = |deviation, below| halves(deviation, below, 0.3, 0.0);
        let (below, above) = off(0.0, 0.0);
        assert!((below - LEAST).abs() < 1e-9 && (above - LEAST).abs() < 1e-9, "what nothing tells");
        assert!(off(1.0, 0.0).1 > LEAST && off(10.0, 0.0).1 > 3.0 * off(1.0, 0.0).1, "the less sure the wider");
        let (elsewhere, here) = off(1.0, 1e8);
        assert!(elsewhere > here && elsewhere.is_finite(), "what may be of other objects makes it less");
    }

    #[test]
    fn of_what_equations_do_not_tell_time_gives_the_bounds() {
        let off = |instruction_ns| halves(1e6, 0.0, instruction_ns, 0.0);
        let (slow, fast) = (off(1.0), off(0.05));
        assert!(slow.1 > slow.0 && fast.0 > fast.1, "slow code may have run oftener, fast code less often");
        assert!((slow.1 - 24f64.ln()).abs() < 0.01 && (fast.0 - 28f64.ln()).abs() < 0.01, "{slow:?} {fast:?}");
        assert!(slow.0 >= BY_TIME && fast.1 >= BY_TIME, "and neither is known exactly");
    }

    #[test]
    fn sure_equations_that_leave_no_time_are_wrong() {
        let (possible, impossible) = (halves(0.1, 0.0, 10.0, 0.0).1, halves(0.1, 0.0, 1000.0, 0.0).1);
        assert!(possible < 0.1 && impossible > 10.0, "{possible} {impossible}");
    }

    #[test]
    fn what_no_sample_shows_may_be_of_any_object() {
        let ((below, above), (same, more)) = (halves(0.0, 0.0, 0.3, 0.0), halves(0.0, 0.0, 0.3, 50.0));
        assert!((below - same).abs() < 1e-12 && (100.0 * (more.exp() - above.exp()) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn few_samples_widen_an_interval_and_few_windows_where_leaving_them_out_does_not() {
        let half = |groups: &[f64], few| interval(ObjectId::new(0), 100.0, &alone(groups), &[], few).high - 100.0;
        let few = |samples, windows| Few { samples, windows };
        assert!((half(&[100.0; 10], few(9.0, 16.0)) - 9.8).abs() < 1e-9, "both");
        let apart: Vec<f64> = (0..10).map(|group| 90.0 + 20.0 * f64::from(group % 2)).collect();
        assert!((half(&apart, few(0.0, 16.0)) - half(&apart, few(0.0, 0.0))).abs() < 1e-9);
    }

    #[test]
    fn doubts_widen_an_interval_and_nothing_is_below_none() {
        let found = interval(ObjectId::new(0), 100.0, &alone(&[100.0; 10]), &alone(&[110.0, 100.0]), Few::default());
        assert!((found.low - 80.4).abs() < 1e-9 && (found.high - 119.6).abs() < 1e-9, "{found:?}");
        let rough = interval(ObjectId::new(0), 100.0, &alone(&[100.0; 10]), &alone(&[200.0]), Few::default());
        assert!(rough.low == 0.0 && (rough.high - 296.0).abs() < 1e-9, "{rough:?}");
    }
}
