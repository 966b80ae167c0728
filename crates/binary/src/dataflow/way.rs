//! Ways into loops and past them, and what running them leaves unknown.

use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::spills::kept;
use crate::instruction::RegisterSet;

/// A way into a loop: blocks that run one after the other before its header is reached.
pub(super) struct Way {
    /// Ends with the header.
    pub(super) blocks: Vec<BlockId>,
    /// By step of the way: loops of which other rounds run in between.
    pub(super) passed: Vec<Passed>,
}

/// One of the ways into a loop; another `choice` takes other turns where ways meet.
pub(super) fn way(function: &Function, inside: LoopId, choice: u64) -> Way {
    const LONGEST: usize = 24;
    let header = function.loops[inside].header;
    let mut way = Way { blocks: vec![header], passed: Vec::new() };
    while way.blocks.len() < LONGEST {
        let block = way.blocks[way.blocks.len() - 1];
        let forward = function.blocks[block].predecessors.iter().filter(|from| !function.dominates(block, **from));
        // Nothing comes to padding, and so nothing comes from there.
        let runs = |from: &&BlockId| **from == 0 || !function.blocks[**from].predecessors.is_empty();
        let open: Vec<BlockId> = forward.filter(runs).copied().collect();
        if open.is_empty() {
            break;
        }
        let from = open[usize::try_from(choice).unwrap_or(0) % open.len()];
        way.passed.push(Passed::between(function, inside, from, block));
        way.blocks.push(from);
    }
    way.blocks.reverse();
    way.passed.reverse();
    way
}

/// Loops of which a step of a way leaves rounds out.
pub(super) struct Passed {
    /// Those that it comes out of.
    left: Vec<LoopId>,
    /// Those around the target that it enters.
    entered: Vec<LoopId>,
}

impl Passed {
    fn between(function: &Function, inside: LoopId, from: BlockId, to: BlockId) -> Self {
        let target = function.loops[inside].header;
        let left = function.loops_around(from).filter(|id| !function.loops[*id].contains(target));
        let entered = function.loops_around(to).filter(|id| {
            let around = &function.loops[*id];
            *id != inside && around.contains(target) && around.header == to && !around.contains(from)
        });
        Self { left: left.collect(), entered: entered.collect() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = LoopId> {
        self.left.iter().chain(&self.entered).copied()
    }

    /// Registers that hold something else behind it than before.
    pub(super) fn changed(&self, function: &Function) -> RegisterSet {
        let left = self.left.iter().map(|id| changed(function, *id));
        let entered = self.entered.iter().map(|id| function.loops[*id].written.without(kept(function, *id).each_round));
        left.chain(entered).fold(RegisterSet::default(), RegisterSet::union)
    }
}

/// Registers that hold something else behind a loop than before it.
pub(super) fn changed(function: &Function, inside: LoopId) -> RegisterSet {
    function.loops[inside].written.without(kept(function, inside).at_exits)
}

/// What lies behind a block that control comes to.
pub enum Behind {
    /// It enters no inner loop: the block itself.
    Same,
    /// It enters this one, which leads to one place only.
    Loop(LoopId, BlockId),
    /// It is not told.
    Unclear,
}

/// Looks past the outermost inner loop of `inside` that is entered from one block to another.
pub fn behind(function: &Function, inside: LoopId, from: BlockId, to: BlockId) -> Behind {
    if to >= function.blocks.len() {
        return Behind::Same;
    }
    let entered = |id: &LoopId| {
        let inner = &function.loops[*id];
        inner.header == to && !inner.contains(from)
    };
    let Some(id) = function.loops_around(to).take_while(|id| *id != inside).filter(entered).last() else {
        return Behind::Same;
    };
    only_exit(function, id).map_or(Behind::Unclear, |exit| Behind::Loop(id, exit))
}

/// The one place that a loop leads to.
pub(super) fn only_exit(function: &Function, inside: LoopId) -> Option<BlockId> {
    let natural = &function.loops[inside];
    let next = natural.body.iter().flat_map(|block| &function.blocks[*block].successors);
    let mut exits = next.copied().filter(|block| !natural.contains(*block));
    let exit = exits.next()?;
    let leaves = natural.body.iter().any(|block| function.blocks[*block].leaves);
    (!leaves && exits.all(|other| other == exit)).then_some(exit)
}
