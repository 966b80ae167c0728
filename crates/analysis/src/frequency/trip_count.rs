//! How often loops go round: what `renewal` finds and others use.

use std::collections::BTreeMap;

use tierloom_binary::cfg::LoopId;
use tierloom_binary::code::FunctionId;

/// How often a loop goes round each time it is entered, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TripCount {
    pub(crate) rounds: f64,
    /// One standard deviation, relative.
    pub(crate) relative_error: f64,
    /// Variance over instances, relative to the square of the mean: 1 where rounds end by chance. `None`
    /// where the code alone tells the rounds: what is asked before the loop is then something else.
    pub(crate) variance: Option<f64>,
}

/// Of the loops of all functions, as far as they can be had.
pub(crate) type TripCounts = BTreeMap<(FunctionId, LoopId), TripCount>;
