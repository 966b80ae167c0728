//! What is likely where nothing was measured: which way branches go, how often loops are entered.
//!
//! Soft knowledge for the fit in `frequency`: it decides only what clocks, trips and samples leave open.

use std::collections::BTreeMap;

use crate::frequency::branches::{BranchTable, Jumps};
use crate::frequency::counter_deltas::delta::Count;
use crate::frequency::flow_network::{Observation, edge};
use crate::frequency::trip_count::{TripCounts, rounds_of_nest};
use index_vec::IndexSlice;
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::code::FunctionId;

/// How often a loop is entered where it could be passed by. Published: Wu and Larus, *Static branch
/// frequency and program profile analysis* (1994), table 1, loop branch heuristic.
const ENTERED: f64 = 0.88;

/// No guess is surer than this: six guards one in another leave 94 % of what is inside. Assumed; 0.95 left 74 %.
const SUREST: f64 = 0.99;

/// Where samples fell into one side of a branch, they tell how often it ran, and rules of thumb are this
/// much weaker. Assumed: double moved none of 16 recordings by .1 points of TVD, half moved one (`adi` at -O3,
/// 1.7 for the worse).
const TOLD: f64 = 3.0;
const TELLING_SAMPLES: f64 = 8.0;

/// Without better knowledge both ways of a branch are as likely, but a loop is rather entered than
/// passed by (Ball and Larus, *Branch prediction for free*, 1993, loop header heuristic). How often a
/// loop is left is not a branch's business. `size` is about how often a block runs that leads to a loop of so many
/// rounds.
pub(crate) fn branches(
    function: &Function,
    size: impl Fn(BlockId, f64) -> f64,
    samples: &IndexSlice<BlockId, [f64]>,
    trips: &TripCounts,
    outcomes: &BranchTable,
    id_of_function: FunctionId,
) -> Vec<Observation> {
    let heads = |to: BlockId| function.blocks[to].inner_loop.filter(|id| function.loops[*id].header == to);
    let entered = |block: BlockId| {
        heads(block).or_else(|| match function.blocks[block].successors.as_slice() {
            [next] => heads(*next),
            _ => None,
        })
    };
    let rounds =
        |block: BlockId| entered(block).map_or(1.0, |inside| rounds_of_nest(function, id_of_function, inside, trips));
    let entry = |block: BlockId| {
        let inside = entered(block)?;
        // If rounds end by chance, a loop of n rounds is passed by once in n + 1 times; the less they vary,
        // the less often. A loop with a number of rounds that the code fixes needs no guard: the branch before
        // it asks something else.
        match trips.get(&(id_of_function, inside)) {
            Some(trip) => trip.variance.map(|variance| (trip.rounds / (trip.rounds + variance)).min(SUREST)),
            None => Some(ENTERED),
        }
    };
    let mut observations = Vec::new();
    for (id, block) in function.blocks.iter_enumerated() {
        let [one, other] = block.successors[..] else { continue };
        if [one, other].iter().any(|to| function.is_dead_end(id, *to)) {
            continue;
        }
        let known = size(id, rounds(one).max(rounds(other)));
        let edges = |share: f64| vec![(edge(id, one), 1.0 - share), (edge(id, other), -share)];
        // Where the rounds of a loop are known, that is how often it ends. Samples tell that by time, and those
        // that wait for the first line of a walk are never in its last round.
        let ends = block.inner_loop.is_some_and(|around| {
            trips.contains_key(&(id_of_function, around))
                && function.loops[around].contains(one) != function.loops[around].contains(other)
        });
        if let Some(&Jumps { share, deviation }) = outcomes.get(&(id_of_function, id)).filter(|_| !ends) {
            observations.push(Observation {
                blocks: Vec::new(),
                edges: edges(share),
                value: 0.0,
                deviation: deviation * known,
            });
            continue;
        }
        let stays = |to: BlockId| match block.inner_loop {
            Some(around) => function.loops[around].contains(to) && function.loops[around].header != to,
            None => true,
        };
        if !stays(one) || !stays(other) {
            continue;
        }
        // What both ways come to is behind the branch, not on one of its sides.
        let (one_behind, other_behind) = (leads(function, other, one, id), leads(function, one, other, id));
        let share = match (entry(one).filter(|_| !one_behind), entry(other).filter(|_| !other_behind)) {
            (Some(entered), None) => entered,
            (None, Some(entered)) => 1.0 - entered,
            (Some(entered), Some(instead)) => {
                let (odds, against) = (entered / (1.0 - entered), instead / (1.0 - instead));
                odds / (odds + against)
            }
            (None, None) => 0.5,
        };
        let sampled = |side: BlockId, behind: bool| !behind && samples[side] >= TELLING_SAMPLES;
        let told = sampled(one, one_behind) || sampled(other, other_behind);
        let doubt = share.min(1.0 - share).clamp(0.05, 0.3) * if told { TOLD } else { 1.0 };
        observations.push(Observation {
            blocks: Vec::new(),
            edges: edges(share),
            value: 0.0,
            deviation: doubt * known,
        });
    }
    observations
}

