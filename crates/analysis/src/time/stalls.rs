//! How long each object was waited for: what blame says, and what it cannot know.
//!
//! Samples blame the first of several misses that a core has in flight, so among independent misses of
//! one loop the first in program order gets too much. Where a clock counts a loop whose misses do not
//! depend on each other, its waiting is shared out anew among their instructions, by executions times the
//! probability to miss. Which object the blamed instruction waited for is known by its address. Both shares
//! are kept: the truth lies between them more often than not, so their difference widens the interval that is
//! reported.

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

/// Loops with independent misses: the instructions that they overlap in, two or more.
pub(crate) struct Overlaps(BTreeMap<Place, Vec<Member>>);

/// An instruction whose misses overlap with those of others.
#[derive(Debug, Clone, PartialEq)]
struct Member {
    /// Its position in the function.
    instruction: usize,
    /// The part of the loop's waiting that it causes.
    part: f64,
    /// The objects that it misses, with the shares of its misses; sums to 1.
    objects: BTreeMap<ObjectId, f64>,
}

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
        let misses = |tally: &OperandAccesses| {
            let row = traffic.rows.get(&(tally.object, traffic.patterns[&tally.operand]));
            (tally.operand.instruction, tally.object, tally.executions * row.map_or(0.0, |row| row.miss))
        };
        let overlapping = missing.into_iter().filter_map(|(place, tallies)| {
            let members = members(tallies.into_iter().map(misses));
            (members.len() > 1).then_some((place, members))
        });
        Self(overlapping.collect())
    }

    /// Waiting by object in some of the samples.
    pub(crate) fn waiting(&self, observed: &Observed, seen: &[AttributedSample]) -> BTreeMap<ObjectId, Waited> {
        let mut waiting: BTreeMap<ObjectId, Waited> = BTreeMap::new();
        for seen in seen {
            let Attribution::Object { object, .. } = seen.verdict else { continue };
            waiting.entry(object).or_default().blamed += 1;
            let place = seen.at.and_then(|(function, at)| inside(observed, function, at));
            let members = place.and_then(|place| self.0.get(&place)).map_or(&[][..], Vec::as_slice);
            for (object, part) in shared_out(members, seen.waited, object) {
                waiting.entry(object).or_default().shared += part;
            }
        }
        waiting
    }
}

/// Instructions with misses, from the misses by instruction and object.
fn members(misses: impl Iterator<Item = (usize, ObjectId, f64)>) -> Vec<Member> {
    let mut all: BTreeMap<usize, BTreeMap<ObjectId, f64>> = BTreeMap::new();
    for (instruction, object, misses) in misses.filter(|(.., misses)| *misses > 0.0) {
        *all.entry(instruction).or_default().entry(object).or_default() += misses;
    }
    let total: f64 = all.values().flat_map(BTreeMap::values).sum();
    let member = |(instruction, objects): (usize, BTreeMap<ObjectId, f64>)| {
        let own: f64 = objects.values().sum();
        let objects = objects.into_iter().map(|(object, misses)| (object, misses / own)).collect();
        Member { instruction, part: own / total, objects }
    };
    all.into_iter().map(member).collect()
}

/// A sample that blames an object, shared out over the members if it waited at one of them.
fn shared_out(members: &[Member], waited: Option<usize>, object: ObjectId) -> Vec<(ObjectId, f64)> {
    if !members.iter().any(|member| Some(member.instruction) == waited) {
        return vec![(object, 1.0)];
    }
    let parts = |member: &Member| -> Vec<(ObjectId, f64)> {
        if Some(member.instruction) == waited {
            return vec![(object, member.part)];
        }
        member.objects.iter().map(|(object, share)| (*object, member.part * share)).collect()
    };
    members.iter().flat_map(parts).collect()
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
    fn overlapping_instructions_share_waiting_by_their_misses() {
        let [first, second, third] = [0, 1, 2].map(ObjectId::from);
        let members = members([(4, first, 30.0), (9, second, 40.0), (9, third, 10.0)].into_iter());
        let shared: BTreeMap<_, _> = shared_out(&members, Some(4), first).into_iter().collect();
        assert_eq!(shared, BTreeMap::from([(first, 0.375), (second, 0.5), (third, 0.125)]));
        // Which object the blamed instruction waited for, its address tells.
        let shared: BTreeMap<_, _> = shared_out(&members, Some(9), third).into_iter().collect();
        assert_eq!(shared, BTreeMap::from([(first, 0.375), (third, 0.625)]));
    }

    /// A gather goes over one vector after the other, and misses most in the one that it has seen least of.
    #[test]
    fn objects_of_one_instruction_do_not_overlap() {
        let [seldom, often] = [0, 1].map(ObjectId::from);
        let members = members([(4, seldom, 30.0), (4, often, 1.0)].into_iter());
        assert_eq!(members.len(), 1);
        assert_eq!(shared_out(&[], Some(4), often), [(often, 1.0)]);
        assert_eq!(shared_out(&members, None, often), [(often, 1.0)], "where it waited is not known");
    }

    #[test]
    fn without_overlap_blame_stays() {
        let waited = Waited { blamed: 100, shared: 100.0 };
        assert_eq!(waited.share(1000.0), share(100.0, 1000.0));
    }
}
