//! Where the value that a function returned is kept: what follows its call.

use iced_x86::{
    Code as Encoding, Decoder, DecoderOptions, FlowControl, Instruction as Code, Mnemonic, OpKind, Register,
};

use super::registers::{ARGUMENTS, CALLEE_SAVED, gpr};
use crate::instruction::{Gpr, RegisterSet};

/// Instructions that are followed.
const STEPS: usize = 64;
/// The register that values are returned in.
const RESULT: Gpr = Gpr::new(0);

/// Where a returned value goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// To a variable at a fixed address.
    Static(u64),
    /// To the caller of the function that got it.
    Returned,
}

/// A place that holds the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A register.
    Register(Gpr),
    /// Memory at a distance from a register.
    Memory(Gpr, i64),
}

/// Follows the value in the result register from behind a call on; `code` reaches from there to the function's end.
///
/// Of a branch both sides are tried, the one that falls through first: one of them is that the allocation failed. None
/// where the value goes to the heap, is worked on, or gets lost.
///
/// # Arguments
/// * `passes_on` - whether the function at an address returns its first argument, as `memset` does.
/// * `seen` - told of every place that holds the value before the instruction at an address; of memory, by the addresses
///   before and behind the store.
pub fn kept(
    code: &[u8],
    start: u64,
    passes_on: &dyn Fn(u64) -> bool,
    seen: &mut dyn FnMut(u64, Holder),
) -> Option<Kept> {
    let held = Held { registers: RegisterSet::of(&[RESULT]), slots: Vec::new() };
    Follower { code, start, passes_on, seen, left: STEPS }.follow(start, held)
}

/// One function's code, and how many instructions of it may still be looked at.
struct Follower<'c> {
    code: &'c [u8],
    start: u64,
    passes_on: &'c dyn Fn(u64) -> bool,
    seen: &'c mut dyn FnMut(u64, Holder),
    left: usize,
}

impl<'c> Follower<'c> {
    fn follow(&mut self, from: u64, mut held: Held) -> Option<Kept> {
        let mut decoder = self.decoder(from)?;
        while self.left > 0 && decoder.can_decode() {
            self.left -= 1;
            held.registers.iter().for_each(|register| (self.seen)(decoder.ip(), Holder::Register(register)));
            let instruction = decoder.decode();
            let target = instruction.near_branch_target();
            match instruction.flow_control() {
                FlowControl::Next => {}
                FlowControl::Call | FlowControl::IndirectCall => {
                    held.called((self.passes_on)(target));
                    continue;
                }
                FlowControl::Return => return held.registers.contains(RESULT).then_some(Kept::Returned),
                FlowControl::ConditionalBranch => {
                    let straight = self.follow(instruction.next_ip(), held.clone());
                    return straight.or_else(|| self.follow(target, held));
                }
                FlowControl::UnconditionalBranch if (self.passes_on)(target) => {
                    return held.registers.contains(ARGUMENTS[0]).then_some(Kept::Returned);
                }
                FlowControl::UnconditionalBranch => return self.follow(target, held),
                _ => return None,
            }
            match held.after(&instruction) {
                Step::On => {}
                Step::Spilled(base, distance) => self.stored(&instruction, base, distance),
                Step::StoredBehind(base, distance) => {
                    self.stored(&instruction, base, distance);
                    return None;
                }
                Step::Stored(address) => return Some(Kept::Static(address)),
                Step::Lost => return None,
            }
        }
        None
    }

    fn stored(&mut self, store: &Code, base: Gpr, distance: u64) {
        for at in [store.ip(), store.next_ip()] {
            (self.seen)(at, Holder::Memory(base, distance.cast_signed()));
        }
    }

    fn decoder(&self, from: u64) -> Option<Decoder<'c>> {
        let distance = usize::try_from(from.checked_sub(self.start)?).ok()?;
        Some(Decoder::with_ip(64, self.code.get(distance..)?, from, DecoderOptions::NONE))
    }
}