/// Whether control can get from one block to another without a new round of the loop around `branch`.
fn leads(function: &Function, from: BlockId, to: BlockId, branch: BlockId) -> bool {
    let header = function.blocks[branch].inner_loop.map(|around| function.loops[around].header);
    function.reaches(vec![from], |block| block == to, |block| Some(block) != header)
}

/// A loop that clocks follow from sample to sample is not entered much more often than sampled, unless its rounds are known:
/// a clock may run on from one instance to the next, and then the rounds tell how many there were.
pub(crate) fn outermost(function: &Function, clocks: &[&Count], has_trip: impl Fn(LoopId) -> bool) -> Vec<Observation> {
    let mut seen: BTreeMap<LoopId, usize> = BTreeMap::new();
    for count in clocks {
        let Some(inside) = function.blocks[count.block].inner_loop else { continue };
        if function.loops[inside].parent.is_none() && !has_trip(inside) {
            let most = seen.entry(inside).or_default();
            *most = (*most).max(count.visible);
        }
    }
    let entered = |(inside, visible): (LoopId, usize)| Observation {
        blocks: Vec::new(),
        edges: function.entries(inside).map(|from| (edge(from, function.loops[inside].header), 1.0)).collect(),
        value: 0.0,
        deviation: 10.0 * visible as f64,
    };
    seen.into_iter().map(entered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::branches::BranchCounts;
    use crate::frequency::nest::NEST;
    use crate::frequency::trip_count::TripCount;

    const ID: FunctionId = FunctionId::from_raw_unchecked(0);

    // 0: test rsi,rsi; je c | 5: xor eax,eax | 7: inc rax; cmp rax,rsi; (jne 7) | c: ret
    const GUARDED: &[u8] =
        &[0x48, 0x85, 0xf6, 0x74, 0x0a, 0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xf0, 0x75, 0xf8, 0xc3];

    #[test]
    fn the_way_into_a_loop_is_known_as_well_as_its_rounds_ask_for() {
        let function = Function::decode(GUARDED, 0x1000);
        let inside = function.blocks[2].inner_loop.unwrap();
        let trips =
            BTreeMap::from([((ID, inside), TripCount { rounds: 5e5, relative_error: 0.001, variance: Some(0.0) })]);
        let size = |_, rounds: f64| 1e4 / rounds;
        let told = branches(&function, size, IndexSlice::new(&[0.0; 4]), &trips, &BranchTable::new(), ID);
        assert_eq!(told.len(), 1, "the guard; the end of the rounds is known");
        assert!((told[0].deviation - 0.05 * 1e4 / 5e5).abs() < 1e-9, "{}", told[0].deviation);
    }

    #[test]
    fn a_loop_whose_rounds_are_known_may_be_entered_more_often_than_sampled() {
        let function = Function::decode(NEST, 0x1000);
        let clock = Count {
            function: ID,
            block: function.loops.iter().find(|natural| natural.parent.is_none()).unwrap().header,
            executions: 4e8,
            relative_error: 0.01,
            visible: 1300,
            trusted: 1100,
            backward: 0.1,
            by_sample: BTreeMap::new(),
        };
        let told = |known: bool| outermost(&function, &[&clock], |_| known).len();
        assert_eq!((told(false), told(true)), (1, 0));
    }

    #[test]
    fn how_often_a_loop_ends_is_told_by_its_rounds_where_they_are_known() {
        let function = Function::decode(NEST, 0x1000);
        let inner = function.blocks[2].inner_loop.unwrap();
        let never_ends = BranchCounts { taken: 60.0, ..BranchCounts::default() };
        let outcomes = BranchTable::from([((ID, BlockId::new(2)), never_ends.share())]);
        let told = |trips| branches(&function, |_, _| 1e6, IndexSlice::new(&[0.0; 5]), &trips, &outcomes, ID).len();
        let trip = TripCount { rounds: 25.0, relative_error: 0.001, variance: None };
        assert_eq!((told(BTreeMap::new()), told(BTreeMap::from([((ID, inner), trip)]))), (1, 0));
    }
}
