//! How often blocks ran, from windows in which they were counted.
//!
//! Executions in the whole run = CPU time x mean over windows of count / duration. Windows begin at moments that are
//! drawn from CPU time alone, so that is the run's, whatever the loops and branches are. It is taken by where a window
//! began, a function's outermost loop or what is outside of its loops: of those there are samples, which are many
//! more, and tell the time of each better than the windows do (post-stratification; Cochran, Sampling Techniques,
//! 5A.9). Where no window began, those of others that ran its code tell; where none did, nothing was counted,
//! and what registers and samples say stays.
//!
//! A copy is slower than the code, so counts would be too low. How much of the time in copies goes to instructions that
//! were added is told by samples that fell into copies ([`Added`]). Short windows lose time to cold caches ([`WarmUps`]). Registers that count (`counter_deltas`) run at the
//! pace of the code itself: the block of a stratum that they count best gives all of the stratum its scale ([`Scale`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use index_vec::IndexVec;
use tierloom_binary::cfg::{BlockId, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_model::CountSource;
use tierloom_recording::InCopy;

use crate::attribution::Observed;
use crate::attribution::windows::CountedWindow;
use crate::frequency::Counts;
use crate::frequency::blocks::{BlockCounts, GUESSED};
use crate::frequency::pace::{Correction, Counted, corrections};
use crate::frequency::strata::{CpuTime, Spent, Stratum, instructions, outermost, stratum_at, times};
use crate::frequency::warm_ups::WarmUps;

/// What registers count may be this many times what windows count, and is believed. A copy is up to a third slower than the
/// code; where the code's own branches happen to be predicted badly it has been seen to be twice as fast. Registers that
/// say more or less count something else. Assumed; with .625 for .4, 35 instead of 37 of 59 random programs and as many
/// of 36 real ones have totals within 10 %.
const ALIKE: RangeInclusive<f64> = 0.4..=1.5;
/// Standard deviations by which chance may put windows off.
const BY_CHANCE: f64 = 2.0;
/// Relative error of a count by registers that tells nothing of a scale. Assumed; .02 and .05 move none of the
/// referee's figures by more than one program.
const UNSURE: f64 = 0.03;

/// Part of the time at added instructions in which the program's own would have waited anyway: a processor does both at once.
/// Measured: the totals of the referee's development programs, seeds 1 to 30, are right in the middle by .5.
const ANYWAY: f64 = 0.5;
/// Of the time that is deducted for added instructions, and for cold caches: what is taken off may as well be none or half
/// as much again. Assumed.
const CORRECTION: f64 = 0.5;

/// One thing that windows cannot tell of themselves, taken to be off by one standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Doubt {
    #[default]
    Nothing,
    /// How fast copies are against the code itself, beside what was added: relative ([`layout`]).
    Pace(f64),
    /// What registers and samples say where no window counted.
    Registers,
}

impl Doubt {
    /// Factor on counts of a window that lost this share of its time to what was added, and to cold caches.
    fn of_pace(self, lost: f64) -> f64 {
        if let Self::Pace(layout) = self { 1.0 + layout.hypot(CORRECTION * lost) } else { 1.0 }
    }

    /// Factor on counts of a stratum in which registers count a block.
    fn of_scale(self, scale: Scale) -> f64 {
        /// The other blocks of the stratum need not have the pace of the one that is counted: so far off in the median are 34
        /// objects of the referee's development programs, seeds 1 to 20, twice.
        const OTHERS: f64 = 0.02;
        /// Of two that contradict each other one counts something else, and it need not be these registers: the interval
        /// reaches to what they say, and no further than twice this. Assumed.
        const CONTRADICTED: f64 = 0.5;
        match self {
            Self::Pace(_) if !scale.is_sure() => 1.0,
            // Windows of another pace were set right by it.
            Self::Pace(_) if scale.is_alike() => 1.0 + scale.variance.sqrt().hypot(OTHERS),
            Self::Pace(_) => 1.0 + (scale.times.ln().abs() / 2.0).min(CONTRADICTED),
            Self::Nothing | Self::Registers => 1.0,
        }
    }

    /// Factor on counts by registers, or by samples where these do not count.
    fn of_registers(self, counted: bool) -> f64 {
        /// A loop that is taken for another one is off by as much. Assumed.
        const COUNTED: f64 = 0.2;
        /// Time is not instructions: as much again. Assumed.
        const GUESSED: f64 = 1.0;
        if self == Self::Registers { 1.0 + if counted { COUNTED } else { GUESSED } } else { 1.0 }
    }
}

