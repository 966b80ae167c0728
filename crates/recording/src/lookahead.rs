//! What a thread that was halted was about to do.

use crate::window::{BlockCount, Touch};

/// The next instructions of a thread that was halted for a moment, interpreted on what it held: none of them ran then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookahead {
    /// When, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Where the thread was.
    pub address: u64,
    /// Its stack pointer then.
    pub stack_pointer: u64,
    /// How many instructions could be told.
    pub instructions: u64,
    /// Blocks that were run, ascending by address.
    pub counts: Vec<BlockCount>,
    /// Conditional jumps among them, ascending by address.
    pub branches: Vec<BranchCount>,
    /// Where their operands were.
    pub touches: Vec<Touch>,
}

/// How often a conditional jump went either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchCount {
    /// Its address.
    pub address: u64,
    /// How often it jumped.
    pub taken: u64,
    /// How often it did not.
    pub passed: u64,
}
