//! What registers and memory hold at a place of a function, in terms of how it was entered: addresses in its frame, of
//! the module and of what its arguments point to, and the one value that is followed.
//!
//! What is not known is in neither: a register that holds something else, memory that was not written. Words whose
//! address is not known are taken to be none of those that are.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction as Code, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

use super::memory::writes;
use super::registers::{ARGUMENTS, CALLEE_SAVED, STACK_POINTER, gpr};
use crate::instruction::{GENERAL, Gpr};

/// Functions longer than this are not gone through from their beginning: generated code.
const LONGEST: usize = 64 << 10;
/// Bytes of a word.
const WORD: i64 = 8;

/// What an address is a distance from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// The canonical frame address: the stack pointer before the call of the function.
    Frame,
    /// What the function has as an argument, by its position.
    Argument(usize),
    /// The load address.
    Module,
}

/// An address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    /// What from.
    pub(super) origin: Origin,
    /// How far.
    pub(super) distance: i64,
}

impl Address {
    pub(super) fn plus(self, more: i64) -> Self {
        Self { distance: self.distance.wrapping_add(more), ..self }
    }
}

/// What a register or a word of memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// The value that is followed.
    Followed,
    Address(Address),
}

/// What is known at a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values {
    registers: [Option<Value>; GENERAL],
    /// The two words of vector registers: where one is known, the register is here.
    vectors: BTreeMap<usize, Words>,
    memory: BTreeMap<Address, Value>,
}

/// Two words, the one at the lower address first.
type Words = [Option<Value>; 2];

/// What became of the value that is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// It was not stored.
    Not,
    /// It was stored there.
    At(Address),
    /// It was stored somewhere.
    Elsewhere,
}

impl Values {
    /// Before the first instruction of a function.
    pub(super) fn at_entry() -> Self {
        let mut values = Self::default();
        let address = |origin, distance| Some(Value::Address(Address { origin, distance }));
        // The return address is all that the function has of its frame.
        values.set(STACK_POINTER, address(Origin::Frame, -WORD));
        for (position, register) in ARGUMENTS.into_iter().enumerate() {
            values.set(register, address(Origin::Argument(position), 0));
        }
        values
    }

    /// Where no more is known than how far the frame is from a register.
    pub(super) fn in_frame(register: Gpr, offset: i64) -> Self {
        let mut values = Self::default();
        values.set(register, Some(Value::Address(Address { origin: Origin::Frame, distance: -offset })));
        values
    }

    /// Before a call, on every way to it; `None` where that is not known.
    ///
    /// # Arguments
    /// * `code` - of the whole function, from `start` on.
    /// * `back` - where the call returns to.
    pub(super) fn before_call(code: &[u8], start: u64, back: u64) -> Option<Self> {
        if code.len() > LONGEST {
            return None;
        }
        let mut ways = Ways { code, start, back, entries: BTreeMap::new(), waiting: Vec::new(), found: None };
        let targets = targets(code, start);
        ways.enter(start, Self::at_entry());
        while let Some(block) = ways.waiting.pop() {
            ways.block(block, &targets);
        }
        ways.found
    }

    pub(super) fn get(&self, register: Gpr) -> Option<Value> {
        self.registers[register.index()]
    }

    pub(super) fn set(&mut self, register: Gpr, value: Option<Value>) {
        self.registers[register.index()] = value;
    }

    /// Registers that hold the value that is followed.
    pub(super) fn holders(&self) -> impl Iterator<Item = Gpr> {
        Gpr::all().filter(|register| self.get(*register) == Some(Value::Followed))
    }

    /// Memory that holds it.
    pub(super) fn places(&self) -> impl Iterator<Item = Address> {
        self.memory.iter().filter(|(_, value)| **value == Value::Followed).map(|(address, _)| *address)
    }

    /// Whether nothing holds it.
    pub(super) fn is_lost(&self) -> bool {
        let in_vectors = self.vectors.values().flatten().any(|word| *word == Some(Value::Followed));
        !in_vectors && self.holders().next().is_none() && self.places().next().is_none()
    }

    /// How far from the frame each register points, if it does.
    pub(super) fn in_frame_at(&self) -> [Option<i64>; GENERAL] {
        self.registers.map(|value| match value {
            Some(Value::Address(Address { origin: Origin::Frame, distance })) => Some(distance),
            _ => None,
        })
    }

