//! Which operand of the code is meant.

use tierloom_binary::code::FunctionId;

/// A static operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperandId {
    pub(crate) function: FunctionId,
    /// Position of the instruction in the function.
    pub(crate) instruction: usize,
    /// Position among the operands of the instruction.
    pub(crate) operand: usize,
}
