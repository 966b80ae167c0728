//! A thread that is halted, and goes on here.

use iced_x86::InstructionInfoFactory;

use crate::bytes::Bytes;
use crate::decoded::Code;
use crate::memory::Memory;
use crate::registers::Registers;

/// A thread that is halted, and goes on here.
#[derive(Debug)]
pub struct Machine<B> {
    /// What it holds.
    pub registers: Registers,
    pub(crate) memory: Memory<B>,
    pub(crate) code: Code,
    pub(crate) factory: InstructionInfoFactory,
}

/// What became of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It was understood.
    Whole,
    /// It is none that is understood here.
    Other,
}

impl<B: Bytes> Machine<B> {
    /// A thread with these registers and this memory.
    pub fn new(registers: Registers, bytes: B) -> Self {
        let (memory, code) = (Memory::new(bytes), Code::default());
        Self { registers, memory, code, factory: InstructionInfoFactory::new() }
    }
}
