//! The seam between machine code and what is made of it: all that differs from one architecture to another.
//!
//! x86-64 is the only one so far. Another one is a folder beside [`x86`](crate::x86) that offers these names, and a
//! choice by the header of the file, here.
//!
//! *Contract.* [`decode`] gives every instruction of a function as an [`Instruction`](crate::instruction::Instruction)
//! by address; what it cannot tell it leaves unknown, never wrong. [`outlines`] gives the same addresses and control
//! flow for less work. [`kept`] follows a returned value.

pub use crate::x86::decode::{decode, outlines};
pub use crate::x86::linkage::{Callee, OWN_ADDRESS, callee, linkage_slot};
pub use crate::x86::registers::{
    ARGUMENTS, CALLEE_SAVED, IN_SAMPLE, REGISTERS, RETURN_ADDRESS, STACK_POINTER, in_dwarf, numbered_by_dwarf, register,
};
pub use crate::x86::result::{Call, Carrier, Holder, Kept, kept};