/// Windows, and how much of the run each stands for.
#[derive(Debug, Default)]
pub(crate) struct Rates<'a> {
    /// Windows, each with how many times what it counted happened in the part of the run for which it stands.
    windows: Vec<(&'a CountedWindow, f64)>,
    /// Where time was spent and nothing counted.
    unseen: BTreeSet<Stratum>,
    /// Factors on what windows count, by stratum.
    corrections: BTreeMap<Stratum, Correction>,
    /// How few samples and windows a stratum has.
    chances: BTreeMap<Stratum, Chance>,
    added: Added,
    doubt: Doubt,
}

/// Relative variance of a stratum's count that leaving out windows does not show, or not where there are hardly any.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chance {
    /// Of its time: samples are few.
    pub(crate) time: f64,
    /// Of its pace: windows are few.
    pub(crate) pace: f64,
}

impl Chance {
    fn of(spent: Spent, windows: usize) -> Self {
        /// Relative deviation of the pace from window to window. Fitted to the referee's development programs, seeds 1 to 20:
        /// with .1 their objects lie in 90.3 % of the intervals, with this in 91.2, with .3 in 91.2.
        const APART: f64 = 0.2;
        /// Where none began, what others ran tells half as much. Assumed.
        const FEWEST: f64 = 0.5;
        let windows = (windows as f64).max(FEWEST);
        // Where there are hardly any samples, moments of windows told the time.
        Self { time: 1.0 / spent.samples.max(windows), pace: APART.powi(2) / windows }
    }
}

