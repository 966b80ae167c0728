//! What clocks anchor: which of them can be believed, what they say of their blocks, and which other
//! blocks follow from them.

use std::collections::BTreeMap;

use crate::attribution::Observed;
use crate::frequency::counter_deltas::delta::Count;
use crate::frequency::flow_network::Observation;
use crate::frequency::trip_count::TripCounts;
use index_vec::{IndexSlice, IndexVec};
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::code::FunctionId;

/// A clock that runs backwards in less than this share of the intervals in which one that is set anew
/// would carries over more often than it is set anew, so that the usual pace is that of carrying over.
/// Derived: a median belongs to the majority.
const CARRIED_SHARE: f64 = 0.5;
/// Readings of a clock that is set anew show instances where they are this part of one apart, or less. Assumed.
pub(crate) const WITHIN: f64 = 0.4;
/// A clock that runs backwards in more than this share of the intervals is set anew by its loop; in fewer
/// a register may just have held something else. Assumed: half and double moved none of 16 recordings by .1
/// points of TVD.
const SET_ANEW: f64 = 0.05;
/// Clocks contradict each other where the solution is this factor, and this many standard deviations, off
/// one of them: no clock that is right at all is off by so much. Assumed.
pub(crate) const CONTRADICTION: f64 = 2.0;
const FAR_APART: f64 = 10.0;

/// A clock that its loop sets anew, read less than about twice per instance of the loop, shows
/// differences of unrelated instances. That it `restarts` is known from the code, or else seen where it runs
/// backwards.
pub(crate) fn aliased(observed: &Observed, count: &Count, restarts: bool, trips: &TripCounts) -> bool {
    let function = &observed.code.functions[count.function].function;
    let Some(inside) = function.blocks[count.block].inner_loop else { return false };
    let mean = count.executions / count.visible.max(1) as f64;
    let Some(trip) = trips.get(&(count.function, inside)) else { return false };
    // A clock that is set anew runs backwards once an instance, in mean / rounds of the intervals, or
    // in half of them if instances are shorter. One that does so far less carries over from instance
    // to instance: the address in an array that a loop continues where the call before left off.
    let carries_over = count.backward < CARRIED_SHARE * (mean / trip.rounds).min(0.5);
    let reset = count.backward > SET_ANEW && !carries_over || restarts;
    reset && (mean > WITHIN * trip.rounds || count.backward > 3.0 * mean / trip.rounds + 0.05)
}

pub(crate) fn best_clocks(observed: &Observed, clocks: &[Count]) -> BTreeMap<(FunctionId, LoopId), Count> {
    let mut best: BTreeMap<(FunctionId, LoopId), Count> = BTreeMap::new();
    for count in clocks {
        let function = &observed.code.functions[count.function].function;
        let Some(inside) = function.blocks[count.block].inner_loop else { continue };
        let known = best.entry((count.function, inside)).or_insert_with(|| count.clone());
        if count.trusted > known.trusted {
            *known = count.clone();
        }
    }
    best
}

/// One clock for each block. Addresses that run on from one instance of a loop to the next may skip
/// memory in between and then show too much, never too little: of clocks that are about equally good
/// the one that shows least is right. A clock that is set anew where others are not shows too little.
fn of_blocks<'a>(clocks: &[&'a Count]) -> Vec<&'a Count> {
    let mut by_block: BTreeMap<BlockId, Vec<&Count>> = BTreeMap::new();
    for count in clocks {
        by_block.entry(count.block).or_default().push(count);
    }
    let least = |all: Vec<&'a Count>| {
        let most = all.iter().map(|count| count.trusted).max().unwrap_or(0);
        let steadiest = all.iter().map(|count| count.backward).fold(f64::INFINITY, f64::min);
        let is_good = |count: &&Count| 10 * count.trusted >= 7 * most && count.backward <= steadiest + SET_ANEW;
        let good = all.into_iter().filter(is_good);
        good.min_by(|left, right| left.executions.total_cmp(&right.executions))
    };
    by_block.into_values().filter_map(least).collect()
}

/// How far off a clock may be.
fn deviation(count: &Count) -> f64 {
    count.relative_error * count.executions + 0.5
}

/// What clocks say of their blocks.
pub(crate) fn by_clocks(clocks: &[&Count]) -> Vec<Observation> {
    let observed = |count: &Count| Observation::block(count.block, count.executions, deviation(count));
    of_blocks(clocks).into_iter().map(observed).collect()
}

/// The clock of a function to do without, where what was solved with all of them is far from one: then
/// they contradict each other, and the one that ran backwards most is set anew unseen.
pub(crate) fn contradicting<'a>(clocks: &[&'a Count], executions: &IndexSlice<BlockId, [f64]>) -> Option<&'a Count> {
    let used = of_blocks(clocks);
    let missed = |count: &&Count| {
        let (said, solved) = (count.executions, executions[count.block]);
        let apart = (said - solved).abs() > FAR_APART * deviation(count);
        apart && said.max(solved) > CONTRADICTION * said.min(solved)
    };
    if used.len() < 2 || !used.iter().any(missed) {
        return None;
    }
    let worse = |left: &&&Count, right: &&&Count| {
        left.backward.total_cmp(&right.backward).then(right.trusted.cmp(&left.trusted))
    };
    used.iter().max_by(worse).copied()
}

/// Which blocks are counted: by a clock, or by the rounds of their loop if what is around it is counted.
pub(crate) fn counted(
    function: &Function,
    clocks: &[&Count],
    has_trip: impl Fn(LoopId) -> bool,
    entered: bool,
) -> IndexVec<BlockId, bool> {
    let hard = |around: LoopId| clocks.iter().any(|c| function.blocks[c.block].inner_loop == Some(around));
    let counted = |block: BlockId| {
        let mut within = block;
        for around in function.loops_around(block) {
            if clocks.iter().any(|count| count.block == within) {
                return true;
            }
            if !function.in_every_round(around, within) {
                return false;
            }
            if hard(around) {
                return true;
            }
            if !has_trip(around) {
                return false;
            }
            within = function.loops[around].header;
        }
        entered && function.in_every_call(within)
    };
    function.blocks.indices().map(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use index_vec::index_vec;

    fn clock(block: usize, executions: f64, backward: f64) -> Count {
        Count {
            function: FunctionId::new(0),
            block: BlockId::new(block),
            executions,
            relative_error: 0.01,
            visible: 100,
            trusted: 90,
            backward,
            by_sample: BTreeMap::new(),
        }
    }

    #[test]
    fn of_clocks_that_contradict_each_other_the_one_that_falls_back_goes() {
        let (good, bad) = (clock(0, 1e5, 0.0), clock(1, 200.0, 0.2));
        let solved = index_vec![300.0, 210.0];
        assert_eq!(contradicting(&[&good, &bad], &solved).map(|count| count.block), Some(BlockId::new(1)));
        assert!(contradicting(&[&good, &bad], &index_vec![1e5, 200.0]).is_none(), "both hold");
        assert!(contradicting(&[&good], &solved).is_none(), "nothing to contradict it");
    }

    #[test]
    fn of_good_clocks_of_a_block_the_one_that_shows_least_is_right() {
        let (more, less) = (clock(0, 1.2e5, 0.0), clock(0, 1e5, 0.0));
        assert_eq!(by_clocks(&[&more, &less]), [Observation::block(BlockId::new(0), 1e5, 1000.5)]);
        let set_anew = clock(0, 1.2e4, 0.29);
        assert_eq!(by_clocks(&[&set_anew, &less, &more]), [Observation::block(BlockId::new(0), 1e5, 1000.5)]);
    }
}
