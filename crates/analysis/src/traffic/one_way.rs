//! Operands that their loop moves in one direction by constants, though not equally often in each round.
//!
//! A merge moves the one finger or the other, a ring's end moves when something is taken out, a partition runs through a list from both ends in loops of their own. What such
//! an operand touches lies behind each other all the same: it is as many lines as the steps go, not one at each access. Where
//! a loop inside makes the steps, with accesses of its own through the same register, these have just touched the line.

use std::collections::BTreeMap;

use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::dataflow::one_way::one_way;
use tierloom_binary::instruction::Operand;
use tierloom_model::Pattern;
use tierloom_model::units::LINE_BYTES_F64;

use crate::address_space::objects::ObjectId;
use crate::attribution::{Observed, OperandId};
use crate::frequency::Counts;
use crate::traffic::accesses::OperandAccesses;
use crate::traffic::address_stream::AddressStream;
use crate::traffic::element_width::operand;

/// Makes streams of operands that go one way, and tells by operand and object how many lines they fetch in all.
pub(crate) fn walked(
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &mut BTreeMap<OperandId, AddressStream>,
    counts: &Counts,
) -> BTreeMap<(OperandId, ObjectId), f64> {
    let mut executed: BTreeMap<OperandId, f64> = BTreeMap::new();
    for tally in tallies.iter().filter(|tally| is_loose(shapes[&tally.operand])) {
        *executed.entry(tally.operand).or_default() += tally.executions;
    }
    let lines = |id: &OperandId| Some(lines(observed, counts, *id)? / executed[id].max(f64::MIN_POSITIVE));
    let each: BTreeMap<OperandId, f64> = executed.keys().filter_map(|id| Some((*id, lines(id)?.min(1.0)))).collect();
    for operand in each.keys() {
        shapes.insert(*operand, AddressStream { pattern: Pattern::Stream, stride: None, short_walk: None });
    }
    let of =
        |tally: &OperandAccesses| Some(((tally.operand, tally.object), each.get(&tally.operand)? * tally.executions));
    tallies.iter().filter_map(of).collect()
}

fn is_loose(shape: AddressStream) -> bool {
    shape.pattern.is_random() && shape.short_walk.is_none()
}

/// Lines that all executions of an operand touch; `None` where it does not go one way.
fn lines(observed: &Observed, counts: &Counts, id: OperandId) -> Option<f64> {
    let function = &observed.code.functions[id.function].function;
    let content = operand(observed, id);
    let block = function.block_of(id.instruction);
    let is_written =
        |around: &LoopId| content.registers().iter().any(|register| function.loops[*around].written.contains(register));
    let around = function.loops_around(block).find(is_written)?;
    let steps = one_way(function, around, id.instruction, content)?;
    if steps.iter().any(|(step, _)| touches_on_the_way(function, around, *step, content)) {
        return Some(0.0);
    }
    let executions = &counts.blocks.get(&id.function)?.executions;
    Some(steps.iter().map(|(block, bytes)| executions[*block] * bytes.unsigned_abs() as f64 / LINE_BYTES_F64).sum())
}

/// Whether a block of a loop inside `around` touches memory through the same registers.
fn touches_on_the_way(function: &Function, around: LoopId, block: BlockId, content: &Operand) -> bool {
    let same = |other: &Operand| (other.base, other.index) == (content.base, content.index);
    function.blocks[block].inner_loop != Some(around)
        && function.instructions_of(block).iter().any(|instruction| instruction.operands.iter().any(same))
}