impl<'a> Rates<'a> {
    /// By these windows.
    pub(crate) fn of(observed: &'a Observed, seen: &[&'a CountedWindow], time: CpuTime, doubt: Doubt) -> Self {
        let mut by_stratum: BTreeMap<Stratum, Vec<&CountedWindow>> = BTreeMap::new();
        for window in seen.iter().copied().filter(|window| window.duration_ns > 0.0) {
            by_stratum.entry(stratum_at(observed, window.entered)).or_default().push(window);
        }
        if by_stratum.is_empty() {
            return Self::default();
        }
        let times = times(observed, seen, time);
        let began = |stratum: &Stratum| by_stratum.get(stratum).map_or(0, Vec::len);
        let chances = times.iter().map(|(stratum, spent)| (*stratum, Chance::of(*spent, began(stratum)))).collect();
        let (mut windows, mut counted) = (Vec::<&CountedWindow>::new(), Vec::<Counted>::new());
        for (&stratum, own) in by_stratum.iter().filter(|(stratum, _)| times.contains_key(*stratum)) {
            // In each the same happens, so a longer one tells more.
            let weight = |window: &CountedWindow| window.duration_ns * window.stands_for_ns;
            let all: f64 = own.iter().map(|window| weight(window)).sum();
            windows.extend(own);
            counted.extend(own.iter().map(|window| Counted {
                stratum,
                duration_ns: window.duration_ns,
                stands_for_ns: times[&stratum].ns * weight(window) / all,
                instructions: instructions(observed, window),
            }));
        }
        let elsewhere = times.iter().filter(|(stratum, _)| !by_stratum.contains_key(*stratum));
        let unseen = elsewhere.filter(|(stratum, spent)| !spread(&mut counted, **stratum, spent.ns));
        let unseen = unseen.map(|(stratum, _)| *stratum).collect();
        let added = Added::of(observed);
        let mut paces = Vec::new();
        let warm_ups = WarmUps::of(observed, seen);
        for (one, window) in counted.iter_mut().zip(&windows) {
            let (lost, cold) = (added.lost_share(&one.instructions), warm_ups.share(one.stratum, window));
            one.duration_ns *= (1.0 - lost) * (1.0 - cold);
            paces.push(doubt.of_pace(lost.hypot(cold)));
        }
        let corrections = corrections(&counted, &times);
        let factors = counted.iter().zip(paces).map(|(one, pace)| one.stands_for_ns / one.duration_ns * pace);
        Self { windows: windows.into_iter().zip(factors).collect(), unseen, corrections, chances, added, doubt }
    }

    /// What registers say stays where nothing else was seen, and gives the others their scale.
    fn hear_registers(
        &self,
        observed: &Observed,
        id: FunctionId,
        known: &Counts,
        scales: &Scales,
        counts: &mut BlockCounts,
    ) {
        let function = &observed.code.functions[id].function;
        let Some(known) = known.blocks.get(&id) else { return };
        for block in function.blocks.indices() {
            let stratum = Some((id, outermost(observed, id, block)));
            if self.unseen.contains(&stratum) {
                counts.executions[block] = known.executions[block] * self.doubt.of_registers(known.counted[block]);
                counts.counted[block] = known.counted[block];
            } else if let Some(scale) = scales.get(&stratum) {
                counts.executions[block] *= scale.believed() * self.doubt.of_scale(*scale);
            }
        }
    }

    /// By stratum of a function, of the block for which it is known best.
    fn scales(&self, observed: &Observed, id: FunctionId, known: &Counts, counts: &BlockCounts) -> Scales {
        let mut scales = Scales::new();
        for clock in known.by_loop.range((id, LoopId::new(0))..(id + 1, LoopId::new(0))).map(|(_, clock)| clock) {
            let in_windows = self.windows.iter().filter_map(|(window, _)| window.executions.get(&(id, clock.block)));
            let seen: f64 = in_windows.sum();
            if seen == 0.0 {
                continue;
            }
            let times = clock.executions / counts.executions[clock.block];
            let stratum = Some((id, outermost(observed, id, clock.block)));
            let chance = self.corrections.get(&stratum).map_or(0.0, |one| one.deviation);
            let scale = Scale { times, variance: clock.relative_error.powi(2) + 1.0 / seen, chance };
            let best = scales.entry(stratum).or_insert(scale);
            if scale.variance < best.variance {
                *best = scale;
            }
        }
        scales
    }

    /// How far a stratum may be off because few samples and windows saw it; nothing where registers gave it its scale.
    pub(crate) fn chances<'s>(&'s self, scales: &'s Scales) -> impl Fn(Stratum) -> Option<Chance> + 's {
        |stratum| {
            let is_scaled = scales.get(&stratum).is_some_and(|scale| scale.is_believed());
            self.chances.get(&stratum).copied().filter(|_| !is_scaled && !self.unseen.contains(&stratum))
        }
    }

    /// How far copies are off in pace beside what was added, as a relative deviation: as far as this run's own strata show
    /// that registers count, and as usual as far as these are few.
    pub(crate) fn layout(&self, scales: &Scales) -> f64 {
        let off = |(stratum, scale): (&Stratum, &Scale)| {
            let chance = self.chances.get(stratum).filter(|_| scale.is_sure() && scale.chance < UNLIKELY)?;
            let added = CORRECTION * self.added.lost_in(*stratum);
            let explained = scale.variance + scale.chance.powi(2) + chance.time + added.powi(2);
            Some((scale.times.ln().powi(2) - explained).max(0.0))
        };
        layout(&scales.iter().filter_map(off).collect::<Vec<f64>>())
    }

    /// Windows that counted, each with how many times what it counted happened in the part of the run for which it stands.
    pub(crate) fn windows(&self) -> &[(&'a CountedWindow, f64)] {
        &self.windows
    }

    /// Puts these counts in the place of those of code that was counted; returns by how much registers say that they are off.
    pub(crate) fn replace(&self, observed: &Observed, counts: &mut Counts) -> Scales {
        let mut all = Scales::new();
        let executions = self.executions();
        let functions: BTreeSet<FunctionId> = executions.keys().map(|(function, _)| *function).collect();
        for &id in &functions {
            let mut counted = self.counted(observed, id, &executions);
            let scales = self.scales(observed, id, counts, &counted);
            self.hear_registers(observed, id, counts, &scales, &mut counted);
            counts.blocks.insert(id, counted);
            all.extend(scales);
        }
        for (_, known) in counts.blocks.iter_mut().filter(|(id, _)| !functions.contains(*id)) {
            for (executions, counted) in known.executions.iter_mut().zip(&known.counted) {
                *executions *= self.doubt.of_registers(*counted);
            }
        }
        all
    }

    /// In the whole run, by all windows.
    fn executions(&self) -> BTreeMap<(FunctionId, BlockId), f64> {
        let mut executions: BTreeMap<(FunctionId, BlockId), f64> = BTreeMap::new();
        for (window, factor) in &self.windows {
            for (block, count) in &window.executions {
                *executions.entry(*block).or_default() += count * factor;
            }
        }
        executions
    }

    /// Of a function, with what samples say of the time of each stratum.
    fn counted(
        &self,
        observed: &Observed,
        id: FunctionId,
        executions: &BTreeMap<(FunctionId, BlockId), f64>,
    ) -> BlockCounts {
        let function = &observed.code.functions[id].function;
        let by_windows = function.blocks.indices().map(|block| {
            let correction = self.corrections.get(&Some((id, outermost(observed, id, block))));
            executions.get(&(id, block)).copied().unwrap_or(0.0) * correction.map_or(1.0, |one| one.factor)
        });
        let executions: IndexVec<BlockId, f64> = by_windows.collect();
        BlockCounts {
            // Windows themselves tell better how far off they are, unless they are too few to tell anything.
            deviations: executions.iter().map(|executions| GUESSED * executions).collect(),
            executions,
            counted: function.blocks.iter().map(|_| true).collect(),
            source: CountSource::Estimated,
        }
    }
}

