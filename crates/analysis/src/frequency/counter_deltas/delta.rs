//! What a clock showed, sample by sample, and the count that it comes to.

use std::collections::BTreeMap;

use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::FunctionId;

/// Samples that may lie between the two of a pair without seeing the clock, unless an outer clock tells
/// what happened in between.
const LONGEST_GAP: usize = 8;
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
    /// Samples in its region, whether they see it or not: a clock that waits on the stack is not seen.
    pub(crate) around: Vec<usize>,
    /// Samples that see it.
    pub(crate) seen: Vec<usize>,
    pub(crate) pairs: Vec<Delta>,
    /// By thread: samples in its region.
    pub(super) inside: BTreeMap<usize, usize>,
}

impl Readings {
    /// Without the pairs that lie too far apart to tell that the clock was not set anew in between.
    pub(super) fn close(&self) -> Self {
        let close = self.pairs.iter().filter(|pair| pair.intervals <= LONGEST_GAP);
        self.with(close.copied().collect())
    }

    /// The same samples with other pairs.
    pub(crate) fn with(&self, pairs: Vec<Delta>) -> Self {
        Self { around: self.around.clone(), seen: self.seen.clone(), pairs, inside: self.inside.clone() }
    }
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
    /// Those of them that end in the clock's region.
    pub(crate) inside: usize,
    pub(crate) elapsed_ns: f64,
}