    /// After a call. A word whose very address it was given is the callee's to change.
    pub(super) fn called(&mut self) {
        for register in ARGUMENTS {
            if let Some(Value::Address(given)) = self.get(register)
                && self.memory.get(&given) != Some(&Value::Followed)
            {
                self.memory.remove(&given);
            }
        }
        for register in CALLEE_SAVED.others().iter().filter(|register| *register != STACK_POINTER) {
            self.set(register, None);
        }
        self.vectors.clear();
    }

    /// After an instruction that goes on to the next.
    pub(super) fn execute(&mut self, code: &Code, factory: &mut InstructionInfoFactory) -> Stored {
        match code.mnemonic() {
            Mnemonic::Mov => {
                let value = self.operand(code, 1);
                return self.write(code, value);
            }
            Mnemonic::Lea => {
                let address = self.address(code).map(Value::Address);
                return self.write(code, address);
            }
            Mnemonic::Push => {
                let value = self.operand(code, 0);
                self.move_register(STACK_POINTER, -WORD);
                let top = self.get(STACK_POINTER);
                return self.store(top, WORD, value);
            }
            Mnemonic::Pop if code.op0_kind() == OpKind::Register => {
                let value = self.get(STACK_POINTER).and_then(|top| self.load(top));
                self.move_register(STACK_POINTER, WORD);
                return self.write(code, value);
            }
            Mnemonic::Add | Mnemonic::Sub if code.op0_kind() == OpKind::Register => {
                let amount = code.try_immediate(1).ok().map(u64::cast_signed);
                if let (Some(register), Some(amount)) = (whole(code.op0_register()), amount) {
                    self.move_register(register, if code.mnemonic() == Mnemonic::Add { amount } else { -amount });
                    return Stored::Not;
                }
            }
            _ => {}
        }
        match self.words(code) {
            Some(words) => self.write_words(code, words),
            None => self.overwrite(code, factory),
        }
    }

    /// What an instruction writes into a vector register, or stores from one: compilers make pairs of words so.
    fn words(&self, code: &Code) -> Option<Words> {
        let last = code.op_count().checked_sub(1)?;
        let [low, high] = self.vector(code.op_register(0));
        match code.mnemonic() {
            Mnemonic::Movq | Mnemonic::Vmovq => Some([self.vector_operand(code, last)[0], None]),
            Mnemonic::Movlps | Mnemonic::Movlpd if code.op0_kind() == OpKind::Memory => {
                Some([self.vector_operand(code, 1)[0], None])
            }
            Mnemonic::Movaps | Mnemonic::Movups | Mnemonic::Movapd | Mnemonic::Movupd => {
                Some(self.vector_operand(code, last))
            }
            Mnemonic::Movdqa | Mnemonic::Movdqu | Mnemonic::Vmovdqa | Mnemonic::Vmovdqu => {
                Some(self.vector_operand(code, last))
            }
            Mnemonic::Vmovaps | Mnemonic::Vmovups | Mnemonic::Vmovapd | Mnemonic::Vmovupd => {
                Some(self.vector_operand(code, last))
            }
            Mnemonic::Punpcklqdq | Mnemonic::Unpcklpd | Mnemonic::Movlhps | Mnemonic::Movhps | Mnemonic::Movhpd
                if code.op0_kind() == OpKind::Register =>
            {
                Some([low, self.vector_operand(code, 1)[0]])
            }
            Mnemonic::Vpunpcklqdq | Mnemonic::Vunpcklpd | Mnemonic::Vmovlhps | Mnemonic::Vmovhps
                if code.op0_kind() == OpKind::Register =>
            {
                Some([self.vector_operand(code, 1)[0], self.vector_operand(code, 2)[0]])
            }
            Mnemonic::Pinsrq => {
                let word = self.operand(code, 1);
                Some(if code.immediate8() & 1 == 0 { [word, high] } else { [low, word] })
            }
            Mnemonic::Vpinsrq => {
                let ([low, high], word) = (self.vector_operand(code, 1), self.operand(code, 2));
                Some(if code.immediate8() & 1 == 0 { [word, high] } else { [low, word] })
            }
            _ => None,
        }
        .filter(|_| !code.op_register(0).is_ymm() && !code.op_register(0).is_zmm())
        .filter(|_| !code.op_register(last).is_ymm() && !code.op_register(last).is_zmm())
    }

    fn vector(&self, register: Register) -> Words {
        self.vectors.get(&register.number()).copied().filter(|_| register.is_vector_register()).unwrap_or_default()
    }

