//! Which operand touched which object how often: block counts times where the operands were seen.

use std::collections::BTreeMap;

use crate::address_space::Place;
use crate::address_space::objects::ObjectId;
use crate::attribution::OperandId;
use crate::attribution::operand_addresses::How;
use crate::attribution::{Observed, OperandAddress};
use crate::frequency::Counts;
use crate::frequency::counter_deltas::delta::Count;
use crate::traffic::placement::{ByObject, Placements};
use crate::traffic::string_rounds::StringRounds;

/// Executions of one operand on one object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperandAccesses {
    pub(crate) operand: OperandId,
    pub(crate) object: ObjectId,
    pub(crate) executions: f64,
}

/// All operands of blocks that ran.
#[derive(Debug, Default)]
pub(crate) struct AllAccesses {
    pub(crate) known: Vec<OperandAccesses>,
    /// Executions of operands whose object no sample shows.
    pub(crate) unseen: f64,
    /// Executions of operands on the stack or on nothing known.
    pub(crate) elsewhere: f64,
}

impl AllAccesses {
    /// Adds executions of an operand, shared out as it was seen.
    fn add(&mut self, operand: OperandId, executions: f64, by_object: &ByObject) {
        let total: f64 = by_object.values().sum();
        if executions < 0.5 {
            return;
        }
        if total <= 0.0 {
            self.unseen += executions;
            return;
        }
        for (object, part) in by_object {
            let executions = executions * part / total;
            match object {
                Some(object) => self.known.push(OperandAccesses { operand, object: *object, executions }),
                None => self.elsewhere += executions,
            }
        }
    }
}

/// An operand that was seen in so many windows is told by them; else by whichever saw it more often, they or samples.
/// Assumed.
const ENOUGH_WINDOWS: usize = 4;

/// Spreads the executions of each operand over the objects it was seen on.
pub(crate) fn tally(
    observed: &Observed,
    counts: &Counts,
    placements: &Placements,
    strings: &StringRounds,
) -> AllAccesses {
    let operand_addresses = by_operand(&observed.operand_addresses);
    let mut tallies = AllAccesses::default();
    for (&id, blocks) in &counts.blocks {
        let function = &observed.code.functions[id].function;
        for (instruction, content) in function.instructions.iter().enumerate() {
            let block = function.block_of(instruction);
            let executions = blocks.executions[block];
            let clock = function.loops_around(block).find_map(|around| counts.by_loop.get(&(id, around)));
            for operand in 0..content.operands.len() {
                let operand = OperandId { function: id, instruction, operand };
                let executions = strings.accesses(operand, executions);
                let seen = operand_addresses.get(&operand).map_or(&[][..], Vec::as_slice);
                if let (Some(Place::Object(object, _)), [], 0.5..) = (observed.fixed.get(&operand), seen, executions) {
                    tallies.known.push(OperandAccesses { operand, object: *object, executions });
                    continue;
                }
                match placements.shown(operand) {
                    Some((windows, shown)) if windows >= ENOUGH_WINDOWS.min(seen.len()) => {
                        tallies.add(operand, executions, shown);
                    }
                    _ => spread(&mut tallies, operand, executions, seen, clock),
                }
            }
        }
    }
    tallies
}

fn by_operand(operand_addresses: &[OperandAddress]) -> BTreeMap<OperandId, Vec<&OperandAddress>> {
    let mut sorted: BTreeMap<OperandId, Vec<&OperandAddress>> = BTreeMap::new();
    for operand_address in operand_addresses {
        sorted.entry(operand_address.id()).or_default().push(operand_address);
    }
    for list in sorted.values_mut() {
        // Guesses only count where nothing better is known.
        if let Some(best) = list.iter().map(|operand_address| operand_address.how).min() {
            list.retain(|operand_address| operand_address.how == best || best == How::Near);
        }
    }
    sorted
}

fn spread(
    tallies: &mut AllAccesses,
    operand: OperandId,
    executions: f64,
    seen: &[&OperandAddress],
    clock: Option<&Count>,
) {
    if executions < 0.5 {
        return;
    }
    // One that mostly stands still between samples says nothing of the rounds of loops inside.
    let clock = clock.filter(|count| count.executions >= count.visible as f64);
    let mean = clock.map_or(1.0, |count| count.executions / count.visible.max(1) as f64);
    let weight = |seen: usize| clock.and_then(|count| count.by_sample.get(&seen)).copied().unwrap_or(mean);
    let mut by_place = ByObject::new();
    for operand_address in seen {
        let object = match operand_address.place {
            Place::Object(object, _) => Some(object),
            Place::Stack | Place::Nowhere => None,
        };
        *by_place.entry(object).or_default() += weight(operand_address.seen);
    }
    tallies.add(operand, executions, &by_place);
}

#[cfg(test)]
mod tests {
    use tierloom_binary::code::FunctionId;

    use super::*;
    use tierloom_binary::cfg::BlockId;

    fn operand_address(seen: usize, place: Place) -> OperandAddress {
        OperandAddress { seen, function: FunctionId::new(0), instruction: 0, operand: 0, place, how: How::Replayed }
    }

    /// Executions of an operand by object, and those that no sample shows.
    fn spread_by(clock: &Count, seen: &[OperandAddress]) -> (Vec<(usize, f64)>, f64) {
        let mut tallies = AllAccesses::default();
        spread(&mut tallies, seen[0].id(), 100.0, &seen.iter().collect::<Vec<_>>(), Some(clock));
        (tallies.known.iter().map(|tally| (tally.object.index(), tally.executions)).collect(), tallies.unseen)
    }

    #[test]
    fn samples_weigh_as_much_as_ran_since_the_one_before_where_a_clock_tells() {
        let seen = [
            operand_address(1, Place::Object(ObjectId::new(7), 0)),
            operand_address(2, Place::Object(ObjectId::new(9), 0)),
        ];
        let clock = |executions, by_sample| Count {
            function: FunctionId::new(0),
            block: BlockId::new(0),
            executions,
            relative_error: 0.0,
            visible: 10,
            trusted: 10,
            backward: 0.0,
            by_sample,
        };
        let fast = clock(400.0, BTreeMap::from([(1, 30.0), (2, 10.0)]));
        assert_eq!(spread_by(&fast, &seen), (vec![(7, 75.0), (9, 25.0)], 0.0));
        let slow = clock(2.0, BTreeMap::from([(1, 0.0), (2, 0.0)]));
        assert_eq!(spread_by(&slow, &seen), (vec![(7, 50.0), (9, 50.0)], 0.0));
    }
}
