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
//! were added is told by samples that fell into copies ([`Added`]). Registers that count (`counter_deltas`) run at the
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
use crate::frequency::strata::{CpuTime, Stratum, instructions, outermost, stratum_at, times};

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

/// One thing that windows cannot tell of themselves, taken to be off by one standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Doubt {
    #[default]
    Nothing,
    /// How fast copies are against the code itself.
    Pace,
    /// What registers and samples say where no window counted.
    Registers,
}

impl Doubt {
    /// Factor on counts of a window that lost this share of its time to what was added.
    fn of_pace(self, lost: f64) -> f64 {
        /// Relative: caches and branches of a copy are not those of the code. Fitted to the referee's development programs,
        /// seeds 1 to 30: with .1 their objects lie in 79 % of the intervals, with this in 84 %.
        const LAYOUT: f64 = 0.14;
        /// Of the correction: the half that is taken off may as well be none or all. Assumed.
        const CORRECTION: f64 = 0.5;
        if self == Self::Pace { 1.0 + LAYOUT.hypot(CORRECTION * lost) } else { 1.0 }
    }

    /// Factor on counts of a stratum in which registers count a block.
    fn of_scale(self, scale: Scale) -> f64 {
        /// The other blocks of the stratum need not have the pace of the one that is counted. Assumed.
        const OTHERS: f64 = 0.06;
        /// Of two that contradict each other one counts something else, and it need not be these registers: the interval
        /// reaches to what they say, and no further than twice this. Assumed.
        const CONTRADICTED: f64 = 0.5;
        match self {
            Self::Pace if !scale.is_sure() => 1.0,
            // Windows of another pace were set right by it.
            Self::Pace if scale.is_alike() => 1.0 + scale.variance.sqrt().hypot(OTHERS),
            Self::Pace => 1.0 + (scale.times.ln().abs() / 2.0).min(CONTRADICTED),
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
    doubt: Doubt,
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
        let (mut windows, mut counted) = (Vec::new(), Vec::new());
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
        for one in &mut counted {
            let lost = added.lost_share(&one.instructions);
            one.duration_ns *= 1.0 - lost;
            paces.push(doubt.of_pace(lost));
        }
        let corrections = corrections(&counted, &times);
        let factors = counted.iter().zip(paces).map(|(one, pace)| one.stands_for_ns / one.duration_ns * pace);
        Self { windows: windows.into_iter().zip(factors).collect(), unseen, corrections, doubt }
    }

    /// What registers say stays where nothing else was seen, and gives the others their scale.
    fn hear_registers(&self, observed: &Observed, id: FunctionId, known: &Counts, counts: &mut BlockCounts) {
        let function = &observed.code.functions[id].function;
        let scales = self.scales(observed, id, known, counts);
        let Some(known) = known.blocks.get(&id) else { return };
        for block in function.blocks.indices() {
            let inside = outermost(observed, id, block);
            if self.unseen.contains(&Some((id, inside))) {
                counts.executions[block] = known.executions[block] * self.doubt.of_registers(known.counted[block]);
                counts.counted[block] = known.counted[block];
            } else if let Some(scale) = scales.get(&inside) {
                counts.executions[block] *= scale.believed() * self.doubt.of_scale(*scale);
            }
        }
    }

    /// By outermost loop, of the block for which it is known best.
    fn scales(
        &self,
        observed: &Observed,
        id: FunctionId,
        known: &Counts,
        counts: &BlockCounts,
    ) -> BTreeMap<Option<LoopId>, Scale> {
        let mut scales: BTreeMap<Option<LoopId>, Scale> = BTreeMap::new();
        for clock in known.by_loop.range((id, LoopId::new(0))..(id + 1, LoopId::new(0))).map(|(_, clock)| clock) {
            let in_windows = self.windows.iter().filter_map(|(window, _)| window.executions.get(&(id, clock.block)));
            let seen: f64 = in_windows.sum();
            if seen == 0.0 {
                continue;
            }
            let times = clock.executions / counts.executions[clock.block];
            let inside = outermost(observed, id, clock.block);
            let chance = self.corrections.get(&Some((id, inside))).map_or(0.0, |one| one.deviation);
            let scale = Scale { times, variance: clock.relative_error.powi(2) + 1.0 / seen, chance };
            let best = scales.entry(inside).or_insert(scale);
            if scale.variance < best.variance {
                *best = scale;
            }
        }
        scales
    }

    /// Windows that counted, each with how many times what it counted happened in the part of the run for which it stands.
    pub(crate) fn windows(&self) -> &[(&'a CountedWindow, f64)] {
        &self.windows
    }

    /// Puts these counts in the place of those of code that was counted.
    pub(crate) fn replace(&self, observed: &Observed, counts: &mut Counts) {
        let mut executions: BTreeMap<(FunctionId, BlockId), f64> = BTreeMap::new();
        for (window, factor) in &self.windows {
            for (block, count) in &window.executions {
                *executions.entry(*block).or_default() += count * factor;
            }
        }
        let functions: BTreeSet<FunctionId> = executions.keys().map(|(function, _)| *function).collect();
        for &id in &functions {
            let function = &observed.code.functions[id].function;
            let by_windows = function.blocks.indices().map(|block| {
                let correction = self.corrections.get(&Some((id, outermost(observed, id, block))));
                executions.get(&(id, block)).copied().unwrap_or(0.0) * correction.map_or(1.0, |one| one.factor)
            });
            let executions: IndexVec<BlockId, f64> = by_windows.collect();
            let mut merged = BlockCounts {
                // Windows themselves tell better how far off they are, unless they are too few to tell anything.
                deviations: executions.iter().map(|executions| GUESSED * executions).collect(),
                executions,
                counted: function.blocks.iter().map(|_| true).collect(),
                source: CountSource::Estimated,
            };
            self.hear_registers(observed, id, counts, &mut merged);
            counts.blocks.insert(id, merged);
        }
        for (_, known) in counts.blocks.iter_mut().filter(|(id, _)| !functions.contains(*id)) {
            for (executions, counted) in known.executions.iter_mut().zip(&known.counted) {
                *executions *= self.doubt.of_registers(*counted);
            }
        }
    }
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
#[derive(Debug)]
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

    /// Share of a window's time by which the thread was late: each stratum weighs as many instructions as it ran.
    fn lost_share(&self, ran: &BTreeMap<Stratum, f64>) -> f64 {
        /// Part of the time at added instructions in which the program's own would have waited anyway: a processor does
        /// both at once. Measured: the totals of the referee's development programs, seeds 1 to 30, are right in the
        /// middle by .5.
        const ANYWAY: f64 = 0.5;
        let all: f64 = ran.values().sum();
        let late: f64 = ran.iter().map(|(stratum, instructions)| instructions * self.share(*stratum)).sum();
        (1.0 - ANYWAY) * if all > 0.0 { late / all } else { self.usual }
    }
}

/// How many times more registers count than windows, by one block.
#[derive(Debug, Clone, Copy)]
struct Scale {
    times: f64,
    /// Relative, of the registers.
    variance: f64,
    /// Relative deviation of the windows by chance.
    chance: f64,
}

impl Scale {
    /// What to scale by: nothing where registers do not count the block well, or count something else.
    fn believed(self) -> f64 {
        if self.is_sure() && self.is_alike() { self.times } else { 1.0 }
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
    fn who_contradicts_windows_makes_them_doubtful() {
        let doubt = |times, error: f64| Doubt::Pace.of_scale(Scale { times, variance: error * error, chance: 0.0 });
        assert!(doubt(1.1, 0.01) < doubt(1.6, 0.01), "what they agree on is known better");
        assert!(doubt(1.6, 0.01) < doubt(2.0, 0.01));
        assert!(is_same(doubt(1.6, 0.1), 1.0), "unsure: the pace of windows is doubted already");
        assert!(is_same(Doubt::Nothing.of_scale(Scale { times: 1.6, variance: 0.0, chance: 0.0 }), 1.0));
    }
}
