//! The registers of a frame.

use super::cfi::{REGISTERS, RETURN_ADDRESS, RSP};

/// Registers of a frame, by their DWARF numbers. Of a caller only those are true that a callee saves.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Registers(pub(super) [u64; REGISTERS]);

impl Registers {
    pub(super) fn address(&self) -> u64 {
        self.0[RETURN_ADDRESS]
    }

    pub(super) fn stack_pointer(&self) -> u64 {
        self.0[RSP]
    }
}