    fn vector_operand(&self, code: &Code, operand: u32) -> Words {
        match (code.op_kind(operand), code.op_register(operand)) {
            (OpKind::Register, register) if register.is_vector_register() => self.vector(register),
            (OpKind::Memory, _) => {
                let word = |distance| {
                    let address = self.address(code)?.plus(distance);
                    self.load(Value::Address(address)).filter(|_| distance < bytes(code))
                };
                [word(0), word(WORD)]
            }
            _ => [self.operand(code, operand), None],
        }
    }

    fn write_words(&mut self, code: &Code, words: Words) -> Stored {
        if code.op0_kind() == OpKind::Memory {
            return self.store_words(self.address(code).map(Value::Address), bytes(code), words);
        }
        match gpr(code.op0_register()) {
            Some(register) => self.set(register, words[0]),
            None => self.set_vector(code.op0_register(), words),
        }
        Stored::Not
    }

    fn set_vector(&mut self, register: Register, words: Words) {
        self.vectors.remove(&register.number());
        if words != Words::default() {
            self.vectors.insert(register.number(), words);
        }
    }

    fn store_words(&mut self, to: Option<Value>, bytes: i64, words: Words) -> Stored {
        self.store(to, bytes, None);
        let further = |to: Value, distance| match to {
            Value::Address(address) => Value::Address(address.plus(distance)),
            Value::Followed => Value::Followed,
        };
        let mut stored = Stored::Not;
        for (word, distance) in words.into_iter().zip([0, WORD]).filter(|(word, _)| word.is_some()).rev() {
            match self.store(to.map(|to| further(to, distance)), WORD, word) {
                Stored::Not => {}
                done => stored = done,
            }
        }
        stored
    }

    /// Of other instructions no more is known than what they write.
    fn overwrite(&mut self, code: &Code, factory: &mut InstructionInfoFactory) -> Stored {
        let info = factory.info(code);
        for used in info.used_registers().iter().filter(|used| writes(used.access())) {
            if let Some(register) = gpr(used.register()) {
                self.set(register, None);
            } else if used.register().is_vector_register() {
                self.vectors.remove(&used.register().number());
            }
        }
        let written = info.used_memory().iter().filter(|used| writes(used.access()));
        for used in written {
            let bytes = i64::try_from(used.memory_size().size()).unwrap_or(WORD);
            let address = self.sum(used.base(), used.index(), used.displacement());
            self.store(address.map(Value::Address), bytes, None);
        }
        Stored::Not
    }

    /// Where an instruction stores the value that is followed, if it does: a register and a distance.
    pub(super) fn store_of(&self, code: &Code) -> Option<(Gpr, i64)> {
        let is_plain = code.memory_index() == Register::None && code.segment_prefix() == Register::None;
        let base = whole(code.memory_base()).filter(|_| is_plain && code.op0_kind() == OpKind::Memory)?;
        let words = match code.mnemonic() {
            Mnemonic::Mov => [self.operand(code, 1), None],
            _ => self.words(code)?,
        };
        let first = words.iter().position(|word| *word == Some(Value::Followed))?;
        let distance = code.memory_displacement64().cast_signed();
        Some((base, if first == 0 { distance } else { distance + WORD }))
    }

    fn move_register(&mut self, register: Gpr, amount: i64) {
        let moved = match self.get(register) {
            Some(Value::Address(address)) => Some(Value::Address(address.plus(amount))),
            _ => None,
        };
        self.set(register, moved);
    }

    fn operand(&self, code: &Code, operand: u32) -> Option<Value> {
        match code.op_kind(operand) {
            OpKind::Register => self.get(whole(code.op_register(operand))?),
            OpKind::Memory => self.load(Value::Address(self.address(code)?)),
            _ => None,
        }
    }

    fn load(&self, from: Value) -> Option<Value> {
        match from {
            Value::Address(address) => self.memory.get(&address).copied(),
            Value::Followed => None,
        }
    }

    /// The first operand becomes a value; of less than a word none that is known.
    fn write(&mut self, code: &Code, value: Option<Value>) -> Stored {
        if code.op0_kind() == OpKind::Register {
            let is_whole = whole(code.op0_register()).is_some();
            if let Some(register) = gpr(code.op0_register()) {
                self.set(register, value.filter(|_| is_whole));
            }
            return Stored::Not;
        }
        let bytes = bytes(code);
        let address = self.address(code).map(Value::Address);
        self.store(address, bytes, value.filter(|_| bytes == WORD))
    }

