//! Which blocks lie on every way to a block (Cooper, Harvey, Kennedy, *A Simple, Fast Dominance Algorithm*, 2001).

use index_vec::{IndexSlice, IndexVec, index_vec};

use crate::cfg::block::{Block, BlockId};

/// Immediate dominators; blocks that cannot be reached are their own.
pub(super) fn dominators(blocks: &IndexSlice<BlockId, [Block]>) -> IndexVec<BlockId, BlockId> {
    let order = reverse_postorder(blocks);
    let mut rank: IndexVec<BlockId, usize> = index_vec![usize::MAX; blocks.len()];
    order.iter().enumerate().for_each(|(position, block)| rank[*block] = position);
    let mut dominator: IndexVec<BlockId, Option<BlockId>> = index_vec![None; blocks.len()];
    if let Some(entry) = order.first() {
        dominator[*entry] = Some(*entry);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().skip(1) {
            let known = blocks[block].predecessors.iter().copied().filter(|from| dominator[*from].is_some());
            let new = known.reduce(|left, right| meet(&dominator, &rank, left, right));
            changed |= new != dominator[block];
            dominator[block] = new;
        }
    }
    dominator.into_iter_enumerated().map(|(block, over)| over.unwrap_or(block)).collect()
}

/// Whether every way from the entry to `block` goes through `over`.
pub(super) fn dominates(dominators: &IndexSlice<BlockId, [BlockId]>, over: BlockId, mut block: BlockId) -> bool {
    while block != over {
        let above = dominators[block];
        if above == block {
            return false;
        }
        block = above;
    }
    true
}

fn meet(
    dominator: &IndexSlice<BlockId, [Option<BlockId>]>,
    rank: &IndexSlice<BlockId, [usize]>,
    mut left: BlockId,
    mut right: BlockId,
) -> BlockId {
    while left != right {
        let deeper = if rank[left] > rank[right] { &mut left } else { &mut right };
        match dominator[*deeper] {
            Some(over) => *deeper = over,
            None => return left.min(right),
        }
    }
    left
}

fn reverse_postorder(blocks: &IndexSlice<BlockId, [Block]>) -> Vec<BlockId> {
    let mut order = Vec::with_capacity(blocks.len());
    let mut seen: IndexVec<BlockId, bool> = index_vec![false; blocks.len()];
    let mut stack: Vec<(BlockId, usize)> = Vec::new();
    if let Some(entry) = blocks.indices().next() {
        seen[entry] = true;
        stack.push((entry, 0));
    }
    while let Some((block, next)) = stack.pop() {
        let Some(&target) = blocks[block].successors.get(next) else {
            order.push(block);
            continue;
        };
        stack.push((block, next + 1));
        if !std::mem::replace(&mut seen[target], true) {
            stack.push((target, 0));
        }
    }
    order.reverse();
    order
}
