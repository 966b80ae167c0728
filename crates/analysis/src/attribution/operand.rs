//! Which operand of the code is meant, and what it is seen to touch.

use std::collections::BTreeMap;

use tierloom_binary::code::FunctionId;

use crate::address_space::objects::ObjectId;

/// A static operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperandId {
    pub(crate) function: FunctionId,
    /// Position of the instruction in the function.
    pub(crate) instruction: usize,
    /// Position among the operands of the instruction.
    pub(crate) operand: usize,
}

/// How often it touches which object, in executions or in samples; `None` is the stack, or nothing known.
pub(crate) type ByObject = BTreeMap<Option<ObjectId>, f64>;
