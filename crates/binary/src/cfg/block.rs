//! Blocks of a function and the loops that they make.

use std::sync::OnceLock;

use crate::cfg::places::Places;
use crate::instruction::RegisterSet;

pub use crate::index::{BlockId, LoopId};

/// Instructions that run one after the other; calls end a block, too.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Position of the first instruction.
    pub first: usize,
    /// One past the position of the last instruction.
    pub end: usize,
    /// Blocks that may run next.
    pub successors: Vec<BlockId>,
    /// Blocks that may have run before.
    pub predecessors: Vec<BlockId>,
    /// Control may leave the function at the end: return, tail call, jump into another part.
    pub leaves: bool,
    /// Innermost loop around the block.
    pub inner_loop: Option<LoopId>,
    /// How long it keeps a processor busy, in usual instructions.
    pub work: f64,
}

impl Block {
    /// How many instructions.
    pub fn len(&self) -> usize {
        self.end - self.first
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }
}

/// A natural loop; loops of one header are one loop.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The block through which each round begins.
    pub header: BlockId,
    /// Blocks that jump back to the header.
    pub latches: Vec<BlockId>,
    /// All blocks, inner loops included, ascending.
    pub body: Vec<BlockId>,
    /// The loop directly around.
    pub parent: Option<LoopId>,
    /// Registers that any instruction of the body writes.
    pub written: RegisterSet,
    /// Those of them that come back, once somebody asked.
    pub(crate) kept: OnceLock<Kept>,
    /// Where to look in a sample for what it leaves alone, once somebody asked.
    pub(crate) left_alone: OnceLock<Places>,
}

/// Registers that a loop writes and that hold again what they held: what lies on the stack or in another register while
/// something else needs them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kept {
    /// At the start of every round.
    pub(crate) each_round: RegisterSet,
    /// There, and wherever the loop is left.
    pub(crate) at_exits: RegisterSet,
}

impl Loop {
    /// Whether a block is part of it.
    pub fn contains(&self, block: BlockId) -> bool {
        self.body.binary_search(&block).is_ok()
    }
}