    fn store(&mut self, to: Option<Value>, bytes: i64, value: Option<Value>) -> Stored {
        let Some(Value::Address(address)) = to else {
            return if value == Some(Value::Followed) { Stored::Elsewhere } else { Stored::Not };
        };
        let over = address.plus(1 - WORD)..address.plus(bytes);
        let old: Vec<Address> = self.memory.range(over).map(|(at, _)| *at).collect();
        for at in old {
            self.memory.remove(&at);
        }
        match value {
            Some(value) => self.memory.insert(address, value),
            None => return Stored::Not,
        };
        if value == Some(Value::Followed) { Stored::At(address) } else { Stored::Not }
    }

    /// Puts the value that is followed somewhere.
    pub(super) fn place(&mut self, address: Address) {
        self.store(Some(Value::Address(address)), WORD, Some(Value::Followed));
    }

    fn address(&self, code: &Code) -> Option<Address> {
        if code.segment_prefix() != Register::None {
            return None;
        }
        self.sum(code.memory_base(), code.memory_index(), code.memory_displacement64())
    }

    fn sum(&self, base: Register, index: Register, displacement: u64) -> Option<Address> {
        match (base, index) {
            (Register::RIP | Register::None, Register::None) => {
                Some(Address { origin: Origin::Module, distance: displacement.cast_signed() })
            }
            (base, Register::None) => match self.get(whole(base)?)? {
                Value::Address(address) => Some(address.plus(displacement.cast_signed())),
                Value::Followed => None,
            },
            _ => None,
        }
    }

    /// What is the same on another way; whether that is less than before.
    fn meet(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for register in Gpr::all() {
            if self.get(register) != other.get(register) {
                self.set(register, None);
            }
        }
        self.vectors.retain(|number, words| other.vectors.get(number) == Some(words));
        self.memory.retain(|address, value| other.memory.get(address) == Some(value));
        *self != before
    }
}

/// Bytes of an instruction's operand in memory.
fn bytes(code: &Code) -> i64 {
    i64::try_from(code.memory_size().size()).unwrap_or(WORD)
}

/// A register whose name is that of all of it.
fn whole(register: Register) -> Option<Gpr> {
    gpr(register).filter(|_| register.is_gpr64())
}

/// Addresses that a function's branches lead to.
fn targets(code: &[u8], start: u64) -> BTreeSet<u64> {
    let all = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let branches = all
        .into_iter()
        .filter(|one| matches!(one.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch));
    branches.map(|branch| branch.near_branch_target()).collect()
}

/// All ways through a function.
struct Ways<'c> {
    code: &'c [u8],
    start: u64,
    back: u64,
    /// What is known where a way begins.
    entries: BTreeMap<u64, Values>,
    waiting: Vec<u64>,
    /// What is known before the call.
    found: Option<Values>,
}

impl Ways<'_> {
    fn enter(&mut self, address: u64, values: Values) {
        if !(self.start..self.start + self.code.len() as u64).contains(&address) {
            return;
        }
        let is_new = match self.entries.get_mut(&address) {
            Some(known) => known.meet(&values),
            None => self.entries.insert(address, values).is_none(),
        };
        if is_new {
            self.waiting.push(address);
        }
    }

    /// From where a way begins to where others do.
    fn block(&mut self, from: u64, targets: &BTreeSet<u64>) {
        let Some(rest) = usize::try_from(from - self.start).ok().and_then(|at| self.code.get(at..)) else { return };
        let mut values = self.entries[&from].clone();
        let mut factory = InstructionInfoFactory::new();
        for code in Decoder::with_ip(64, rest, from, DecoderOptions::NONE) {
            if code.ip() != from && targets.contains(&code.ip()) {
                return self.enter(code.ip(), values);
            }
            match code.flow_control() {
                FlowControl::Next => {
                    values.execute(&code, &mut factory);
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    if code.next_ip() == self.back {
                        self.found = Some(values.clone());
                    }
                    values.called();
                }
                FlowControl::ConditionalBranch => {
                    self.enter(code.near_branch_target(), values.clone());
                    return self.enter(code.next_ip(), values);
                }
                FlowControl::UnconditionalBranch => return self.enter(code.near_branch_target(), values),
                _ => return,
            }
        }
    }
}
