//! Instrumented copies of machine code, which a thread runs for a moment at native speed.
//!
//! A thread is halted, its instruction pointer is moved into a copy of the code it is in, and it goes on: with its own
//! registers, stack and data, and each block counts, or each operand's address is written down. It is moved back by who
//! halted it, or leaves by itself where no copy can go: a system call, code that nobody copied. Nothing of the program
//! is patched. This is the framework of Arnold and Ryder (PLDI 2001) for binaries that nobody recompiled, entered at a
//! sample instead of at a check.
//!
//! Here copies are made and understood, without a process: [`Copies`] says what the process's memory must hold
//! ([`Write`]), how a thread is let in ([`WayIn`]), where a thread that is in a copy is in the program ([`Origin`]), and
//! what the counters mean.

mod area;
mod blocks;
mod copies;
mod counting;
mod flags;
mod fragment;
mod log;
mod loops;
mod sequence;
mod text;

pub use area::{AREA_BYTES, Area, CODE_BYTES, CONTROL_WORDS, Control, DATA_BYTES, TABLE_BELOW, TABLE_BYTES, Table};
pub use copies::{Copies, CountedBlock, WayIn, Write};
pub use fragment::ROUNDS;
pub use log::{LOG_BYTES, Log, LoggedOperand, Touched, Which};
pub use sequence::{FAREWELL, Origin, Place, SAVED_R11, SAVED_RAX, SAVED_RCX, SAVED_RDX};
pub use text::{LONGEST_INSTRUCTION, Text};
