//! What is known of the registers before and after an instruction.
//!
//! A sample shows the registers at one point; the operands of its basic block need them at others.
//! [`State::undo`] goes one instruction back, [`State::execute`] one forward; what cannot be known
//! becomes unknown, never wrong: for every instruction that `undo` inverts, undo after execute is the
//! identity (a property test).

use crate::arch::{IN_SAMPLE, REGISTERS, STACK_POINTER};
use crate::dataflow::slots::value_of;
use crate::instruction::flags::sign_extended;
use crate::instruction::{
    Arithmetic, Compute, EffectiveAddress, GENERAL, Gpr, Instruction, Operand, Operation, Part, Place, RegisterSet,
    Source,
};

/// What a sample found on the stack, as it was at the sample: what the program changes there on the way is not followed.
#[derive(Debug, Clone, Copy)]
pub struct StackWords<'a> {
    /// Address of the first word: the stack pointer of the sample.
    pub pointer: u64,
    /// From there on; none where the sample brought none.
    pub words: &'a [u64],
}

impl StackWords<'_> {
    /// What so many bytes at an address hold, where they are among them.
    pub fn value(&self, address: u64, bytes: u32) -> Option<u64> {
        value_of(self.words, address.checked_sub(self.pointer)?, bytes)
    }
}

/// What a sample shows.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// Registers.
    pub state: &'a State,
    /// Words of the stack, from the stack pointer on; none where the sample brought none.
    pub stack: &'a [u64],
}

impl<'a> Shown<'a> {
    /// The stack with its address, which a state that moves on does not keep.
    pub fn stack_words(&self) -> StackWords<'a> {
        // Where no stack pointer is known, nothing lies at it.
        let nothing = StackWords { pointer: 0, words: &[] };
        self.state.get(STACK_POINTER).map_or(nothing, |pointer| StackWords { pointer, words: self.stack })
    }
}

/// Values of the general-purpose registers, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// Of registers that are not known, 0.
    values: [u64; GENERAL],
    known: RegisterSet,
    /// Load address of the module minus its virtual addresses: operands relative to the instruction
    /// pointer are decoded to virtual addresses.
    bias: u64,
}

impl State {
    /// Everything known, as in a sample of a module that is loaded at `bias`.
    pub fn of_sample(registers: &[u64; REGISTERS], bias: u64) -> Self {
        Self { values: IN_SAMPLE.map(|position| registers[position]), known: RegisterSet::ALL, bias }
    }

    /// Nothing known.
    pub fn unknown() -> Self {
        Self { values: [0; GENERAL], known: RegisterSet::default(), bias: 0 }
    }

    /// The same registers in code of a module that is loaded at `bias`.
    #[must_use]
    pub fn in_module(self, bias: u64) -> Self {
        Self { bias, ..self }
    }

    /// What a register holds, if that is known.
    pub fn get(&self, register: Gpr) -> Option<u64> {
        self.known.contains(register).then(|| self.values[register.index()])
    }

    /// Registers of which nothing is known.
    pub fn unknown_registers(&self) -> RegisterSet {
        self.known.others()
    }

    /// Makes a register hold a value, or one that is not known.
    pub fn set(&mut self, register: Gpr, value: Option<u64>) {
        match value {
            Some(value) => {
                self.values[register.index()] = value;
                self.known.insert(register);
            }
            None => self.forget(RegisterSet::of(&[register])),
        }
    }

    /// What these registers hold is not known any more.
    pub fn forget(&mut self, registers: RegisterSet) {
        registers.iter().for_each(|register| self.values[register.index()] = 0);
        self.known = self.known.without(registers);
    }

