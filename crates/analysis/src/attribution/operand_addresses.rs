//! Which addresses the operands around a sample touch.
//!
//! From one sample the registers are followed back to the head of its basic block and forward to its
//! end, so that *every* operand of the block gets an address, not only the one that waited. Operands
//! elsewhere in the loops around it are read off where their registers do not change, or change only
//! by the loop's steady steps.

use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::dataflow::rounds::is_one_variable;
use tierloom_binary::dataflow::state::State;
use tierloom_binary::instruction::{Operand, RegisterSet};

/// An operand with an address that it touched near a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Touch {
    /// Position of the instruction.
    pub(crate) instruction: usize,
    /// Position among its operands.
    pub(crate) operand: usize,
    pub(crate) address: u64,
    /// How the address was found.
    pub(crate) how: How,
}

/// How sure an address is, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// By undoing and replaying the block of the sample.
    Replayed,
    /// Of another round or with an unknown index: right only if it falls into an object.
    Near,
}

/// States before each instruction of the block around position `at`, as far as known; and the state
/// of the sample itself.
pub(crate) struct BlockStates {
    first: usize,
    /// Position of the sample.
    at: usize,
    before: Vec<State>,
    sample: State,
}

impl BlockStates {
    /// `sample` holds before the instruction at position `at`.
    pub(crate) fn new(function: &Function, at: usize, sample: &State) -> Self {
        let block = &function.blocks[function.block_of(at)];
        let mut before = vec![*sample; block.len()];
        let mut state = *sample;
        for position in (block.first..at).rev() {
            state.undo(&function.instructions[position]);
            before[position - block.first] = state;
        }
        for position in block.first..at {
            // What undoing lost may be known from replaying.
            before[position - block.first] = before[position - block.first].or(&state);
            state = before[position - block.first];
            state.execute(&function.instructions[position]);
        }
        let mut state = *sample;
        for position in at..block.end {
            before[position - block.first] = state;
            state.execute(&function.instructions[position]);
        }
        Self { first: block.first, at, before, sample: *sample }
    }

    pub(crate) fn before(&self, position: usize) -> &State {
        &self.before[position - self.first]
    }

    /// Address of an operand of the block, of the function that it was made of.
    pub(crate) fn address(&self, function: &Function, position: usize, operand: &Operand) -> Option<(u64, How)> {
        let exact = self.before(position).address(operand).map(|address| (address, How::Replayed));
        exact.or_else(|| self.near(function, position, operand).map(|address| (address, How::Near)))
    }

    /// Of a pointer that the block itself loads: its value in the sample may be that of the round before or after, an address
    /// of the same instruction.
    fn near(&self, function: &Function, position: usize, operand: &Operand) -> Option<u64> {
        let same = |register| is_one_variable(function, (self.at, position), register);
        let index = operand.index.filter(|index| same(*index));
        operand.base.is_none_or(same).then(|| self.sample.address(&Operand { index, ..*operand }))?
    }
}

/// Addresses of all operands of the sample's block.
pub(crate) fn block_touches(function: &Function, at: usize, states: &BlockStates) -> Vec<Touch> {
    let block = &function.blocks[function.block_of(at)];
    let mut touches = Vec::new();
    for instruction in block.first..block.end {
        for (operand, content) in function.instructions[instruction].operands.iter().enumerate() {
            let found = states.address(function, instruction, content);
            touches.extend(found.map(|(address, how)| Touch { instruction, operand, address, how }));
        }
    }
    touches
}

/// Addresses of the operands of a loop outside one of its blocks or inner loops (`except`), as far as
/// the registers in `valid` and the loop's own constants tell.
pub(crate) fn loop_touches(
    function: &Function,
    inside: LoopId,
    valid: RegisterSet,
    state: &State,
    except: impl Fn(BlockId) -> bool,
) -> Vec<Touch> {
    let mut known = *state;
    known.forget(valid.others());
    let mut touches = Vec::new();
    for &block in function.loops[inside].body.iter().filter(|block| !except(**block)) {
        for instruction in function.blocks[block].first..function.blocks[block].end {
            for (operand, content) in function.instructions[instruction].operands.iter().enumerate() {
                let address = known.address(content).or_else(|| known.address_without_index(content));
                touches.extend(address.map(|address| Touch { instruction, operand, address, how: How::Near }));
            }
        }
    }
    touches
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_recording::{REGISTERS, register};

    fn sample(pairs: &[(usize, u64)]) -> State {
        let mut registers = [0; REGISTERS];
        for (name, value) in pairs {
            registers[*name] = *value;
        }
        State::of_sample(&registers, 0)
    }

    #[test]
    fn every_operand_of_the_block_gets_its_address_from_any_point() {
        // mov rax, [rdi]; add rdi, 8; mov [rsi+rcx*8], rax; inc rcx; ret
        let code = [0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 0x08, 0x48, 0x89, 0x04, 0xce, 0x48, 0xff, 0xc1, 0xc3];
        let function = Function::decode(&code, 0);
        let (start, index) = (0x1000u64, 5u64);
        for at in 0..5 {
            let values = [
                (register::DI, start + if at >= 2 { 8 } else { 0 }),
                (register::SI, 0x9000),
                (register::CX, index + u64::from(at >= 4)),
            ];
            let states = BlockStates::new(&function, at, &sample(&values));
            let touches = block_touches(&function, at, &states);
            let addresses: Vec<u64> = touches.iter().map(|touch| touch.address).collect();
            assert_eq!(addresses, vec![start, 0x9000 + 8 * index], "sampled at {at}");
            assert!(touches.iter().all(|touch| touch.how == How::Replayed));
        }
    }

    #[test]
    fn a_chase_uses_the_pointer_that_it_just_loaded() {
        // 0 mov rax,[rax] | 3 jmp 0, sampled after the load
        let function = Function::decode(&[0x48, 0x8b, 0x00, 0xeb, 0xfb], 0);
        let states = BlockStates::new(&function, 1, &sample(&[(register::AX, 0x7000)]));
        let touches = block_touches(&function, 1, &states);
        assert_eq!(touches, vec![Touch { instruction: 0, operand: 0, address: 0x7000, how: How::Near }]);
    }

    #[test]
    fn a_register_that_holds_a_table_and_then_what_is_in_it_tells_nothing_of_the_table() {
        // 0 mov rcx,[rbx] | 3 mov rcx,[rcx] | 6 inc dword [rcx] | 8 dec rdx | b jne 0 | d ret, sampled at the increment
        let code = [0x48, 0x8b, 0x0b, 0x48, 0x8b, 0x09, 0xff, 0x01, 0x48, 0xff, 0xca, 0x75, 0xf3, 0xc3];
        let function = Function::decode(&code, 0);
        let states = BlockStates::new(&function, 2, &sample(&[(register::BX, 0x1000), (register::CX, 0x7000)]));
        let touched = block_touches(&function, 2, &states);
        let touched: Vec<_> = touched.iter().map(|touch| (touch.instruction, touch.address, touch.how)).collect();
        assert_eq!(touched, [(0, 0x1000, How::Replayed), (2, 0x7000, How::Replayed)]);
    }
}