/// Where the value lies at a moment.
#[derive(Clone)]
struct Held {
    registers: RegisterSet,
    /// Places on the stack: base register and distance.
    slots: Vec<(Register, u64)>,
}

enum Step {
    On,
    /// Stored on the stack: base register and distance.
    Spilled(Gpr, u64),
    /// Stored where a pointer points: its register and distance.
    StoredBehind(Gpr, u64),
    Stored(u64),
    Lost,
}

impl Held {
    /// What is left after a call, which may return its first argument.
    fn called(&mut self, passes_on: bool) {
        let given = self.registers.contains(ARGUMENTS[0]);
        self.registers = self.registers.common(CALLEE_SAVED);
        if passes_on && given {
            self.registers.insert(RESULT);
        }
    }

    fn after(&mut self, code: &Code) -> Step {
        let stores = matches!(code.code(), Encoding::Mov_rm64_r64) && code.op0_kind() == OpKind::Memory;
        if stores && gpr(code.op1_register()).is_some_and(|source| self.registers.contains(source)) {
            return self.store(code);
        }
        if code.op0_kind() == OpKind::Register && writes_first(code.mnemonic()) {
            let whole = code.op0_register().size() == 8;
            let holds = whole && code.mnemonic() == Mnemonic::Mov && self.source_holds(code);
            let Some(target) = gpr(code.op0_register()) else { return Step::On };
            if holds {
                self.registers.insert(target);
            } else {
                self.registers = self.registers.without(RegisterSet::of(&[target]));
            }
        }
        if self.registers.is_empty() && self.slots.is_empty() { Step::Lost } else { Step::On }
    }

    fn store(&mut self, code: &Code) -> Step {
        match (code.memory_base(), code.memory_index()) {
            (Register::RIP | Register::None, Register::None) => Step::Stored(code.memory_displacement64()),
            (base @ (Register::RBP | Register::RSP), Register::None) => {
                self.slots.push((base, code.memory_displacement64()));
                gpr(base).map_or(Step::On, |base| Step::Spilled(base, code.memory_displacement64()))
            }
            (base, Register::None) => {
                gpr(base).map_or(Step::Lost, |base| Step::StoredBehind(base, code.memory_displacement64()))
            }
            _ => Step::Lost,
        }
    }

    fn source_holds(&self, code: &Code) -> bool {
        match code.op1_kind() {
            OpKind::Register => gpr(code.op1_register()).is_some_and(|source| self.registers.contains(source)),
            OpKind::Memory => self.slots.contains(&(code.memory_base(), code.memory_displacement64())),
            _ => false,
        }
    }
}

