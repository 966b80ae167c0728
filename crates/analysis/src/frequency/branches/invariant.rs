//! Branches that ask only for what their loop leaves alone.
//!
//! Before an inner loop stands the question whether it has any rounds at all. Where the answer lies in registers
//! that the loop around it does not change, every sample of that loop gives it, wherever it fell: a row of no
//! points is no row in any of its planes.

use std::collections::BTreeMap;

use crate::attribution::{AttributedSample, Observed};
use crate::frequency::branches::{BranchCounts, BranchTable, MOST_SAMPLES, decided, pass};
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::state::State;

/// Which way such branches go, by the samples of the innermost loop around them.
pub(crate) fn settled(observed: &Observed) -> BranchTable {
    let mut found: BTreeMap<(FunctionId, BlockId), BranchCounts> = BTreeMap::new();
    for ((id, inside), samples) in by_loop(observed) {
        let function = &observed.code.functions[id].function;
        let branches = function.loops[inside].body.iter().copied().filter(|block| is_branch(function, inside, *block));
        for block in branches {
            for seen in samples.iter().step_by(samples.len().div_ceil(MOST_SAMPLES)) {
                let Some(taken) = taken(function, inside, block, &seen.state) else { break };
                found.entry((id, block)).or_default().add(Some(taken));
            }
        }
    }
    decided(found)
}

/// Samples in each loop, inner loops included.
fn by_loop(observed: &Observed) -> BTreeMap<(FunctionId, LoopId), Vec<&AttributedSample>> {
    let mut samples: BTreeMap<(FunctionId, LoopId), Vec<&AttributedSample>> = BTreeMap::new();
    for seen in &observed.seen {
        let Some((id, step)) = seen.at else { continue };
        let function = &observed.code.functions[id].function;
        for inside in function.loops_around(function.block_of(step)) {
            samples.entry((id, inside)).or_default().push(seen);
        }
    }
    samples
}

/// A block of the loop itself, both ways of which stay in it: that rounds end is another matter.
fn is_branch(function: &Function, inside: LoopId, block: BlockId) -> bool {
    let natural = &function.loops[inside];
    let content = &function.blocks[block];
    let stays = |to: &BlockId| natural.contains(*to);
    content.inner_loop == Some(inside) && content.successors.len() == 2 && content.successors.iter().all(stays)
}

/// Which way the branch goes, by what the loop leaves alone.
fn taken(function: &Function, inside: LoopId, block: BlockId, state: &State) -> Option<bool> {
    let mut state = *state;
    state.forget(function.loops[inside].written);
    let flags = pass(function, function.blocks[block].first, block, &mut state)?;
    function.last(block).flow.is_taken(flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_recording::{REGISTERS, register};

    // 0: test rsi,rsi; je c | 5: xor eax,eax | 7: inc rax; cmp rax,rsi; (jne 7) | c: dec rdi; jne 0 | ret
    const GUARDED: &[u8] = &[
        0x48, 0x85, 0xf6, 0x74, 0x0a, 0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xf0, 0x75, 0xf8, 0x48, 0xff, 0xcf,
        0x75, 0xec, 0xc3,
    ];

    #[test]
    fn a_guard_on_what_stays_is_answered_by_any_sample_of_the_loop() {
        let function = Function::decode(GUARDED, 0);
        let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
        let guard = BlockId::new(0);
        let answer = |rows: u64| {
            let mut registers = [0; REGISTERS];
            registers[register::SI] = rows;
            taken(&function, outer, guard, &State::of_sample(&registers, 0))
        };
        assert!(is_branch(&function, outer, guard));
        assert_eq!((answer(142), answer(0)), (Some(false), Some(true)));
        let latch = function.loops[outer].latches[0];
        assert!(!is_branch(&function, outer, latch), "the end of the rounds");
    }
}
