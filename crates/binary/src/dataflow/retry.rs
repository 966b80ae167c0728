//! Loops that go round again only where another thread came in between.
//!
//! An atomic update loads a value, computes the new one, and stores it if memory still holds the old one. If not, it tries
//! again with what it found. A spin lock is not that: it waits until memory holds a constant.

use crate::cfg::{BlockId, Function, LoopId};
use crate::instruction::{Gpr, Instruction, Operation};

/// Whether a loop is left where a compare-and-exchange stored, and there alone.
pub fn is_retry(function: &Function, inside: LoopId) -> bool {
    let natural = &function.loops[inside];
    let is_end = |block: &&BlockId| {
        let content = &function.blocks[**block];
        content.leaves || content.successors.iter().any(|to| !natural.contains(*to))
    };
    let expected = |block: &BlockId| stores_if(function, *block);
    let ends: Option<Vec<Gpr>> = natural.body.iter().filter(is_end).map(expected).collect();
    let waits =
        |one: Gpr| body(function, inside).any(|step| step.written.contains(one) && step.operation.constant().is_some());
    ends.is_some_and(|ends| !ends.is_empty() && !ends.into_iter().any(waits))
}

/// What is expected by the compare-and-exchange that decides the branch at the end of a block.
fn stores_if(function: &Function, block: BlockId) -> Option<Gpr> {
    let decides = function.instructions_of(block).iter().rev().find(|one| one.sets_flags)?;
    match decides.operation {
        Operation::CompareExchange { expected } if function.last(block).flow.asks_flags() => Some(expected),
        _ => None,
    }
}

fn body(function: &Function, inside: LoopId) -> impl Iterator<Item = &Instruction> {
    function.loops[inside].body.iter().flat_map(|block| function.instructions_of(*block))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: &[u8]) -> bool {
        is_retry(&Function::decode(code, 0), LoopId::new(0))
    }

    // 0: lea rdx,[rax+1]; lock cmpxchg [rdi],rdx; jne 0; ret
    const UPDATE: &[u8] = &[0x48, 0x8d, 0x50, 1, 0xf0, 0x48, 0x0f, 0xb1, 0x17, 0x75, 0xf5, 0xc3];

    #[test]
    fn an_atomic_update_is_tried_again_with_what_it_found() {
        assert!(told(UPDATE));
        // 0: mov rax,[rdi] before it
        let loads = [&[0x48, 0x8b, 0x07], &UPDATE[..10], &[0xf2, 0xc3]].concat();
        assert!(told(&loads));
    }

    #[test]
    fn a_lock_is_waited_for_until_memory_holds_a_constant() {
        // 0: xor eax,eax before it
        assert!(!told(&[&[0x31, 0xc0], &UPDATE[..10], &[0xf3, 0xc3]].concat()));
    }

    #[test]
    fn a_loop_that_also_ends_elsewhere_goes_round_for_other_reasons() {
        // 0: test rax,rax; je out before it
        assert!(!told(&[&[0x48, 0x85, 0xc0, 0x74, 0x0b], &UPDATE[..10], &[0xf0, 0xc3]].concat()));
    }
}
