//! What a loop leaves alone, as a sample in it shows it: registers, and places on the stack.

use crate::arch::STACK_POINTER;
use crate::cfg::{Function, Holder, LoopId, Places, Slot, Waiting};
use crate::dataflow::state::{Shown, State};
use crate::dataflow::way::{Passed, Way, way};
use crate::instruction::Instruction;

/// Turns that are taken where ways into a loop meet, to find what they read.
const WAYS: u64 = 3;

/// What is known of all instances of a loop that are alike in what it leaves alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftAlone {
    pub(super) state: State,
    pub(super) slots: Vec<(Slot, u64)>,
}

impl LeftAlone {
    /// As a sample at an instruction inside the loop shows it.
    pub fn of(function: &Function, inside: LoopId, at: usize, shown: Shown<'_>) -> Self {
        let places = places(function, inside);
        let mut state = *shown.state;
        state.forget(function.loops[inside].written);
        for waiting in &places.waiting {
            let value = match waiting.holder(function, inside, at) {
                Some(Holder::Register(register)) => shown.state.get(register),
                Some(Holder::Slot(slot)) => slot.value(shown.stack),
                None => None,
            };
            state.set(waiting.register, value);
        }
        Self { state, slots: shown_of(&places.slots, shown.stack) }
    }
}

/// Whether the stack says something of how often a loop goes round.
pub fn reads_stack(function: &Function, inside: LoopId) -> bool {
    let places = places(function, inside);
    !places.slots.is_empty() || places.waiting.iter().any(Waiting::is_on_stack)
}

/// Values of slots, as far as they are among the words.
pub(super) fn shown_of(slots: &[Slot], stack: &[u64]) -> Vec<(Slot, u64)> {
    slots.iter().filter_map(|slot| Some((*slot, slot.value(stack)?))).collect()
}

/// Slots that a loop reads.
pub(super) fn read_in(function: &Function, inside: LoopId) -> Vec<Slot> {
    if function.loops[inside].written.contains(STACK_POINTER) {
        return Vec::new();
    }
    read_by(body(function, inside))
}

fn body(function: &Function, inside: LoopId) -> impl Iterator<Item = &Instruction> {
    function.loops[inside].body.iter().flat_map(|block| function.instructions_of(*block))
}

fn read_by<'a>(instructions: impl Iterator<Item = &'a Instruction>) -> Vec<Slot> {
    let operands = instructions.flat_map(|instruction| &instruction.operands);
    let mut read: Vec<Slot> = operands.filter(|operand| operand.read).filter_map(Slot::of).collect();
    read.sort_unstable();
    read.dedup();
    read
}

fn places(function: &Function, inside: LoopId) -> &Places {
    let natural = &function.loops[inside];
    natural.left_alone.get_or_init(|| {
        if natural.written.contains(STACK_POINTER) {
            return Places::default();
        }
        let ways = (0..WAYS).flat_map(|choice| way(function, inside, choice).blocks);
        let on_ways = ways.flat_map(|block| function.instructions_of(block));
        let mut read = read_by(body(function, inside).chain(on_ways));
        read.retain(|slot| !body(function, inside).any(|one| slot.is_written_by(one)));
        Places { slots: read.into(), waiting: Waiting::all(function, inside).into() }
    })
}

/// Whether a slot may hold something else behind a way than at its start.
pub(super) fn changes_on(function: &Function, way: &Way, slot: Slot) -> bool {
    let on_way = way.blocks.iter().flat_map(|block| function.instructions_of(*block));
    let passed = way.passed.iter().flat_map(Passed::all).flat_map(|id| body(function, id));
    on_way.chain(passed).any(|one| slot.is_written_by(one) || moves_stack(one))
}

/// Whether slots have other names behind an instruction.
fn moves_stack(instruction: &Instruction) -> bool {
    !instruction.is_call() && instruction.clobbered.contains(STACK_POINTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::trip_count::{remaining, rounds};
    use crate::instruction::Gpr;

    // 0: xor eax,eax | 2: add eax,[rsp+4]; cmp eax,[rsp+8]; jl 2 | ret
    const TILES: &[u8] = &[0x31, 0xc0, 0x03, 0x44, 0x24, 4, 0x3b, 0x44, 0x24, 8, 0x7c, 0xf6, 0xc3];

    fn shown(code: &[u8], stack: &[u64]) -> (Option<f64>, Option<f64>) {
        let function = Function::decode(code, 0);
        let mut state = State::of_sample(&[0x7000; crate::arch::REGISTERS], 0);
        state.set(Gpr::new(0), Some(12));
        let (inside, shown) = (LoopId::new(0), Shown { state: &state, stack });
        let at = function.instruction_at(2).unwrap();
        let whole = rounds(&function, inside, Some(&LeftAlone::of(&function, inside, at, shown)));
        (whole, remaining(&function, inside, at, shown))
    }

    #[test]
    fn the_ends_of_a_loop_may_lie_on_the_stack() {
        // A tile of 4 and an end of 40, and something else above them.
        let stack = [4 << 32, 40 + (7 << 32)];
        assert_eq!(shown(TILES, &stack), (Some(10.0), Some(6.0)), "seven are left, this one included");
        assert_eq!(shown(TILES, &[]), (None, None));
        assert_eq!(shown(TILES, &stack[..1]), (None, None), "it lies beyond what was seen");
    }

    #[test]
    fn a_register_that_waits_on_the_stack_is_found_there() {
        // 0: mov [rsp+8],rbx; xor ebx,ebx | 7: inc rbx; cmp rbx,10; jne 7 | mov rbx,[rsp+8]; dec rdi; jne 0 | ret
        let code = [
            0x48, 0x89, 0x5c, 0x24, 8, 0x31, 0xdb, 0x48, 0xff, 0xc3, 0x48, 0x83, 0xfb, 10, 0x75, 0xf7, 0x48, 0x8b,
            0x5c, 0x24, 8, 0x48, 0xff, 0xcf, 0x75, 0xe6, 0xc3,
        ];
        let function = Function::decode(&code, 0);
        let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
        let (state, kept) = (State::of_sample(&[3; crate::arch::REGISTERS], 0), Gpr::new(3));
        let at = |address, stack: &[u64]| {
            let at = function.instruction_at(address).unwrap();
            LeftAlone::of(&function, outer, at, Shown { state: &state, stack }).state.get(kept)
        };
        assert_eq!((at(7, &[0, 77]), at(7, &[])), (Some(77), None), "while the inner loop runs");
        assert_eq!(at(0, &[]), Some(3), "and before it is where it belongs");
        assert!(reads_stack(&function, outer));
    }

    #[test]
    fn what_the_loop_writes_is_known_from_the_sample_on_and_not_before() {
        // 0: mov [rsp+16],eax | add eax,[rsp+4]; mov [rsp+8],ecx; cmp eax,[rsp+8]; jl | ret: the end is set anew each round.
        let code =
            [0x89, 0x44, 0x24, 16, 0x03, 0x44, 0x24, 4, 0x89, 0x4c, 0x24, 8, 0x3b, 0x44, 0x24, 8, 0x7c, 0xf2, 0xc3];
        let function = Function::decode(&code, 0);
        assert_eq!(*places(&function, LoopId::new(0)).slots, [Slot { displacement: 4, bytes: 4 }]);
        assert!(reads_stack(&function, LoopId::new(0)));
        assert_eq!(read_in(&function, LoopId::new(0)).len(), 2);
    }
}
