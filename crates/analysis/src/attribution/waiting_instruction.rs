//! Which instruction a sample waited for, and what it waited on.
//!
//! An asynchronous interrupt is taken when the oldest instruction has retired, so the sampled
//! instruction pointer names the *next* instruction: code that waits for memory has a skid of exactly
//! one. The predecessor is found in the block; at a block head it is the one that the sampled flags
//! allow. A conditional jump never waits by itself: the compare before it, with which it is fused,
//! does.

use tierloom_binary::cfg::{BlockId, Function};
use tierloom_binary::x86::instruction::{Step, jump_taken};
use tierloom_binary::x86::state::State;

/// What a sample waited on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingInstruction {
    /// A memory operand of the instruction at this position touched this address.
    Memory { step: usize, address: u64 },
    /// The stack: a return, push or pop.
    Stack,
    /// An instruction without memory operands.
    Compute,
    /// The predecessor or its address cannot be known.
    Unrecovered,
}

/// Blames the instruction before position `at`.
pub(crate) fn blame(function: &Function, at: usize, flags: u64, state: &State) -> WaitingInstruction {
    match previous(function, at, flags) {
        Previous::Step(step) => blame_step(function, step, state),
        Previous::Call => WaitingInstruction::Stack,
        Previous::Unknown => WaitingInstruction::Unrecovered,
    }
}

enum Previous {
    Step(usize),
    /// A call came back (its return popped the stack) or the function was just called.
    Call,
    Unknown,
}

fn previous(function: &Function, at: usize, flags: u64) -> Previous {
    let block = function.block_of(at);
    if at > function.blocks[block].first {
        return Previous::Step(at - 1);
    }
    if at == 0 {
        return Previous::Call;
    }
    let allowed: Vec<BlockId> = function.blocks[block]
        .predecessors
        .iter()
        .copied()
        .filter(|from| may_come_from(function, *from, block, flags))
        .collect();
    match choose(function, block, &allowed) {
        Some(from) if function.steps[function.blocks[from].end - 1].is_call() => Previous::Call,
        Some(from) => Previous::Step(function.blocks[from].end - 1),
        None => Previous::Unknown,
    }
}

/// Of several open ways the one that jumps back is the way of most rounds; else the only one that
/// could have waited for memory is where the sample most likely fell.
fn choose(function: &Function, block: BlockId, allowed: &[BlockId]) -> Option<BlockId> {
    if let [only] = allowed {
        return Some(*only);
    }
    if let Some(latch) = allowed.iter().find(|from| function.dominates(block, **from)) {
        return Some(*latch);
    }
    let mut waiting = allowed.iter().filter(|from| {
        let end = function.blocks[**from].end;
        let last = if function.steps[end - 1].code.is_jcc_short_or_near() { end.saturating_sub(2) } else { end - 1 };
        !function.steps[last].operands.is_empty()
    });
    match (waiting.next(), waiting.next()) {
        (Some(only), None) => Some(*only),
        _ => None,
    }
}

/// Whether the flags let control pass from one block to the other.
fn may_come_from(function: &Function, from: BlockId, to: BlockId, flags: u64) -> bool {
    let last = &function.steps[function.blocks[from].end - 1].code;
    match jump_taken(last, flags) {
        None => true,
        Some(taken) => {
            let target = function.step_at(last.near_branch_target()).map(|step| function.block_of(step));
            let falls_to = from + 1 == to;
            (taken && target == Some(to)) || (!taken && falls_to)
        }
    }
}

fn blame_step(function: &Function, step: usize, state: &State) -> WaitingInstruction {
    let first = function.blocks[function.block_of(step)].first;
    let jump = &function.steps[step];
    let fused = jump.code.is_jcc_short_or_near() && step > first && jump.operands.is_empty();
    let mut before = *state;
    before.undo(jump);
    if fused && !function.steps[step - 1].operands.is_empty() {
        let compare = &function.steps[step - 1];
        let mut earlier = before;
        earlier.undo(compare);
        return blame_operand(compare, step - 1, &earlier, &before);
    }
    if jump.operands.is_empty() {
        let stack = touches_stack(jump);
        return if stack { WaitingInstruction::Stack } else { WaitingInstruction::Compute };
    }
    blame_operand(jump, step, &before, state)
}

fn touches_stack(step: &Step) -> bool {
    use iced_x86::Mnemonic::{Leave, Pop, Push, Ret};
    matches!(step.code.mnemonic(), Push | Pop | Ret | Leave)
}

/// A load that overwrote its own base is blamed by the new value: the address of its next round.
fn blame_operand(step: &Step, position: usize, before: &State, after: &State) -> WaitingInstruction {
    let address = step.operands.iter().find_map(|operand| before.address(operand).or_else(|| after.address(operand)));
    address.map_or(WaitingInstruction::Unrecovered, |address| WaitingInstruction::Memory { step: position, address })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_recording::{REGISTERS, register};

    fn state(pairs: &[(usize, u64)]) -> State {
        let mut all = [0; REGISTERS];
        for (name, value) in pairs {
            all[*name] = *value;
        }
        State::of_sample(&all, 0)
    }

    // 0: cmp [rdi], eax | 1: je 4 | 2: mov rcx,[rsi] | 3: inc rcx | 4: ret
    const BRANCH: &[u8] = &[0x39, 0x07, 0x74, 0x06, 0x48, 0x8b, 0x0e, 0x48, 0xff, 0xc1, 0xc3];
    const ZERO: u64 = 1 << 6;

    #[test]
    fn the_instruction_before_is_blamed() {
        let function = Function::decode(BRANCH, 0);
        let state = state(&[(register::SI, 0x500), (register::DI, 0x700)]);
        assert_eq!(blame(&function, 3, 0, &state), WaitingInstruction::Memory { step: 2, address: 0x500 });
        assert_eq!(blame(&function, 0, 0, &state), WaitingInstruction::Stack);
    }

    #[test]
    fn at_a_block_head_the_flags_choose_and_a_fused_compare_waits() {
        let function = Function::decode(BRANCH, 0);
        let state = state(&[(register::DI, 0x700)]);
        assert_eq!(blame(&function, 4, ZERO, &state), WaitingInstruction::Memory { step: 0, address: 0x700 });
        assert_eq!(blame(&function, 4, 0, &state), WaitingInstruction::Compute, "inc rcx came before");
        assert_eq!(blame(&function, 2, 0, &state), WaitingInstruction::Memory { step: 0, address: 0x700 });
    }
}
