//! Natural loops: an edge back to a block that dominates its source; loops of one header are one.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use index_vec::{IndexSlice, IndexVec, index_vec};

use crate::cfg::block::{Block, BlockId, Loop, LoopId};
use crate::cfg::dominators::dominates;
use crate::instruction::{Instruction, RegisterSet};

pub(super) fn loops(
    blocks: &IndexSlice<BlockId, [Block]>,
    instructions: &[Instruction],
    dominators: &IndexSlice<BlockId, [BlockId]>,
) -> IndexVec<LoopId, Loop> {
    let mut latches: BTreeMap<BlockId, Vec<BlockId>> = BTreeMap::new();
    for (block, content) in blocks.iter_enumerated() {
        for &target in content.successors.iter().filter(|target| dominates(dominators, **target, block)) {
            latches.entry(target).or_default().push(block);
        }
    }
    latches.into_iter().map(|(header, latches)| natural_loop(blocks, instructions, header, latches)).collect()
}

fn natural_loop(
    blocks: &IndexSlice<BlockId, [Block]>,
    instructions: &[Instruction],
    header: BlockId,
    latches: Vec<BlockId>,
) -> Loop {
    let mut inside: IndexVec<BlockId, bool> = index_vec![false; blocks.len()];
    inside[header] = true;
    let mut open = latches.clone();
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut inside[block], true) {
            open.extend(&blocks[block].predecessors);
        }
    }
    let body: Vec<BlockId> = inside.indices().filter(|block| inside[*block]).collect();
    let inside = body.iter().flat_map(|block| &instructions[blocks[*block].first..blocks[*block].end]);
    let written = inside.fold(RegisterSet::default(), |set, one| set.union(one.clobbered));
    Loop { header, latches, body, parent: None, written, kept: OnceLock::new(), left_alone: OnceLock::new() }
}