/// By stratum: how many times more registers count than windows.
pub(crate) type Scales = BTreeMap<Stratum, Scale>;

/// Strata of which windows are this far apart, relative, tell nothing of the pace. Assumed.
const UNLIKELY: f64 = 0.1;

/// The usual deviation of paces, given squares of it that were seen.
fn layout(seen: &[f64]) -> f64 {
    /// Relative: caches, branches and alignment of a copy are not those of the code. Fitted to the referee's development
    /// programs, seeds 1 to 20: with .03, .05 and .06 their objects lie in 90.3, 91.2 and 91.2 % of the intervals.
    const USUAL: f64 = 0.05;
    /// Strata that the usual one weighs as much as. Assumed.
    const WEIGHT: f64 = 10.0;
    ((WEIGHT * USUAL.powi(2) + seen.iter().sum::<f64>()) / (WEIGHT + seen.len() as f64)).sqrt()
}

/// The time of a stratum where no window began goes to windows that ran its code; whether there are any.
fn spread(windows: &mut [Counted], stratum: Stratum, time_ns: f64) -> bool {
    // What windows ran of code that is not known nobody can tell.
    let ran = |window: &Counted| {
        let share = |_| window.instructions.get(&stratum).unwrap_or(&0.0) / window.duration_ns;
        window.stands_for_ns * stratum.map_or(1.0, share)
    };
    let shares: Vec<f64> = windows.iter().map(ran).collect();
    let all: f64 = shares.iter().sum();
    if all > 0.0 {
        windows.iter_mut().zip(shares).for_each(|(window, share)| window.stands_for_ns += time_ns * share / all);
    }
    all > 0.0
}

/// How much of the time in copies goes to what was added.
#[derive(Debug, Default)]
struct Added {
    /// Samples in copies: at instructions of the program, and at those that were added.
    by_stratum: BTreeMap<Stratum, (f64, f64)>,
    usual: f64,
}

impl Added {
    fn of(observed: &Observed) -> Self {
        let mut by_stratum: BTreeMap<Stratum, (f64, f64)> = BTreeMap::new();
        let mut all = (0.0, 0.0);
        for seen in &observed.seen {
            let (own, added) = match seen.copy {
                InCopy::No => continue,
                InCopy::Own => (1.0, 0.0),
                InCopy::Added => (0.0, 1.0),
            };
            let known = by_stratum.entry(stratum_at(observed, seen.at)).or_default();
            *known = (known.0 + own, known.1 + added);
            all = (all.0 + own, all.1 + added);
        }
        let usual = if all.0 + all.1 > 0.0 { all.1 / (all.0 + all.1) } else { 0.0 };
        Self { by_stratum, usual }
    }

    /// Share of the time in copies of a stratum that is at added instructions; of few samples that of all.
    fn share(&self, stratum: Stratum) -> f64 {
        /// Samples that all others weigh as much as. Assumed.
        const WEIGHT: f64 = 10.0;
        let (own, added) = self.by_stratum.get(&stratum).copied().unwrap_or_default();
        (added + WEIGHT * self.usual) / (own + added + WEIGHT)
    }

