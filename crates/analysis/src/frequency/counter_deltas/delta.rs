//! What a clock showed, sample by sample, and the count that it comes to.

use std::collections::BTreeMap;

use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::FunctionId;

/// Samples that may lie between the two of a pair without seeing the clock, unless an outer clock tells
/// what happened in between.
const LONGEST_GAP: usize = 8;
/// A clock that ran forwards this often and next to never backwards is not set anew: one that is would
/// have done so by chance once in 256 times. It may be as slow as it likes: data that are touched for
/// the first time come a page fault at a time.
pub(crate) const ALWAYS_FORWARDS: usize = 8;
/// Next to never.
pub(crate) const RARELY: f64 = 0.02;

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
pub(crate) struct Readings {
    /// Intervals that end in its region, whether their samples see it or not: a clock that waits on the stack is not seen.
    pub(crate) around: Vec<Interval>,
    /// Samples that see it.
    pub(crate) seen: Vec<usize>,
    pub(crate) pairs: Vec<Delta>,
    /// By thread: how far it is in the clock's region.
    pub(super) inside: BTreeMap<usize, Passed>,
}

impl Readings {
    /// Without the pairs that lie too far apart to tell that the clock was not set anew in between. None does where of those
    /// with samples between them hardly any falls back.
    pub(super) fn close(&self) -> Self {
        let apart = self.pairs.iter().filter(|pair| pair.intervals > 1);
        let (all, backward) =
            apart.fold((0, 0), |(all, backward), pair| (all + 1, backward + usize::from(pair.forwards().is_none())));
        if all >= ALWAYS_FORWARDS && backward as f64 <= RARELY * all as f64 {
            return self.with(self.pairs.clone());
        }
        self.with(self.pairs.iter().filter(|pair| pair.intervals <= LONGEST_GAP).copied().collect())
    }

    /// Another interval of a thread that ends in the clock's region; how far the thread is in there now.
    pub(super) fn enter(&mut self, thread: usize, seen: usize, length: f64) -> Passed {
        self.around.push(Interval { seen, length });
        self.inside.entry(thread).or_default().further(length)
    }

    /// Time in the clock's region, in mean intervals.
    pub(super) fn time_around(&self) -> f64 {
        self.around.iter().map(|interval| interval.length).sum()
    }

    /// The same samples with other pairs.
    pub(crate) fn with(&self, pairs: Vec<Delta>) -> Self {
        Self { around: self.around.clone(), seen: self.seen.clone(), pairs, inside: self.inside.clone() }
    }
}

/// How far a thread is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Passed {
    pub(super) samples: usize,
    /// Its own time, in mean intervals.
    pub(super) length: f64,
}

impl Passed {
    /// By another interval.
    pub(super) fn further(&mut self, length: f64) -> Self {
        *self = Self { samples: self.samples + 1, length: self.length + length };
        *self
    }
}

/// What lies between a sample and the one before it of the same thread.
#[derive(Clone, Copy)]
pub(crate) struct Interval {
    pub(crate) seen: usize,
    /// The thread's own time, in mean intervals.
    pub(crate) length: f64,
}

/// Two samples that see the same clock.
#[derive(Clone, Copy)]
pub(crate) struct Delta {
    pub(crate) before: usize,
    pub(crate) seen: usize,
    /// Executions; `None` when the clock moved by no whole number of steps.
    pub(crate) executions: Option<f64>,
    /// Sample intervals between the two.
    pub(crate) intervals: usize,
    /// The thread's own time in them, in mean intervals.
    pub(crate) length: f64,
    /// Those of them that end in the clock's region.
    pub(crate) inside: usize,
    /// The thread's own time in those, in mean intervals.
    pub(crate) length_inside: f64,
    pub(crate) elapsed_ns: f64,
}

impl Delta {
    /// Executions, where the clock ran forwards, or stood still.
    pub(super) fn forwards(&self) -> Option<f64> {
        self.executions.filter(|executions| *executions >= 0.0)
    }
}

#[cfg(test)]
impl Delta {
    /// Between a sample and the one before it, one of 1 ms.
    pub(crate) fn next(seen: usize, executions: f64) -> Self {
        let executions = Some(executions);
        let (length, length_inside) = (1.0, 1.0);
        Self { before: seen - 1, seen, executions, intervals: 1, length, inside: 1, length_inside, elapsed_ns: 1e6 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_may_be_far_apart_where_the_clock_does_not_fall_back() {
        let after = |intervals: usize, executions| Delta { intervals, ..Delta::next(1, executions) };
        let kept = |pairs: &[Delta]| {
            let close = Readings::default().with(pairs.to_vec()).close();
            close.pairs.iter().map(|pair| pair.intervals).max()
        };
        let on = [after(1, 1.0), after(5, 9.0), after(100, 40.0)];
        assert_eq!(kept(&on), Some(5), "three tell little");
        assert_eq!(kept(&on.repeat(20)), Some(100));
        let anew = [after(1, 1.0), after(5, -9.0), after(100, 3.0)];
        assert_eq!(kept(&anew.repeat(20)), Some(5));
    }
}
