//! What is known of the registers before and after an instruction.
//!
//! A sample shows the registers at one point; the operands of its basic block need them at others.
//! [`State::undo`] goes one instruction back, [`State::step`] one forward; what cannot be known
//! becomes unknown, never wrong: for every instruction that `undo` inverts, undo after step is the
//! identity (a property test).

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::{REGISTERS, register};
use crate::x86::instruction::{ACCUMULATOR, GENERAL, Gpr, Operand, RegisterSet, STACK_POINTER, Step, gpr};

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

/// Position in a sample of each general-purpose register.
const IN_SAMPLE: [usize; GENERAL] = {
    use register::{AX, BP, BX, CX, DI, DX, R8, SI, SP};
    [AX, CX, DX, BX, SP, BP, SI, DI, R8, R8 + 1, R8 + 2, R8 + 3, R8 + 4, R8 + 5, R8 + 6, R8 + 7]
};

impl State {
    /// Everything known, as in a sample of a module that is loaded at `bias`.
    pub fn of_sample(registers: &[u64; REGISTERS], bias: u64) -> Self {
        Self { values: IN_SAMPLE.map(|position| registers[position]), known: RegisterSet::ALL, bias }
    }

    /// Nothing known.
    pub fn unknown() -> Self {
        Self { values: [0; GENERAL], known: RegisterSet::default(), bias: 0 }
    }

    /// What a register holds, if that is known.
    pub fn get(&self, register: Gpr) -> Option<u64> {
        self.known.contains(register).then(|| self.values[register])
    }

    /// Registers of which nothing is known.
    pub fn unknown_registers(&self) -> RegisterSet {
        RegisterSet::ALL.without(self.known)
    }

    /// Makes a register hold a value, or one that is not known.
    pub fn set(&mut self, register: Gpr, value: Option<u64>) {
        match value {
            Some(value) => {
                self.values[register] = value;
                self.known.insert(register);
            }
            None => self.forget(RegisterSet::of(register)),
        }
    }

    fn forget_one(&mut self, register: Register) {
        if let Some(number) = gpr(register) {
            self.set(number, None);
        }
    }