    /// Share of the time in copies of a stratum by which the thread was late.
    fn lost_in(&self, stratum: Stratum) -> f64 {
        (1.0 - ANYWAY) * self.share(stratum)
    }

    /// The same of a window: each stratum weighs as many instructions as it ran.
    fn lost_share(&self, ran: &BTreeMap<Stratum, f64>) -> f64 {
        let all: f64 = ran.values().sum();
        let late: f64 = ran.iter().map(|(stratum, instructions)| instructions * self.lost_in(*stratum)).sum();
        if all > 0.0 { late / all } else { (1.0 - ANYWAY) * self.usual }
    }
}

/// How many times more registers count than windows, by one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    times: f64,
    /// Relative, of the registers.
    variance: f64,
    /// Relative deviation of the windows by chance.
    chance: f64,
}

impl Scale {
    /// What to scale by: nothing where registers do not count the block well, or count something else.
    fn believed(self) -> f64 {
        if self.is_believed() { self.times } else { 1.0 }
    }

    fn is_believed(self) -> bool {
        self.is_sure() && self.is_alike()
    }

    /// Whether windows may be so far off, by pace or by chance.
    fn is_alike(self) -> bool {
        ALIKE.contains(&self.times) || self.times.ln().abs() < BY_CHANCE * self.chance
    }

    fn is_sure(self) -> bool {
        self.variance < UNSURE.powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strata() -> [Stratum; 3] {
        [1, 2, 3].map(|function| Some((FunctionId::new(function), None)))
    }

    #[test]
    fn a_stratum_with_few_samples_in_copies_is_as_usual() {
        let [many, one, none] = strata();
        let added = Added { by_stratum: BTreeMap::from([(many, (900.0, 100.0)), (one, (0.0, 1.0))]), usual: 0.2 };
        assert!((added.share(many) - 0.1).abs() < 0.002);
        assert!((added.share(one) - 3.0 / 11.0).abs() < 1e-9);
        assert!((added.share(none) - 0.2).abs() < 1e-9);
    }

    fn is_same(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn registers_give_the_scale_where_they_are_sure_and_windows_can_be_so_far_off() {
        let believed = |times, error: f64| Scale { times, variance: error * error, chance: 0.0 }.believed();
        assert!(is_same(believed(1.1, 0.01), 1.1));
        assert!(is_same(believed(0.5, 0.01), 0.5), "the copy is faster");
        assert!(is_same(believed(1.6, 0.01), 1.0), "too much");
        assert!(is_same(believed(0.3, 0.01), 1.0), "too little");
        assert!(is_same(believed(1.1, 0.1), 1.0), "unsure");
        let few = Scale { times: 5.0, variance: 0.0001, chance: 1.0 };
        assert!(is_same(few.believed(), 5.0), "windows are off by chance");
    }

    #[test]
    fn paces_are_as_far_apart_as_the_run_shows_and_as_usual_where_it_shows_little() {
        assert!(is_same(layout(&[]), 0.05));
        assert!(layout(&[0.0; 10]) < 0.04, "registers and windows agree");
        assert!(layout(&[0.01]) < layout(&[0.01; 10]) && layout(&[0.01; 100]) < 0.1);
        assert!(layout(&[0.01; 100]) > 0.095);
    }

    #[test]
    fn few_samples_and_few_windows_make_a_stratum_doubtful() {
        let chance = |samples, windows| Chance::of(Spent { ns: 1.0, samples }, windows);
        assert!(is_same(chance(100.0, 3).time, 0.01));
        assert!(is_same(chance(0.0, 20).time, 0.05), "windows tell its time where samples do not");
        assert!(chance(100.0, 0).pace > chance(100.0, 1).pace && chance(100.0, 100).pace < 0.001);
    }

    #[test]
    fn who_contradicts_windows_makes_them_doubtful() {
        let doubt =
            |times, error: f64| Doubt::Pace(0.05).of_scale(Scale { times, variance: error * error, chance: 0.0 });
        assert!(doubt(1.1, 0.01) < doubt(1.6, 0.01), "what they agree on is known better");
        assert!(doubt(1.6, 0.01) < doubt(2.0, 0.01));
        assert!(is_same(doubt(1.6, 0.1), 1.0), "unsure: the pace of windows is doubted already");
        assert!(is_same(Doubt::Nothing.of_scale(Scale { times: 1.6, variance: 0.0, chance: 0.0 }), 1.0));
    }
}
