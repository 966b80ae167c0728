//! How often a loop goes round, found by running its control on invented data.
//!
//! What decides about another round is mostly arithmetic on registers: a counter against its end, a
//! length that is halved. The emulator runs a loop on a state in which everything unknown is an
//! invented number, the same for the same address. If two different inventions give the same number
//! of rounds, the number does not depend on what was invented, and is right. Where the distance to the
//! end shrinks evenly, the rest of the rounds is computed instead of run.

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::emulator::{Invention, Machine, scramble};
use crate::dataflow::left_alone::{LeftAlone, read_in, shown_of};
use crate::dataflow::state::{Shown, State};
use crate::dataflow::way::{changed, only_exit};
use crate::instruction::Gpr;

/// More rounds than this are a number that was invented.
const MOST_ROUNDS: f64 = 1e12;

/// Rounds from the entry to the exit: the same each time the loop is entered, whatever is known. Of that only
/// registers count that the loop leaves alone. Inner loops are run, or passed over where that takes too long.
pub fn rounds(function: &Function, inside: LoopId, known: Option<&LeftAlone>) -> Option<f64> {
    let attempt = |over: bool| {
        agree(|invention| {
            let mut machine = Machine::new(function, inside, invention).passing_over(over);
            machine.start(known);
            machine.run(function.loops[inside].header, 0).map(|again| again + 1.0)
        })
    };
    attempt(false).or_else(|| attempt(true))
}

/// Value of a register when the loop is entered, where a sample tells.
pub fn at_entry(function: &Function, inside: LoopId, register: Gpr, known: &LeftAlone) -> Option<u64> {
    let value = |invention| {
        let mut machine = Machine::new(function, inside, invention);
        machine.start(Some(known));
        machine.state.get(register)
    };
    all_alike(value, |one, other| one == other)
}

/// Times the header is reached again before the exit, from a sample at an instruction.
pub fn remaining(function: &Function, inside: LoopId, at: usize, shown: Shown<'_>) -> Option<f64> {
    let block = function.block_of(at);
    let (state, skip) = (*shown.state, at - function.blocks[block].first);
    let from = Resumed { block, skip, state, at, shown, inner: Inner::Run };
    from.rounds(function, inside)
}

/// As [`remaining`], with loops inside passed over: of one that the instruction lies in, what it writes is not known.
pub fn remaining_rounds(function: &Function, inside: LoopId, at: usize, shown: Shown<'_>) -> Option<f64> {
    let block = function.block_of(at);
    let within = function.loops_around(block).take_while(|id| *id != inside).last();
    let from = match within.map(|inner| (inner, only_exit(function, inner))) {
        None => {
            let (state, skip) = (*shown.state, at - function.blocks[block].first);
            Resumed { block, skip, state, at, shown, inner: Inner::Passed(None) }
        }
        Some((inner, exit)) => {
            let mut state = LeftAlone::of(function, inner, at, shown).state;
            state.forget(changed(function, inner));
            Resumed { block: exit?, skip: 0, state, at, shown, inner: Inner::Passed(Some(inner)) }
        }
    };
    from.rounds(function, inside)
}

/// Where a loop is gone on with, and what is known there.
struct Resumed<'a> {
    block: BlockId,
    skip: usize,
    state: State,
    at: usize,
    shown: Shown<'a>,
    inner: Inner,
}

/// What becomes of inner loops.
#[derive(Clone, Copy, PartialEq)]
enum Inner {
    Run,
    /// They are passed over, the first of them from a sample in it on.
    Passed(Option<LoopId>),
}

impl Resumed<'_> {
    fn rounds(&self, function: &Function, inside: LoopId) -> Option<f64> {
        if !function.loops[inside].contains(self.block) {
            return None;
        }
        let read = read_in(function, inside);
        let (on_stack, stack) = (shown_of(&read, self.shown.stack), self.shown.state.get(STACK_POINTER));
        agree(|invention| {
            let mut machine = Machine::new(function, inside, invention).passing_over(self.inner != Inner::Run);
            if !read.is_empty() {
                machine.start(Some(&LeftAlone::of(function, inside, self.at, self.shown)));
                machine.stored.forget_all_but_slots();
                machine.forget_slots(inside);
                machine.place(stack, &on_stack);
                if let Inner::Passed(Some(inner)) = self.inner {
                    machine.forget_slots(inner);
                }
            }
            machine.state = self.state;
            machine.fill();
            machine.run(self.block, self.skip)
        })
    }
}

/// One answer of all inventions: a branch on invented data goes either way, so a few agreeing attempts
/// could be chance.
fn agree(attempt: impl Fn(Invention) -> Option<f64>) -> Option<f64> {
    let possible = |invention| attempt(invention).filter(|rounds| *rounds < MOST_ROUNDS);
    all_alike(possible, |one, other| (one - other).abs() < 0.5)
}