    /// What these registers hold is not known any more.
    pub fn forget(&mut self, registers: RegisterSet) {
        registers.iter().for_each(|register| self.values[register] = 0);
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

    /// Goes back over an instruction: from the state after it to the state before it.
    pub fn undo(&mut self, step: &Step) {
        if step.is_call() {
            self.forget(step.clobbered());
        } else if !self.invert(&step.code) {
            self.forget(step.written);
        }
    }

    /// Whether the instruction could be inverted.
    fn invert(&mut self, code: &Instruction) -> bool {
        match code.mnemonic() {
            Mnemonic::Push => self.shift(STACK_POINTER, 8),
            Mnemonic::Mov => self.invert_move(code),
            Mnemonic::Pop => {
                let popped = code.op0_register();
                self.forget_one(popped);
                gpr(popped) != Some(STACK_POINTER) && self.shift(STACK_POINTER, 8u64.wrapping_neg())
            }
            _ => self.invert_arithmetic(code),
        }
    }

    /// What was copied is still where it came from; what was there before is lost.
    fn invert_move(&mut self, code: &Instruction) -> bool {
        let (Some(target), Some(source)) = (whole_target(code), source_register(code, 1)) else { return false };
        if target != source {
            self.set(source, self.get(source).or(self.get(target)));
            self.set(target, None);
        }
        true
    }

    fn invert_arithmetic(&mut self, code: &Instruction) -> bool {
        let Some(target) = whole_target(code) else { return false };
        match code.mnemonic() {
            Mnemonic::Add if code.op_count() == 2 => self.shift_back(code, target, u64::wrapping_neg),
            Mnemonic::Sub if code.op_count() == 2 => self.shift_back(code, target, |amount| amount),
            Mnemonic::Inc => self.shift(target, 1u64.wrapping_neg()),
            Mnemonic::Dec => self.shift(target, 1),
            Mnemonic::Xor => self.invert_xor(code, target),
            Mnemonic::Lea => self.invert_lea(code, target),
            _ => false,
        }
    }

    fn shift(&mut self, register: Gpr, amount: u64) -> bool {
        self.set(register, self.get(register).map(|value| value.wrapping_add(amount)));
        true
    }

    /// Takes the second operand off again; it must not be the target itself.
    fn shift_back(&mut self, code: &Instruction, target: Gpr, sign: fn(u64) -> u64) -> bool {
        match self.source(code, 1) {
            Some(amount) if source_register(code, 1) != Some(target) => self.shift(target, sign(amount)),
            _ => false,
        }
    }

    fn invert_xor(&mut self, code: &Instruction, target: Gpr) -> bool {
        match self.source(code, 1) {
            Some(mask) if source_register(code, 1) != Some(target) => {
                self.set(target, self.get(target).map(|value| value ^ mask));
                true
            }
            _ => false,
        }
    }

    /// `lea r, [r + d]` and `lea r, [r + s*k + d]` with another register s.
    fn invert_lea(&mut self, code: &Instruction, target: Gpr) -> bool {
        let (base, index) = (gpr(code.memory_base()), gpr(code.memory_index()));
        let added = match (base == Some(target), index) {
            (true, None) => Some(0),
            (true, Some(index)) if index != target => self.get(index),
            _ => return false,
        };
        let scaled = added.map(|value| value.wrapping_mul(u64::from(code.memory_index_scale())));
        match scaled {
            Some(scaled) => self.shift(target, scaled.wrapping_add(code.memory_displacement64()).wrapping_neg()),
            None => false,
        }
    }

    /// Goes over an instruction: from the state before it to the state after it. Loads are unknown.
    pub fn step(&mut self, step: &Step) {
        let code = &step.code;
        match code.mnemonic() {
            Mnemonic::Push => {
                self.shift(STACK_POINTER, 8u64.wrapping_neg());
            }
            Mnemonic::Pop => {
                self.shift(STACK_POINTER, 8);
                self.forget_one(code.op0_register());
            }
            Mnemonic::Cdqe => self.set(ACCUMULATOR, self.get(ACCUMULATOR).map(|value| sign_extend(value, 4))),
            _ if step.is_call() => self.forget(step.clobbered()),
            _ => {
                let result = self.result(code);
                self.forget(step.written);
                if let Some((register, value)) = result {
                    self.write(register, value);
                }
            }
        }
    }

    /// Target register and new value of the arithmetic that compilers use for addresses.
    fn result(&self, code: &Instruction) -> Option<(Register, u64)> {
        if code.op_count() == 0 || code.op0_kind() != OpKind::Register || !code.op0_register().is_gpr() {
            return None;
        }
        let target = code.op0_register();
        let value = match code.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => self.source(code, 1),
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                source_register(code, 1)?;
                self.source(code, 1).map(|value| sign_extend(value, code.op1_register().size()))
            }
            Mnemonic::Lea => self.lea(code),
            Mnemonic::Inc => self.read(target).map(|value| value.wrapping_add(1)),
            Mnemonic::Dec => self.read(target).map(|value| value.wrapping_sub(1)),
            Mnemonic::Neg => self.read(target).map(u64::wrapping_neg),
            Mnemonic::Not => self.read(target).map(|value| !value),
            Mnemonic::Imul if code.op_count() == 3 => Some(self.source(code, 1)?.wrapping_mul(self.source(code, 2)?)),
            _ => self.binary(code, target),
        };
        // A 32-bit write clears the upper half (Intel SDM vol. 1, 3.4.1.1); `write` sees to it.
        Some((target, value?)).filter(|(register, _)| register.size() >= 4)
    }

    fn binary(&self, code: &Instruction, target: Register) -> Option<u64> {
        if code.op_count() != 2 {
            return None;
        }
        if matches!(code.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
            && code.op1_kind() == OpKind::Register
            && code.op1_register() == target
        {
            return Some(0);
        }
        let (left, right) = (self.read(target)?, self.source(code, 1)?);
        let count = u32::try_from(right & if target.size() == 8 { 63 } else { 31 }).unwrap_or(0);
        match code.mnemonic() {
            Mnemonic::Add => Some(left.wrapping_add(right)),
            Mnemonic::Sub => Some(left.wrapping_sub(right)),
            Mnemonic::And => Some(left & right),
            Mnemonic::Or => Some(left | right),
            Mnemonic::Xor => Some(left ^ right),
            Mnemonic::Imul => Some(left.wrapping_mul(right)),
            Mnemonic::Shl => Some(left << count),
            Mnemonic::Shr => Some(left >> count),
            _ => None,
        }
    }

    fn lea(&self, code: &Instruction) -> Option<u64> {
        if matches!(code.memory_base(), Register::RIP | Register::EIP) {
            return Some(code.memory_displacement64().wrapping_add(self.bias));
        }
        let part = |register: Register| match register {
            Register::None => Some(0),
            _ => self.get(gpr(register)?),
        };
        let index = part(code.memory_index())?.wrapping_mul(u64::from(code.memory_index_scale()));
        Some(part(code.memory_base())?.wrapping_add(index).wrapping_add(code.memory_displacement64()))
    }

    /// Value of a register or immediate operand.
    pub fn source(&self, code: &Instruction, operand: u32) -> Option<u64> {
        match code.op_kind(operand) {
            OpKind::Register => self.read(code.op_register(operand)),
            OpKind::Memory => None,
            _ => code.try_immediate(operand).ok(),
        }
    }

    fn read(&self, register: Register) -> Option<u64> {
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        let value = self.get(gpr(register)?)?;
        match register.size() {
            8 => Some(value),
            4 => Some(value & 0xffff_ffff),
            2 => Some(value & 0xffff),
            _ if high => Some(value >> 8 & 0xff),
            _ => Some(value & 0xff),
        }
    }

    fn write(&mut self, register: Register, value: u64) {
        let kept = if register.size() == 4 { value & 0xffff_ffff } else { value };
        if let Some(number) = gpr(register) {
            self.set(number, Some(kept));
        }
    }
}

