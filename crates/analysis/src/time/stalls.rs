//! How long each object was waited for: what blame says, and what it cannot know.
//!
//! Samples blame the first of several misses that a core has in flight, so among independent misses of
//! one loop the first in program order gets too much. Where a clock counts a loop whose misses do not
//! depend on each other, its waiting is shared out anew, by executions times the probability to
//! miss. Both shares are kept: the truth lies between them more often than not, so their difference
//! widens the interval that is reported.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_model::{Pattern, Share};

use crate::address_space::objects::ObjectId;
use crate::attribution::{AttributedSample, Attribution, Observed};
use crate::confidence::share;
use crate::frequency::Counts;
use crate::traffic::Traffics;
use crate::traffic::accesses::OperandAccesses;
use tierloom_binary::cfg::LoopId;
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::dependence::sources_of;

type Place = (FunctionId, LoopId);

/// Loops with independent misses: by object, the part of their waiting that it causes; sums to 1.
pub(crate) struct Overlaps(BTreeMap<Place, BTreeMap<ObjectId, f64>>);

/// Waiting of one object in samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Waited {
    /// Samples that blame it.
    pub(crate) blamed: usize,
    /// The same after overlapping misses have been shared out.
    pub(crate) shared: f64,
}

impl Waited {
    /// Share of so many samples; the interval covers that of either way to count.
    pub(crate) fn share(&self, samples: f64) -> Share {
        let (blamed, shared) = (share(self.blamed as f64, samples), share(self.shared, samples));
        Share { share: shared.share, low: shared.low.min(blamed.low), high: shared.high.max(blamed.high) }
    }
}

impl Overlaps {
    pub(crate) fn find(observed: &Observed, counts: &Counts, tallies: &[OperandAccesses], traffic: &Traffics) -> Self {
        let mut missing: BTreeMap<Place, Vec<&OperandAccesses>> = BTreeMap::new();
        for tally in tallies {
            let waits = matches!(traffic.patterns[&tally.operand], Pattern::Random | Pattern::Strided);
            if let Some(place) = inside(observed, tally.operand.function, tally.operand.instruction).filter(|_| waits) {
                missing.entry(place).or_default().push(tally);
            }
        }
        missing.retain(|place, members| counts.by_loop.contains_key(place) && independent(observed, *place, members));
        let part = |members: Vec<&OperandAccesses>| {
            let mut parts: BTreeMap<ObjectId, f64> = BTreeMap::new();
            for tally in members {
                let row = traffic.rows.get(&(tally.object, traffic.patterns[&tally.operand]));
                *parts.entry(tally.object).or_default() += tally.executions * row.map_or(0.0, |row| row.miss);
            }
            let total: f64 = parts.values().sum();
            for part in parts.values_mut() {
                *part /= total;
            }
            (parts.len() > 1 && total > 0.0).then_some(parts)
        };
        Self(missing.into_iter().filter_map(|(place, members)| Some((place, part(members)?))).collect())
    }

    /// Waiting by object in some of the samples.
    pub(crate) fn waiting(&self, observed: &Observed, seen: &[AttributedSample]) -> BTreeMap<ObjectId, Waited> {
        let mut waiting: BTreeMap<ObjectId, Waited> = BTreeMap::new();
        for seen in seen {
            let Attribution::Object { object, .. } = seen.verdict else { continue };
            waiting.entry(object).or_default().blamed += 1;
            let place = seen.at.and_then(|(function, at)| inside(observed, function, at));
            match place.and_then(|place| self.0.get(&place)).filter(|parts| parts.contains_key(&object)) {
                Some(parts) => {
                    for (other, part) in parts {
                        waiting.entry(*other).or_default().shared += part;
                    }
                }
                None => waiting.entry(object).or_default().shared += 1.0,
            }
        }
        waiting
    }
}

fn inside(observed: &Observed, id: FunctionId, at: usize) -> Option<Place> {
    let function = &observed.code.functions[id].function;
    Some((id, function.blocks[function.block_of(at)].inner_loop?))
}

/// Whether no address of the members is made of what another one of them loads.
fn independent(observed: &Observed, (id, inside): Place, members: &[&OperandAccesses]) -> bool {
    let function = &observed.code.functions[id].function;
    let positions: BTreeSet<usize> = members.iter().map(|tally| tally.operand.instruction).collect();
    let loaded = |at: usize| &function.instructions[at].written;
    positions.iter().all(|at| {
        let operands = function.instructions[*at].operands.iter();
        let address = operands.flat_map(|operand| operand.registers().iter()).collect();
        let from = sources_of(function, inside, address);
        positions.iter().all(|other| loaded(*other).iter().all(|register| !from.contains(register)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_covers_both_ways_to_count() {
        let waited = Waited { blamed: 800, shared: 600.0 };
        let share = waited.share(1000.0);
        assert!((share.share - 0.6).abs() < 1e-9);
        assert!(share.low < 0.58 && share.high > 0.81, "{share:?}");
    }

    #[test]
    fn without_overlap_blame_stays() {
        let waited = Waited { blamed: 100, shared: 100.0 };
        assert_eq!(waited.share(1000.0), share(100.0, 1000.0));
    }
}
