//! Where operands point that no sample shows, in code whose executions were counted. Elsewhere how often such code runs is a
//! guess, and it is not worth the time to look.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_binary::cfg::Function;
use tierloom_binary::code::{Code, FunctionId};
use tierloom_binary::dataflow::origins::Origin;
use tierloom_binary::dataflow::state::State;
use tierloom_binary::instruction::RegisterSet;
use tierloom_recording::{Fault, Sample, register};

use crate::address_space::objects::ObjectId;
use crate::address_space::{AddressSpaces, Place};
use crate::attribution::entered::Entered;
use crate::attribution::neighbours::Neighbour;
use crate::attribution::operand::{ByObject, OperandId};

/// What was seen of them.
#[derive(Debug, Default)]
pub(crate) struct Unsampled {
    /// By the registers of samples in the block and in those around it.
    around: BTreeMap<OperandId, ByObject>,
    /// At page faults.
    faulted: BTreeMap<OperandId, ByObject>,
    pub(crate) entered: Entered,
}

impl Unsampled {
    /// Where an operand points whose base is made of this, best told first.
    pub(crate) fn shown(&self, operand: OperandId, origin: Option<Origin>) -> Option<&ByObject> {
        let by_entry = || match origin? {
            Origin::Entry(register) => self.entered.shown(operand.function, register),
            Origin::Stack => None,
        };
        self.around.get(&operand).or_else(|| self.faulted.get(&operand)).or_else(by_entry)
    }

    /// Notes operands around the block of a sample, but for those that samples show.
    pub(super) fn note_neighbours(
        &mut self,
        spaces: &mut AddressSpaces<'_>,
        sample: &Sample,
        (function, around): (FunctionId, Vec<Neighbour>),
        shown: &BTreeSet<OperandId>,
    ) {
        let stack_pointer = sample.registers[register::SP];
        for Neighbour { instruction, operand, address } in around {
            let operand = OperandId { function, instruction, operand };
            if shown.contains(&operand) {
                continue;
            }
            let place = spaces.locate(sample.pid, address, stack_pointer);
            if place != Place::Nowhere {
                *self.around.entry(operand).or_default().entry(place.object()).or_default() += 1.0;
            }
        }
    }

    /// Notes the operand that touched memory of an object first, where its instruction has no other: code that fills memory
    /// for a moment takes most of that in the kernel, where no sample falls.
    pub(super) fn note_fault(&mut self, spaces: &AddressSpaces<'_>, code: &mut Code, fault: &Fault, object: ObjectId) {
        if fault.instruction == 0 {
            return;
        }
        let place = spaces.code_at(fault.pid, fault.instruction);
        let Some((function, instruction)) = code.find(&spaces.modules, place) else { return };
        if code.functions[function].function.instructions[instruction].operands.len() == 1 {
            let operand = OperandId { function, instruction, operand: 0 };
            *self.faulted.entry(operand).or_default().entry(Some(object)).or_default() += 1.0;
        }
    }

    /// Notes what a function was entered with.
    pub(super) fn note_entry(
        &mut self,
        spaces: &mut AddressSpaces<'_>,
        sample: &Sample,
        (id, function): (FunctionId, &Function),
        at: &[usize],
        known: (&State, RegisterSet),
    ) {
        for (register, value) in self.entered.values(id, function, at, known) {
            let place = spaces.locate(sample.pid, value, sample.registers[register::SP]);
            if place != Place::Nowhere {
                self.entered.note(id, register, place.object());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_binary::instruction::Gpr;

    #[test]
    fn registers_nearby_tell_more_than_page_faults_and_these_more_than_arguments() {
        let (function, register) = (FunctionId::new(0), Gpr::new(7));
        let operand = |instruction| OperandId { function, instruction, operand: 0 };
        let on = |object| ByObject::from([(Some(ObjectId::new(object)), 1.0)]);
        let mut seen = Unsampled {
            around: BTreeMap::from([(operand(0), on(10))]),
            faulted: BTreeMap::from([(operand(0), on(20)), (operand(1), on(21))]),
            entered: Entered::default(),
        };
        seen.entered.note(function, register, Some(ObjectId::new(30)));
        let shown = |at| seen.shown(operand(at), Some(Origin::Entry(register))).cloned();
        assert_eq!([0, 1, 2].map(shown), [10, 21, 30].map(|object| Some(on(object))));
        assert_eq!(seen.shown(operand(2), None), None);
    }
}
