//! How many elements an access moves: a vector of four doubles is four accesses of the program.
//!
//! Most instructions say how wide their elements are. Plain vector moves, and repeated fills and copies, do not; they
//! move what the packed arithmetic of their loop works on, or else what the rest of the program takes the object for.

use std::collections::BTreeMap;

use crate::address_space::objects::ObjectId;
use crate::attribution::Observed;
use crate::attribution::OperandId;
use crate::traffic::accesses::OperandAccesses;
use tierloom_binary::cfg::{Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::instruction::{Element, Operand};

/// Width taken where nothing tells: numbers of scientific programs are doubles. Assumed.
const USUAL_BYTES: u32 = 8;

/// Element widths of the operands of a run.
pub(crate) struct Elements {
    by_loop: BTreeMap<(FunctionId, Option<LoopId>), Option<u32>>,
    by_object: BTreeMap<ObjectId, u32>,
}

impl Elements {
    pub(crate) fn new(observed: &Observed, tallies: &[OperandAccesses]) -> Self {
        let mut elements = Self { by_loop: BTreeMap::new(), by_object: BTreeMap::new() };
        let mut votes: BTreeMap<(ObjectId, u32), f64> = BTreeMap::new();
        for tally in tallies {
            let operand = operand(observed, tally.operand);
            if let Some(width) = elements.of_code(observed, tally.operand, operand) {
                *votes.entry((tally.object, width)).or_default() += tally.executions;
            }
        }
        let mut most: BTreeMap<ObjectId, f64> = BTreeMap::new();
        for ((object, width), weight) in votes {
            if most.get(&object).is_none_or(|known| weight > *known) {
                most.insert(object, weight);
                elements.by_object.insert(object, width);
            }
        }
        elements
    }

    /// Elements that one execution of an operand moves.
    pub(crate) fn count(&mut self, observed: &Observed, tally: &OperandAccesses) -> f64 {
        let operand = operand(observed, tally.operand);
        let width = self.of_code(observed, tally.operand, operand);
        let width = width.or_else(|| self.by_object.get(&tally.object).copied()).unwrap_or(USUAL_BYTES);
        let elements = f64::from(operand.bytes) / f64::from(width.max(1));
        // An element takes several times of an instruction that is repeated for each byte.
        if operand.repeats.is_some() { elements } else { elements.max(1.0) }
    }

    /// What the instruction or the arithmetic around it says.
    fn of_code(&mut self, observed: &Observed, id: OperandId, operand: &Operand) -> Option<u32> {
        if let Element::Bytes(width) = operand.element {
            return Some(width);
        }
        let function = &observed.code.functions[id.function].function;
        if let Some(width) = neighbour(function, id.instruction) {
            return Some(width);
        }
        let inside = function.blocks[function.block_of(id.instruction)].inner_loop;
        *self.by_loop.entry((id.function, inside)).or_insert_with(|| arithmetic(function, inside))
    }
}

/// The operand itself.
pub(crate) fn operand(observed: &Observed, id: OperandId) -> &Operand {
    &observed.code.functions[id.function].function.instructions[id.instruction].operands[id.operand]
}

/// Width that the first instruction of the block says which uses what was loaded, or the last one which
/// made what is stored.
fn neighbour(function: &Function, position: usize) -> Option<u32> {
    let block = &function.blocks[function.block_of(position)];
    let [first, second, ..] = function.instructions[position].vectors.registers;
    if let Some(loaded) = first {
        let mut after = function.instructions[position + 1..block.end].iter().map(|other| &other.vectors);
        return after.find_map(|other| other.element.filter(|_| other.name(loaded)));
    }
    let stored = Some(second?);
    let mut before = function.instructions[block.first..position].iter().rev().map(|other| &other.vectors);
    before.find_map(|other| other.element.filter(|_| other.registers[0] == stored))
}

/// Width of the packed arithmetic in a loop, if all of it agrees.
fn arithmetic(function: &Function, inside: Option<LoopId>) -> Option<u32> {
    let natural = &function.loops[inside?];
    let body = natural.body.iter().flat_map(|block| function.instructions_of(*block));
    let mut widths = body.filter_map(|instruction| instruction.vectors.element);
    let first = widths.next()?;
    widths.all(|width| width == first).then_some(first)
}
