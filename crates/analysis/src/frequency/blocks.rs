//! Executions of the blocks of a function.

use std::collections::BTreeMap;

use index_vec::IndexVec;
use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::FunctionId;
use tierloom_model::CountSource;

/// One standard deviation of a count that nothing but time, or another run, tells of, as a part of it. Assumed.
pub(super) const GUESSED: f64 = 1.5;

/// Of one function.
#[derive(Debug, Clone)]
pub(crate) struct BlockCounts {
    pub(crate) executions: IndexVec<BlockId, f64>,
    /// Whether clocks, rounds and calls give the count; else it follows from samples.
    pub(crate) counted: IndexVec<BlockId, bool>,
    /// One standard deviation of the executions, if all that gave them is as good as it says.
    pub(crate) deviations: IndexVec<BlockId, f64>,
    pub(crate) source: CountSource,
}

impl BlockCounts {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.counted == other.counted
            && self.executions.iter().zip(&other.executions).all(|(left, right)| is_same(*left, *right))
    }
}

/// Counts that differ by less than any source of them does.
pub(super) fn is_same(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-3 * left.max(right) + 0.5
}

/// Results so far.
pub(crate) type Blocks = BTreeMap<FunctionId, BlockCounts>;