    /// What this state or else the other one knows.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut both = *self;
        for register in other.known.without(self.known).iter() {
            both.set(register, other.get(register));
        }
        both
    }

    /// Address of an operand; the first lane's base for gathers.
    pub fn address(&self, operand: &Operand) -> Option<u64> {
        let base = operand.base.map_or(Some(self.bias), |register| self.get(register))?;
        let index = operand.index.map_or(Some(0), |register| self.get(register))?;
        Some(base.wrapping_add(index.wrapping_mul(operand.scale)).wrapping_add(operand.displacement))
    }

    /// Address of an operand with its index taken as 0 where only the index is unknown.
    pub fn address_without_index(&self, operand: &Operand) -> Option<u64> {
        self.address(&Operand { index: None, ..*operand })
    }

    /// What a value is; one in memory is unknown.
    pub fn source(&self, source: Source) -> Option<u64> {
        match source {
            Source::Register(part) => self.read(part),
            Source::Constant(value) => Some(value),
            Source::Memory | Source::Unknown => None,
        }
    }

    fn read(&self, part: Part) -> Option<u64> {
        self.get(part.register).map(|value| part.of(value))
    }

    /// Goes back over an instruction: from the state after it to the state before it.
    pub fn undo(&mut self, instruction: &Instruction) {
        if instruction.is_call() || !self.invert(&instruction.operation) {
            self.forget(instruction.clobbered);
        }
    }

    /// Whether the instruction could be inverted.
    fn invert(&mut self, operation: &Operation) -> bool {
        match operation {
            Operation::Push => self.shift(STACK_POINTER, 8),
            Operation::Pop { to } => {
                self.forget(to.iter().copied().collect());
                *to != Some(STACK_POINTER) && self.shift(STACK_POINTER, 8u64.wrapping_neg())
            }
            Operation::Move { to: Place::Register(to), from: Source::Register(from) } => {
                to.whole().is_some_and(|to| self.invert_move(to, from.register))
            }
            Operation::Address { to, address } => to.whole().is_some_and(|to| self.invert_address(to, address)),
            Operation::Compute(compute) => self.invert_compute(compute),
            _ => false,
        }
    }

    /// What was copied is still where it came from; what was there before is lost.
    fn invert_move(&mut self, target: Gpr, source: Gpr) -> bool {
        if target != source {
            self.set(source, self.get(source).or(self.get(target)));
            self.set(target, None);
        }
        true
    }

    /// A whole register that something else was added to, taken from, or mixed with.
    fn invert_compute(&mut self, compute: &Compute) -> bool {
        let Place::Register(to) = compute.to else { return false };
        let itself = |source| matches!(source, Source::Register(part) if part.register == to.register);
        let (Some(target), Some(amount)) = (to.whole(), self.source(compute.right)) else { return false };
        if compute.left != Source::Register(to) || itself(compute.right) {
            return false;
        }
        match compute.what {
            Arithmetic::Add => self.shift(target, amount.wrapping_neg()),
            Arithmetic::Subtract => self.shift(target, amount),
            Arithmetic::Xor => {
                self.set(target, self.get(target).map(|value| value ^ amount));
                true
            }
            _ => false,
        }
    }

    fn shift(&mut self, register: Gpr, amount: u64) -> bool {
        self.set(register, self.get(register).map(|value| value.wrapping_add(amount)));
        true
    }

    /// The target's own value and a constant, or another register besides.
    fn invert_address(&mut self, target: Gpr, address: &EffectiveAddress) -> bool {
        let added = match (address.base == Some(target), address.index) {
            (true, None) => Some(0),
            (true, Some(index)) if index != target => self.get(index),
            _ => return false,
        };
        let scaled = added.map(|value| value.wrapping_mul(address.scale));
        match scaled {
            Some(scaled) => self.shift(target, scaled.wrapping_add(address.displacement).wrapping_neg()),
            None => false,
        }
    }

    /// Goes over an instruction: from the state before it to the state after it. Loads are unknown.
    pub fn execute(&mut self, instruction: &Instruction) {
        match instruction.operation {
            Operation::Push => {
                self.shift(STACK_POINTER, 8u64.wrapping_neg());
            }
            Operation::Pop { to } => {
                self.shift(STACK_POINTER, 8);
                self.forget(to.into_iter().collect());
            }
            operation => {
                let result = self.result(&operation);
                self.forget(instruction.clobbered);
                if let Some((to, value)) = result {
                    self.set(to.register, Some(to.of(value)));
                }
            }
        }
    }

    /// The same with what it loads, where that lies on the part of the stack that a sample brought and is a register's own
    /// width or half of it.
    pub fn execute_beside(&mut self, instruction: &Instruction, stack: &StackWords<'_>) {
        let loaded = match instruction.operation {
            Operation::Pop { to: Some(to) } => {
                self.get(STACK_POINTER).and_then(|address| Some((to, stack.value(address, 8)?)))
            }
            Operation::Move { to: Place::Register(to), from: Source::Memory } if to.bytes >= 4 => {
                let address = instruction.operands.first().and_then(|operand| self.address(operand));
                address.and_then(|address| Some((to.register, stack.value(address, to.bytes.into())?)))
            }
            _ => None,
        };
        self.execute(instruction);
        if let Some((to, value)) = loaded {
            self.set(to, Some(value));
        }
    }

    /// Target register and new value of the arithmetic that compilers use for addresses.
    fn result(&self, operation: &Operation) -> Option<(Part, u64)> {
        let (to, value) = match *operation {
            Operation::Move { to: Place::Register(to), from } | Operation::Extend { to, from, signed: false } => {
                (to, self.source(from))
            }
            Operation::Extend { to, from: Source::Register(from), signed: true } => {
                let bits = 8 * u32::from(from.bytes);
                (to, self.read(from).map(|value| sign_extended(value, bits).cast_unsigned()))
            }
            Operation::Address { to, address } => (to, self.effective(&address)),
            Operation::Negate(to) => (to, self.read(to).map(u64::wrapping_neg)),
            Operation::Complement(to) => (to, self.read(to).map(|value| !value)),
            Operation::Compute(compute) => match compute.to {
                Place::Register(to) => (to, self.computed(&compute)),
                _ => return None,
            },
            _ => return None,
        };
        // A 32-bit write clears the upper half (Intel SDM vol. 1, 3.4.1.1); narrower ones keep what is there.
        Some((to, value?)).filter(|(to, _)| to.bytes >= 4)
    }

    fn computed(&self, compute: &Compute) -> Option<u64> {
        if compute.is_zero() {
            return Some(0);
        }
        Some(compute.result(self.source(compute.left)?, self.source(compute.right)?))
    }

    fn effective(&self, address: &EffectiveAddress) -> Option<u64> {
        let part = |register: Option<Gpr>| register.map_or(Some(0), |register| self.get(register));
        let bias = if address.relative { self.bias } else { 0 };
        let index = part(address.index)?.wrapping_mul(address.scale);
        Some(part(address.base)?.wrapping_add(index).wrapping_add(address.displacement).wrapping_add(bias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::decode;
    use proptest::prelude::*;

    /// Every kind of instruction that `undo` claims to invert.
    const INVERTIBLE: &[&[u8]] = &[
        &[0x48, 0x83, 0xc0, 0x08],                   // add rax, 8
        &[0x48, 0x81, 0xe9, 0x00, 0x10, 0x00, 0x00], // sub rcx, 0x1000
        &[0x48, 0x01, 0xd0],                         // add rax, rdx
        &[0x49, 0x29, 0xc8],                         // sub r8, rcx
        &[0x48, 0xff, 0xc3],                         // inc rbx
        &[0x48, 0xff, 0xce],                         // dec rsi
        &[0x48, 0x83, 0xf7, 0x55],                   // xor rdi, 0x55
        &[0x48, 0x31, 0xd0],                         // xor rax, rdx
        &[0x48, 0x8d, 0x40, 0xf0],                   // lea rax, [rax-16]
        &[0x48, 0x8d, 0x44, 0xd0, 0x08],             // lea rax, [rax+rdx*8+8]
        &[0x53],                                     // push rbx
    ];

    fn state() -> impl Strategy<Value = State> {
        prop::array::uniform16(any::<u64>()).prop_map(|values| State { values, known: RegisterSet::ALL, bias: 0 })
    }

    proptest! {
        #[test]
        fn undo_after_execute_is_the_identity(before in state(), which in 0..INVERTIBLE.len()) {
            let instruction = &decode(INVERTIBLE[which], 0x1000)[0];
            let mut after = before;
            after.execute(instruction);
            prop_assert_ne!(after, State::unknown());
            after.undo(instruction);
            prop_assert_eq!(after, before);
        }

        #[test]
        fn what_undo_still_knows_is_right(before in state(), bytes in prop::collection::vec(any::<u8>(), 1..12)) {
            for instruction in decode(&bytes, 0x1000).iter().take(1).filter(|one| one.operands.is_empty() && !one.is_call()) {
                let mut after = before;
                after.execute(instruction);
                after.undo(instruction);
                for register in Gpr::all() {
                    prop_assert!(after.get(register).is_none_or(|value| Some(value) == before.get(register)),
                        "{instruction:?}");
                }
            }
        }
    }

    #[test]
    fn a_block_is_replayed_as_the_processor_would() {
        // mov eax, 5; lea rcx, [rax+rax*2]; shl ecx, 4; and ecx, 0xff; movsxd rdx, ecx; xor esi, esi
        let code = [
            0xb8, 5, 0, 0, 0, 0x48, 0x8d, 0x0c, 0x40, 0xc1, 0xe1, 4, 0x81, 0xe1, 0xff, 0, 0, 0, 0x48, 0x63, 0xd1, 0x31,
            0xf6,
        ];
        let mut state = State::unknown();
        for instruction in &decode(&code, 0x1000) {
            state.execute(instruction);
        }
        assert_eq!(
            [0, 1, 2, 6].map(|register| state.get(Gpr::new(register))),
            [Some(5), Some(240), Some(240), Some(0)]
        );
    }

    #[test]
    fn what_lies_on_the_stack_is_loaded_and_nothing_else() {
        // mov rax,[rdi+8]; mov ecx,[rax+4]; mov rdx,[rsi]; pop rbx
        let code = [0x48, 0x8b, 0x47, 0x08, 0x8b, 0x48, 0x04, 0x48, 0x8b, 0x16, 0x5b];
        let stack = StackWords { pointer: 0x7000, words: &[0x11, 0x2_0000_0022, 0x7008, 0x33] };
        let mut state = State::unknown();
        let (sp, si, di) = (Gpr::new(4), Gpr::new(6), Gpr::new(7));
        for (register, value) in [(sp, 0x7018), (si, 0x6ff8), (di, 0x7008)] {
            state.set(register, Some(value));
        }
        for instruction in &decode(&code, 0x1000) {
            state.execute_beside(instruction, &stack);
        }
        let held = [0, 1, 2, 3, 4].map(|register| state.get(Gpr::new(register)));
        assert_eq!(held, [Some(0x7008), Some(2), None, Some(0x33), Some(0x7020)]);
    }

    #[test]
    fn what_is_forgotten_is_as_if_it_had_never_been_known() {
        let frame = Gpr::new(5);
        let mut state = State::of_sample(&[7; REGISTERS], 3);
        state.forget(RegisterSet::of(&[frame]).others());
        let mut expected = State { bias: 3, ..State::unknown() };
        expected.set(frame, Some(7));
        assert_eq!(state, expected);
        assert_eq!(state.unknown_registers().iter().count(), GENERAL - 1);
    }

    #[test]
    fn a_load_is_unknown_and_a_call_keeps_the_saved_registers() {
        let mut state = State { values: [7; GENERAL], known: RegisterSet::ALL, bias: 0 };
        for instruction in &decode(&[0x48, 0x8b, 0x03, 0xe8, 0, 0, 0, 0], 0x1000) {
            state.execute(instruction);
        }
        assert_eq!([0, 3, 6].map(|register| state.get(Gpr::new(register))), [None, Some(7), None]);
    }
}