/// Whether an instruction changes its first operand.
fn writes_first(mnemonic: Mnemonic) -> bool {
    !matches!(mnemonic, Mnemonic::Test | Mnemonic::Cmp | Mnemonic::Push | Mnemonic::Nop | Mnemonic::Bt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1000;
    const MEMSET: u64 = 0x1100;

    fn followed(parts: &[&[u8]]) -> Option<Kept> {
        kept(&parts.concat(), START, &|target| target == MEMSET, &mut |_, _| {})
    }

    const TO_STATIC: &[u8] = &[0x48, 0x89, 0x05, 0x10, 0, 0, 0]; // mov [rip+0x10], rax
    const RET: &[u8] = &[0xc3];

    #[test]
    fn a_store_to_a_fixed_address_names_it() {
        assert_eq!(followed(&[TO_STATIC]), Some(Kept::Static(START + 7 + 0x10)));
        let other = &[0xbf, 1, 0, 0, 0]; // mov edi, 1
        assert_eq!(followed(&[other, TO_STATIC]), Some(Kept::Static(START + 5 + 7 + 0x10)));
    }

    #[test]
    fn a_value_goes_through_registers_calls_tests_and_the_stack() {
        let to_rbx = &[0x48, 0x89, 0xc3]; // mov rbx, rax
        let call = &[0xe8, 0, 0, 0, 0];
        let rbx_to_static = &[0x48, 0x89, 0x1d, 0x10, 0, 0, 0];
        assert!(matches!(followed(&[to_rbx, call, rbx_to_static]), Some(Kept::Static(_))));
        assert_eq!(followed(&[call, TO_STATIC]), None, "a call overwrites its result");
        let (test, failed) = (&[0x48, 0x85, 0xc0], &[0x74, 0x20]); // test rax, rax; je
        assert!(matches!(followed(&[test, failed, TO_STATIC]), Some(Kept::Static(_))));
        let (passed, call) = (&[0x75, 0x05], &[0xe8, 0, 0, 0, 0]); // jne over a call that does not come back
        assert!(matches!(followed(&[test, passed, call, TO_STATIC]), Some(Kept::Static(_))));
        let (spill, reload) = (&[0x48, 0x89, 0x45, 0xf8], &[0x48, 0x8b, 0x45, 0xf8]); // [rbp-8]
        assert!(matches!(followed(&[spill, call, reload, TO_STATIC]), Some(Kept::Static(_))));
    }

    #[test]
    fn places_that_hold_the_value_are_told_of() {
        let code = [&[0x48, 0x89, 0xc3][..], &[0x48, 0x89, 0x45, 0xf8], &[0x31, 0xc0], RET].concat();
        let mut seen = Vec::new();
        assert_eq!(kept(&code, START, &|_| false, &mut |at, holder| seen.push((at - START, holder))), None);
        let [ax, bx, bp] = [0, 3, 5].map(Gpr::new);
        let (in_ax, in_bx) = (Holder::Register(ax), Holder::Register(bx));
        let spilled = Holder::Memory(bp, -8);
        let after_spill = [(3, spilled), (7, spilled), (7, in_ax), (7, in_bx), (9, in_bx)];
        assert_eq!(seen, [&[(0, in_ax), (3, in_ax), (3, in_bx)][..], &after_spill].concat());
    }

    #[test]
    fn a_store_behind_a_pointer_is_told_of_and_ends_the_way() {
        let mut seen = Vec::new();
        let code = [&[0x48, 0x89, 0x43, 0x08][..], TO_STATIC].concat(); // mov [rbx+8], rax
        assert_eq!(kept(&code, START, &|_| false, &mut |_, holder| seen.push(holder)), None);
        assert!(seen.contains(&Holder::Memory(Gpr::new(3), 8)));
    }

    #[test]
    fn a_returned_value_is_the_callers() {
        assert_eq!(followed(&[RET]), Some(Kept::Returned));
        let from_rbx = &[0x48, 0x89, 0xd8]; // mov rax, rbx
        assert_eq!(followed(&[from_rbx, RET]), None);
    }

    #[test]
    fn some_functions_return_what_they_are_given() {
        let to_rdi = &[0x48, 0x89, 0xc7]; // mov rdi, rax
        let call = &[0xe8, 0xf8, 0, 0, 0]; // from 0x1003 to 0x1100
        assert!(matches!(followed(&[to_rdi, call, TO_STATIC]), Some(Kept::Static(_))));
        assert_eq!(followed(&[to_rdi, &[0xe9, 0xf8, 0, 0, 0]]), Some(Kept::Returned));
        assert_eq!(followed(&[to_rdi, &[0xe8, 0xf0, 0, 0, 0], TO_STATIC]), None);
    }

    #[test]
    fn what_is_worked_on_or_goes_to_the_heap_is_lost() {
        let add = &[0x48, 0x83, 0xc0, 0x10]; // add rax, 16
        assert_eq!(followed(&[add, TO_STATIC]), None);
        let field = &[0x48, 0x89, 0x43, 0x08]; // mov [rbx+8], rax
        assert_eq!(followed(&[field, TO_STATIC]), None);
        assert_eq!(followed(&[&[0x06]]), None, "no instruction");
        assert_eq!(followed(&[&[0xeb, 0x70]]), None, "out of the function");
        assert_eq!(followed(&[&[0xeb, 0xfe]]), None, "for ever");
    }
}