/// Number of the target when it is a whole 64-bit register: narrower writes lose what was there.
fn whole_target(code: &Instruction) -> Option<Gpr> {
    let register = (code.op_count() > 0 && code.op0_kind() == OpKind::Register).then(|| code.op0_register())?;
    gpr(register).filter(|_| register.size() == 8)
}

fn source_register(code: &Instruction, operand: u32) -> Option<Gpr> {
    if code.op_kind(operand) == OpKind::Register { gpr(code.op_register(operand)) } else { None }
}

fn sign_extend(value: u64, bytes: usize) -> u64 {
    let unused = 64 - 8 * u32::try_from(bytes).unwrap_or(8).min(8);
    ((value << unused).cast_signed() >> unused).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::instruction::tests::steps;
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
        fn undo_after_step_is_the_identity(before in state(), which in 0..INVERTIBLE.len()) {
            let step = &steps(INVERTIBLE[which])[0];
            let mut after = before;
            after.step(step);
            prop_assert_ne!(after, State::unknown());
            after.undo(step);
            prop_assert_eq!(after, before);
        }

        #[test]
        fn what_undo_still_knows_is_right(before in state(), bytes in prop::collection::vec(any::<u8>(), 1..12)) {
            for step in steps(&bytes).iter().take(1).filter(|step| step.operands.is_empty() && !step.is_call()) {
                let mut after = before;
                after.step(step);
                after.undo(step);
                for register in 0..GENERAL {
                    prop_assert!(after.get(register).is_none_or(|value| Some(value) == before.get(register)),
                        "{:?}", step.code);
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
        for step in &steps(&code) {
            state.step(step);
        }
        assert_eq!([0, 1, 2, 6].map(|register| state.get(register)), [Some(5), Some(240), Some(240), Some(0)]);
    }

    #[test]
    fn what_is_forgotten_is_as_if_it_had_never_been_known() {
        let mut state = State::of_sample(&[7; REGISTERS], 3);
        state.forget(RegisterSet::ALL.without(RegisterSet::of(5)));
        let mut expected = State { bias: 3, ..State::unknown() };
        expected.set(5, Some(7));
        assert_eq!(state, expected);
        assert_eq!(state.unknown_registers().iter().count(), GENERAL - 1);
    }

    #[test]
    fn a_load_is_unknown_and_a_call_keeps_the_saved_registers() {
        let mut state = State { values: [7; GENERAL], known: RegisterSet::ALL, bias: 0 };
        for step in &steps(&[0x48, 0x8b, 0x03, 0xe8, 0, 0, 0, 0]) {
            state.step(step);
        }
        assert_eq!((state.get(0), state.get(3), state.get(6)), (None, Some(7), None));
    }
}
