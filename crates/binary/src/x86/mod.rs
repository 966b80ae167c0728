//! The instructions of x86-64 processors: what each reads, writes and does. Only here is the decoder (iced-x86) met.

pub(crate) mod decode;
mod flow;
pub(crate) mod linkage;
mod memory;
mod operation;
pub(crate) mod registers;
pub(crate) mod result;
mod values;
mod vectors;
