//! Operands in memory: how their address is made, and what is done there.

use super::registers::{Gpr, RegisterSet};

/// How wide one element of a memory operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// The instruction says so.
    Bytes(u32),
    /// A plain vector move, which serves any element type.
    Any,
}

/// What an instruction reads or writes of its thread's own storage: where that begins, nothing that a sample shows tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLocal {
    /// The instruction reads there.
    pub read: bool,
    /// The instruction writes there.
    pub write: bool,
    /// Bytes of one access.
    pub bytes: u32,
}

/// A memory operand that the program's data may lie under.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operand {
    /// Register that is added.
    pub base: Option<Gpr>,
    /// Register that is added `scale` times.
    pub index: Option<Gpr>,
    /// 1, 2, 4 or 8.
    pub scale: u64,
    /// Constant that is added, modulo 2^64; without a base the address itself, as the file has it.
    pub displacement: u64,
    /// The instruction reads there.
    pub read: bool,
    /// The instruction writes there.
    pub write: bool,
    /// Bytes of one access; for gathers those of all lanes together.
    pub bytes: u32,
    /// How wide an element is.
    pub element: Element,
    /// An index in a vector register: one address a lane.
    pub gather: bool,
    /// Of a repeated string instruction: the register that counts how often it is still accessed.
    pub repeats: Option<Gpr>,
}

impl Operand {
    /// Registers that the address is made of.
    pub fn registers(&self) -> RegisterSet {
        self.base.into_iter().chain(self.index).collect()
    }
}