fn all_alike<T>(attempt: impl Fn(Invention) -> Option<T>, alike: impl Fn(&T, &T) -> bool) -> Option<T> {
    const ATTEMPTS: u64 = 6;
    let invention = |number: u64| Invention { seed: scramble(number), shift: 36 * u32::from(number % 2 == 1) };
    let first = attempt(invention(0))?;
    let same = |number: u64| attempt(invention(number)).is_some_and(|other| alike(&first, &other));
    (1..ATTEMPTS).all(same).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg::tests::NEST;

    #[test]
    fn a_fixed_count_needs_no_sample() {
        // xor eax,eax | 2: inc rax; cmp rax, 40; jne 2 | ret
        let code = [0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0x83, 0xf8, 40, 0x75, 0xf7, 0xc3];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(40.0));
    }

    #[test]
    fn what_is_invented_passes_the_checks_that_the_program_passed() {
        // xor ecx,ecx | 2: cmp rdi,87; ja 15 | mov edi,[r13+rdi*4]; inc ecx; cmp ecx,40; jne 2 | ret | 15: ud2
        let code = [
            0x31, 0xc9, 0x48, 0x83, 0xff, 0x57, 0x77, 0x0d, 0x41, 0x8b, 0x7c, 0xbd, 0, 0xff, 0xc1, 0x83, 0xf9, 40,
            0x75, 0xee, 0xc3, 0x0f, 0x0b,
        ];
        let function = Function::decode(&code, 0);
        assert_eq!(rounds(&function, LoopId::new(0), None), Some(40.0));
        let [check, load, end] = [1, 2, 4].map(BlockId::new);
        assert!(function.is_dead_end(check, end) && !function.is_dead_end(check, load));
        // test eax,eax; je 6 | ud2 | 6: ud2
        let ends = Function::decode(&[0x85, 0xc0, 0x74, 0x02, 0x0f, 0x0b, 0x0f, 0x0b], 0);
        assert!(!ends.is_dead_end(BlockId::new(0), BlockId::new(1)), "there is no other way");
    }

    #[test]
    fn an_end_that_is_computed_from_an_unknown_start_is_as_good() {
        // mov rax,[rdi]; lea rdx,[rax+128] | add rcx,[rax]; add rax,8; cmp rax,rdx; jne | ret
        let code = [
            0x48, 0x8b, 0x07, 0x48, 0x8d, 0x90, 128, 0, 0, 0, 0x48, 0x03, 0x08, 0x48, 0x83, 0xc0, 8, 0x48, 0x39, 0xd0,
            0x75, 0xf4, 0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(16.0));
    }

    #[test]
    fn padding_before_a_loop_is_no_way_into_it() {
        // xor eax,eax; jmp 7 | 4: nop | 7: inc rax; cmp rax,40; jne 7 | ret
        let code = [0x31, 0xc0, 0xeb, 3, 0x0f, 0x1f, 0, 0x48, 0xff, 0xc0, 0x48, 0x83, 0xf8, 40, 0x75, 0xf7, 0xc3];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(40.0));
    }

    #[test]
    fn a_bound_in_a_register_comes_from_the_sample() {
        let function = Function::decode(NEST, 0x1000);
        let inner = function.blocks[2].inner_loop.unwrap();
        assert_eq!(rounds(&function, inner, None), None, "rdx is anything");
        let mut registers = [0; crate::arch::REGISTERS];
        registers[crate::arch::register::DX] = 1_000_000;
        registers[crate::arch::register::CX] = 999_990;
        let state = State::of_sample(&registers, 0);
        let mut kept = state;
        kept.forget(function.loops[inner].written);
        for known in [state, kept] {
            let known = LeftAlone::of(&function, inner, function.blocks[2].first, Shown { state: &known, stack: &[] });
            assert_eq!(rounds(&function, inner, Some(&known)), Some(1e6));
        }
        let at = function.blocks[2].first;
        assert_eq!(
            remaining(&function, inner, at, Shown { state: &state, stack: &[] }),
            Some(9.0),
            "ten rounds are left, this one included"
        );
    }

    #[test]
    fn a_register_that_goes_around_counts_all_the_same() {
        // mov rdx,0x9e3779b97f4a7c15; mov rcx,rdx; imul rcx,rcx,1000; xor eax,eax | add rax,rdx; cmp rax,rcx; jne | ret
        let code = [
            0x48, 0xba, 0x15, 0x7c, 0x4a, 0x7f, 0xb9, 0x79, 0x37, 0x9e, 0x48, 0x89, 0xd1, 0x48, 0x69, 0xc9, 0xe8, 3, 0,
            0, 0x31, 0xc0, 0x48, 0x01, 0xd0, 0x48, 0x39, 0xc8, 0x75, 0xf8, 0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(1000.0));
    }

    #[test]
    fn a_length_that_is_halved_is_run() {
        // mov eax, 1000 | 5: mov rdx,rax; shr rdx,1; sub rax,rdx; cmp rax,1; ja 5 | ret
        let code = [
            0xb8, 0xe8, 3, 0, 0, 0x48, 0x89, 0xc2, 0x48, 0xd1, 0xea, 0x48, 0x29, 0xd0, 0x48, 0x83, 0xf8, 1, 0x77, 0xf1,
            0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(10.0));
    }

    #[test]
    fn a_loop_that_data_ends_has_no_count() {
        // cmp qword [rdi], 0; lea rdi,[rdi+8]; jne 0 | ret
        let code = [0x48, 0x83, 0x3f, 0, 0x48, 0x8d, 0x7f, 8, 0x75, 0xf6, 0xc3];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), None);
    }

    #[test]
    fn an_end_that_data_may_come_to_before_has_no_count() {
        // xor eax,eax; xor ecx,ecx | 4: movzx edx,[rdi+rax]; lea rcx,[rcx+rdx+1]; inc rax; cmp rax,100000; jae 21
        // | cmp rcx,1000000; jbe 4 | 21: ret
        let before = [
            0x31, 0xc0, 0x31, 0xc9, 0x0f, 0xb6, 0x14, 0x07, 0x48, 0x8d, 0x4c, 0x11, 1, 0x48, 0xff, 0xc0, 0x48, 0x3d,
            0xa0, 0x86, 1, 0, 0x73, 9, 0x48, 0x81, 0xf9, 0x40, 0x42, 0x0f, 0, 0x76, 0xe3, 0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&before, 0), LoopId::new(0), None), None);
        // A thousand times as far no sum of bytes comes.
        let behind = [&before[..27], &[0x40, 0x42, 0x0f, 0x40], &before[31..]].concat();
        assert_eq!(rounds(&Function::decode(&behind, 0), LoopId::new(0), None), Some(1e5));
    }

    #[test]
    fn a_tile_is_as_long_wherever_it_starts() {
        // lea rdx,[rax+1]; lea rcx,[rax+32]; cmp rcx,rdx; sbb rcx,rcx; and rcx,-31; lea rcx,[rax+rcx+32] | inc …
        let guarded = [
            0x48, 0x8d, 0x50, 1, 0x48, 0x8d, 0x48, 32, 0x48, 0x39, 0xd1, 0x48, 0x19, 0xc9, 0x48, 0x83, 0xe1, 0xe1,
            0x48, 0x8d, 0x4c, 0x08, 32, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xc8, 0x75, 0xf8, 0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&guarded, 0), LoopId::new(0), None), Some(32.0), "wherever it starts");
    }

    #[test]
    fn an_end_on_the_stack_is_known_where_the_way_there_sets_it() {
        // 0: lea rax,[rdi+640]; mov [rsp-8],rax; mov rax,[rsi] | c: add rax,8; cmp rax,[rsp-8]; jne c
        // | add rdi,640; cmp rdi,rdx; jne 0 | ret
        let code = [
            0x48, 0x8d, 0x87, 0x80, 2, 0, 0, 0x48, 0x89, 0x44, 0x24, 0xf8, 0x48, 0x8b, 0x06, 0x48, 0x83, 0xc0, 8, 0x48,
            0x3b, 0x44, 0x24, 0xf8, 0x75, 0xf5, 0x48, 0x81, 0xc7, 0x80, 2, 0, 0, 0x48, 0x39, 0xd7, 0x75, 0xda, 0xc3,
        ];
        let function = Function::decode(&code, 0);
        let inner = function.loops.position(|natural| natural.parent.is_some()).unwrap();
        let mut registers = [0; crate::arch::REGISTERS];
        registers[crate::arch::register::DI] = 0x10000;
        registers[crate::arch::register::AX] = 0x10000 + 640 - 80;
        let state = State::of_sample(&registers, 0);
        let at = function.instruction_at(0xf).unwrap();
        let shown = Shown { state: &state, stack: &[] };
        assert_eq!(
            rounds(&function, inner, Some(&LeftAlone::of(&function, inner, at, shown))),
            None,
            "where it starts lies in memory"
        );
        assert_eq!(
            remaining_rounds(&function, inner, at, Shown { state: &state, stack: &[] }),
            Some(9.0),
            "ten are left, this one included"
        );
        assert_eq!(remaining(&function, inner, at, Shown { state: &state, stack: &[] }), Some(9.0));
    }
}
