//! Instructions of any architecture, in the terms the analysis needs.
//!
//! The folder of an architecture makes an [`Instruction`] of each one once, when it decodes a function; nobody else
//! meets the decoder. Promise: stack traffic of pushes, pops, calls and returns is not a memory operand here.

pub mod flags;
pub mod flow;
pub mod memory;
pub mod operation;
pub mod registers;

pub use flags::Flags;
pub use flow::{Condition, Flow};
pub use memory::{Element, Operand, ThreadLocal};
pub use operation::{Arithmetic, Compute, EffectiveAddress, Operation, Place, Source};
pub use registers::{GENERAL, Gpr, Part, RegisterSet, VectorRegister};

/// One instruction with what it does.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// Virtual address of its first byte.
    pub address: u64,
    /// Where control goes.
    pub flow: Flow,
    /// What it does, as far as that is followed.
    pub operation: Operation,
    /// Whether it changes any flag.
    pub sets_flags: bool,
    /// Whether it reads or writes the stack by itself: pushes, pops and returns.
    pub uses_stack: bool,
    /// Its operands in memory.
    pub operands: Vec<Operand>,
    /// What it touches of thread-local storage, which is no operand.
    pub thread_local: Option<ThreadLocal>,
    /// Registers that it writes.
    pub written: RegisterSet,
    /// Registers whose value after it is not what it was before: those that what it calls may change, too.
    pub clobbered: RegisterSet,
    /// Registers that what it writes is made of, other than through the addresses of `operands`.
    pub sources: RegisterSet,
    /// Vector registers that it names.
    pub vectors: Vectors,
    /// How long it keeps a processor busy, in usual instructions.
    pub work: f64,
}

impl Instruction {
    /// Whether it is a call, direct or not.
    pub fn is_call(&self) -> bool {
        self.flow.is_call()
    }
}

/// What an instruction does with vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vectors {
    /// By position of the operand: the register that it is; the first one is written.
    pub registers: [Option<VectorRegister>; 4],
    /// Bytes of the elements that it computes with.
    pub element: Option<u32>,
}

impl Vectors {
    /// Whether any operand is this register.
    pub fn name(&self, register: VectorRegister) -> bool {
        self.registers.contains(&Some(register))
    }
}

/// As much of an instruction as is looked at in all of a module: cheaper than all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outline {
    /// Virtual address of its first byte.
    pub address: u64,
    /// Where control goes.
    pub flow: Flow,
    /// The register that its first operand is, unless it is only compared, and what becomes of it.
    pub setting: Option<(Gpr, Setting)>,
}

/// What a register is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// A constant, or an address of the module.
    Constant(u64),
    /// What another register holds.
    Copy(Gpr),
    /// Anything else.
    Other,
}
