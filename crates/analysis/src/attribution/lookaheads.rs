//! What halted threads were about to do, understood: which way branches went, and which objects operands touched.

use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::{Code, FunctionId};
use tierloom_recording::Lookahead;

use crate::address_space::AddressSpaces;
use crate::attribution::touches::Touches;

/// What a halted thread was about to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeenAhead {
    pub(crate) branches: Vec<BranchAhead>,
    pub(crate) touches: Touches,
}

/// A branch at the end of a block, and how often it went either way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BranchAhead {
    pub(crate) at: (FunctionId, BlockId),
    pub(crate) taken: f64,
    pub(crate) passed: f64,
}

impl SeenAhead {
    /// As the world is at that time.
    pub(crate) fn of(ahead: &Lookahead, code: &mut Code, spaces: &mut AddressSpaces<'_>) -> Self {
        let mut branches = Vec::new();
        for count in &ahead.branches {
            let place = spaces.code_at(ahead.pid, count.address);
            let Some((id, instruction)) = code.find(&spaces.modules, place) else { continue };
            let at = (id, code.functions[id].function.block_of(instruction));
            branches.push(BranchAhead { at, taken: count.taken as f64, passed: count.passed as f64 });
        }
        let touches = Touches::of((ahead.pid, ahead.stack_pointer), &ahead.touches, code, spaces);
        Self { branches, touches }
    }
}
