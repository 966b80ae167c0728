//! Addresses of operands in the blocks around that of a sample.
//!
//! Some blocks no sample falls into: they are short, or what waits in them is seen in the block behind. Registers change little
//! from one block to the next, so a sample tells where these operands point if control comes that way, or goes there.

use tierloom_binary::cfg::{BlockId, Function};
use tierloom_binary::dataflow::state::State;

use crate::attribution::operand_addresses::BlockStates;

/// So many blocks are looked at in each direction. Assumed: it bounds the work for a sample.
const BLOCKS: usize = 6;

/// An operand of another block, and where it points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Neighbour {
    /// Position of the instruction.
    pub(crate) instruction: usize,
    /// Position among its operands.
    pub(crate) operand: usize,
    pub(crate) address: u64,
}

/// Operands around the block of the instruction at position `at`.
pub(crate) fn neighbours(function: &Function, at: usize, states: &BlockStates) -> Vec<Neighbour> {
    let own = function.block_of(at);
    let block = &function.blocks[own];
    let (entry, last) = (*states.before(block.first), block.end - 1);
    let mut exit = *states.before(last);
    exit.execute(&function.instructions[last]);
    let mut found = Vec::new();
    walk(own, &block.predecessors, entry, |block, state| {
        let content = &function.blocks[block];
        for instruction in (content.first..content.end).rev() {
            state.undo(&function.instructions[instruction]);
            add_operands(function, instruction, state, &mut found);
        }
        &content.predecessors
    });
    walk(own, &block.successors, exit, |block, state| {
        let content = &function.blocks[block];
        for instruction in content.first..content.end {
            add_operands(function, instruction, state, &mut found);
            state.execute(&function.instructions[instruction]);
        }
        &content.successors
    });
    found
}

/// Visits blocks, nearest first; `visit` moves the state over a block and says which are next.
fn walk<'a>(
    own: BlockId,
    first: &'a [BlockId],
    state: State,
    mut visit: impl FnMut(BlockId, &mut State) -> &'a [BlockId],
) {
    let mut visited = vec![own];
    let mut open: std::collections::VecDeque<(BlockId, State)> = first.iter().map(|block| (*block, state)).collect();
    while let Some((block, mut state)) = open.pop_front() {
        if visited.len() > BLOCKS {
            return;
        }
        if !visited.contains(&block) {
            visited.push(block);
            let next = visit(block, &mut state);
            open.extend(next.iter().map(|block| (*block, state)));
        }
    }
}

fn add_operands(function: &Function, instruction: usize, state: &State, found: &mut Vec<Neighbour>) {
    for (operand, content) in function.instructions[instruction].operands.iter().enumerate() {
        let address = state.address(content).or_else(|| state.address_without_index(content));
        found.extend(address.map(|address| Neighbour { instruction, operand, address }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_recording::{REGISTERS, register};

    /// 0 mov rcx,[rax+8] | 4 test rcx,rcx | 7 je c | 9 mov [rbx],rcx | c mov rdx,[rsi] | f ret
    const CODE: &[u8] =
        &[0x48, 0x8b, 0x48, 0x08, 0x48, 0x85, 0xc9, 0x74, 0x03, 0x48, 0x89, 0x0b, 0x48, 0x8b, 0x16, 0xc3];

    fn around(at: usize) -> Vec<(usize, u64)> {
        let function = Function::decode(CODE, 0);
        let mut registers = [0; REGISTERS];
        for (name, value) in [(register::AX, 0x1000), (register::BX, 0x2000), (register::SI, 0x3000)] {
            registers[name] = value;
        }
        let states = BlockStates::new(&function, at, &State::of_sample(&registers, 0));
        let found = neighbours(&function, at, &states);
        let mut found: Vec<_> = found.into_iter().map(|one| (one.instruction, one.address)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_sample_shows_operands_of_the_blocks_before_and_behind() {
        assert_eq!(around(4), [(0, 0x1008), (3, 0x2000)], "behind both");
        assert_eq!(around(1), [(3, 0x2000), (4, 0x3000)], "before both");
    }

    #[test]
    fn what_changes_on_the_way_tells_nothing() {
        // 0 mov rax,[rax] | 3 test rdi,rdi | 6 je b | 8 mov rcx,[rax] | b ret
        let code = [0x48, 0x8b, 0x00, 0x48, 0x85, 0xff, 0x74, 0x03, 0x48, 0x8b, 0x08, 0xc3];
        let function = Function::decode(&code, 0);
        let states = BlockStates::new(&function, 0, &State::of_sample(&[0x1000; REGISTERS], 0));
        assert_eq!(neighbours(&function, 0, &states), []);
        let states = BlockStates::new(&function, 4, &State::of_sample(&[0x1000; REGISTERS], 0));
        assert_eq!(neighbours(&function, 4, &states), [Neighbour { instruction: 3, operand: 0, address: 0x1000 }]);
    }
}
