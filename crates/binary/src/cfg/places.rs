//! Where to look in a sample for what a loop leaves alone: found once for each loop, by `dataflow`.

use crate::instruction::Gpr;

/// Where to look in a sample for what a loop leaves alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// Those that the loop or the way into it reads, and that the loop does not write.
    pub(crate) slots: Box<[Slot]>,
    /// Registers that come back, and where they wait.
    pub(crate) waiting: Box<[Waiting]>,
}

/// A place on the stack: bytes from the stack pointer to it, and its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) displacement: u64,
    pub(crate) bytes: u32,
}

/// A register that a loop writes and that comes back, and where it waits meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) register: Gpr,
    /// By position in the function, from the first instruction of the loop on.
    pub(crate) holders: Box<[Option<Holder>]>,
}

/// What holds a register's value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder {
    Register(Gpr),
    Slot(Slot),
}
