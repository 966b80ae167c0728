//! What a halted thread is about to do: its next instructions, interpreted on a copy of what it holds.
//!
//! The thread itself does nothing meanwhile, and nothing of it is changed: what is written stays here. What an instruction
//! makes that is not understood becomes unknown, never wrong, and where control or a store would depend on it, all ends.
//! Tests hold every step of real programs against the processor's own.
//!
//! Approximations: instructions of floating point round to the nearest and know no exceptions, whatever `MXCSR` says.

mod alu;
mod bits;
mod bytes;
mod decoded;
mod ended;
mod float;
mod fused;
mod integer;
mod machine;
mod masks;
mod memory;
mod number;
mod operands;
mod packed;
mod registers;
mod shuffle;
mod single_bits;
mod stack;
mod step;
mod string;
mod vector;

pub use bytes::Bytes;
pub use ended::Ended;
pub use machine::Machine;
pub use registers::{MASKS, Registers, VECTOR_LANES, VECTORS};
pub use step::Step;
pub use string::Repeated;
