//! Which instruction a sample waited for, and what it waited on.
//!
//! An asynchronous interrupt is taken when the oldest instruction has retired, so the sampled
//! instruction pointer names the *next* instruction: code that waits for memory has a skid of exactly
//! one. The predecessor is found in the block; at a block head it is the one that the sampled flags
//! allow. A conditional jump never waits by itself: the compare before it, with which it is fused,
//! does. A string instruction that is repeated is interrupted on its way, and waits itself.

use tierloom_binary::cfg::{BlockId, Function};
use tierloom_binary::dataflow::state::State;
use tierloom_binary::instruction::{Flags, Instruction, Operand};

/// What a sample waited on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingInstruction {
    /// A memory operand of the instruction at this position touched this address, or where that is gone one of the same array.
    Memory { instruction: usize, address: u64, is_exact: bool },
    /// The stack: a return, push or pop.
    Stack,
    /// An instruction without memory operands.
    Compute,
    /// The predecessor or its address cannot be known.
    Unrecovered,
}

/// Blames the instruction before position `at`, or that at it if it goes on.
pub(crate) fn blame(function: &Function, at: usize, flags: Flags, state: &State) -> WaitingInstruction {
    let sampled = &function.instructions[at];
    if is_repeating(sampled, state) {
        return blame_operand(sampled, at, state, state);
    }
    match previous(function, at, flags) {
        Previous::Instruction(instruction) => blame_instruction(function, instruction, state),
        Previous::Call => WaitingInstruction::Stack,
        Previous::Unknown => WaitingInstruction::Unrecovered,
    }
}

/// Whether a sample is amid a string instruction.
fn is_repeating(instruction: &Instruction, state: &State) -> bool {
    let counters = instruction.operands.iter().filter_map(|operand| operand.repeats);
    counters.filter_map(|counter| state.get(counter)).any(|left| left > 0)
}

enum Previous {
    Instruction(usize),
    /// A call came back (its return popped the stack) or the function was just called.
    Call,
    Unknown,
}

fn previous(function: &Function, at: usize, flags: Flags) -> Previous {
    let block = function.block_of(at);
    if at > function.blocks[block].first {
        return Previous::Instruction(at - 1);
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
        Some(from) if function.last(from).is_call() => Previous::Call,
        Some(from) => Previous::Instruction(function.blocks[from].end - 1),
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
        let last = if function.last(**from).flow.asks_flags() { end.saturating_sub(2) } else { end - 1 };
        !function.instructions[last].operands.is_empty()
    });
    match (waiting.next(), waiting.next()) {
        (Some(only), None) => Some(*only),
        _ => None,
    }
}

/// Whether the flags let control pass from one block to the other.
fn may_come_from(function: &Function, from: BlockId, to: BlockId, flags: Flags) -> bool {
    match function.last(from).flow.is_taken(flags) {
        None => true,
        Some(true) => function.jump_target(from) == Some(to),
        Some(false) => from + 1 == to,
    }
}

fn blame_instruction(function: &Function, instruction: usize, state: &State) -> WaitingInstruction {
    let first = function.blocks[function.block_of(instruction)].first;
    let jump = &function.instructions[instruction];
    let fused = jump.flow.asks_flags() && instruction > first && jump.operands.is_empty();
    let mut before = *state;
    before.undo(jump);
    if fused && !function.instructions[instruction - 1].operands.is_empty() {
        let compare = &function.instructions[instruction - 1];
        let mut earlier = before;
        earlier.undo(compare);
        return blame_operand(compare, instruction - 1, &earlier, &before);
    }
    if jump.operands.is_empty() {
        return if jump.uses_stack { WaitingInstruction::Stack } else { WaitingInstruction::Compute };
    }
    blame_operand(jump, instruction, &before, state)
}

/// A load that overwrote its own base is blamed by the new value: the address of its next round. One that overwrote its index
/// by where its array begins: what it loaded is an element, from which no address follows.
fn blame_operand(instruction: &Instruction, position: usize, before: &State, after: &State) -> WaitingInstruction {
    let of = |operand: &Operand| {
        let exact = before.address(operand).map(|address| (address, true));
        let is_gone = operand.index.is_some_and(|index| instruction.written.contains(index));
        let array = || Some((before.get(operand.base?)?.wrapping_add(operand.displacement), false));
        let next = || Some((after.address(operand)?, true));
        exact.or_else(|| array().filter(|_| is_gone)).or_else(next)
    };
    let found = instruction.operands.iter().find_map(of);
    found.map_or(WaitingInstruction::Unrecovered, |(address, is_exact)| WaitingInstruction::Memory {
        instruction: position,
        address,
        is_exact,
    })
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
    const ZERO: Flags = Flags(1 << 6);

    #[test]
    fn the_instruction_before_is_blamed() {
        let function = Function::decode(BRANCH, 0);
        let state = state(&[(register::SI, 0x500), (register::DI, 0x700)]);
        assert_eq!(
            blame(&function, 3, Flags(0), &state),
            WaitingInstruction::Memory { instruction: 2, address: 0x500, is_exact: true }
        );
        assert_eq!(blame(&function, 0, Flags(0), &state), WaitingInstruction::Stack);
    }

    #[test]
    fn a_string_instruction_waits_itself_until_its_counter_is_used_up() {
        // 0: mov rax, [rsi] | 1: rep stosb | 2: ret
        let function = Function::decode(&[0x48, 0x8b, 0x06, 0xf3, 0xaa, 0xc3], 0);
        let at = |left| state(&[(register::SI, 0x500), (register::DI, 0x700), (register::CX, left)]);
        let memory = |instruction, address| WaitingInstruction::Memory { instruction, address, is_exact: true };
        assert_eq!(blame(&function, 1, Flags(0), &at(3)), memory(1, 0x700));
        assert_eq!(blame(&function, 1, Flags(0), &at(0)), memory(0, 0x500));
    }

    #[test]
    fn a_load_that_overwrote_its_index_is_blamed_by_its_array_and_one_that_overwrote_its_base_by_its_next_round() {
        // 0: mov eax, [rsi+rax*4] | 1: ret
        let function = Function::decode(&[0x8b, 0x04, 0x86, 0xc3], 0);
        let state = state(&[(register::SI, 0x500), (register::AX, 77)]);
        let array = WaitingInstruction::Memory { instruction: 0, address: 0x500, is_exact: false };
        assert_eq!(blame(&function, 1, Flags(0), &state), array);
        // 0: mov rsi, [rsi+8] | 1: ret
        let function = Function::decode(&[0x48, 0x8b, 0x76, 8, 0xc3], 0);
        let next = WaitingInstruction::Memory { instruction: 0, address: 0x508, is_exact: true };
        assert_eq!(blame(&function, 1, Flags(0), &state), next);
    }

    #[test]
    fn at_a_block_head_the_flags_choose_and_a_fused_compare_waits() {
        let function = Function::decode(BRANCH, 0);
        let state = state(&[(register::DI, 0x700)]);
        assert_eq!(
            blame(&function, 4, ZERO, &state),
            WaitingInstruction::Memory { instruction: 0, address: 0x700, is_exact: true }
        );
        assert_eq!(blame(&function, 4, Flags(0), &state), WaitingInstruction::Compute, "inc rcx came before");
        assert_eq!(
            blame(&function, 2, Flags(0), &state),
            WaitingInstruction::Memory { instruction: 0, address: 0x700, is_exact: true }
        );
    }
}
