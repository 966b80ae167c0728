//! A function as basic blocks and natural loops.
//!
//! Built from the code bytes alone, by linear decoding from the function's start (`.eh_frame` bounds
//! make that exact). Natural loops are found from dominators (Cooper, Harvey, Kennedy, *A Simple, Fast
//! Dominance Algorithm*, 2001) and merged by header. Where an indirect jump goes is not known; it is
//! taken to reach every block that nothing else reaches.

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};

use crate::x86::instruction::{RegisterSet, Step};

/// Position of a block in [`Function::blocks`].
pub type BlockId = usize;
/// Position of a loop in [`Function::loops`].
pub type LoopId = usize;

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
}

impl Loop {
    /// Whether a block is part of it.
    pub fn contains(&self, block: BlockId) -> bool {
        self.body.binary_search(&block).is_ok()
    }
}

/// A decoded function.
#[derive(Debug)]
pub struct Function {
    /// Virtual address of the first byte.
    pub start: u64,
    /// Its instructions, by address.
    pub steps: Vec<Step>,
    /// Its blocks, by address.
    pub blocks: Vec<Block>,
    /// Its loops, in no order that matters.
    pub loops: Vec<Loop>,
    /// By block: its immediate dominator; the entry is its own.
    dominators: Vec<BlockId>,
    block_of: Vec<BlockId>,
}

impl Function {
    /// Decodes the bytes of a function that starts at a virtual address.
    pub fn decode(code: &[u8], start: u64) -> Self {
        let mut factory = InstructionInfoFactory::new();
        let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let steps: Vec<Step> = decoder.into_iter().map(|instruction| Step::new(instruction, &mut factory)).collect();
        let mut function =
            Self { start, blocks: cut(&steps), block_of: Vec::new(), loops: Vec::new(), dominators: Vec::new(), steps };
        function.block_of = blocks_of_steps(&function.blocks);
        function.connect();
        function.dominators = dominators(&function.blocks);
        function.loops = loops(&function);
        function.nest();
        function
    }

    /// Position of the instruction at a virtual address.
    pub fn step_at(&self, address: u64) -> Option<usize> {
        self.steps.binary_search_by_key(&address, |step| step.code.ip()).ok()
    }

    /// The block that an instruction is in.
    pub fn block_of(&self, step: usize) -> BlockId {
        self.block_of[step]
    }

    /// Whether every way from the entry to `block` goes through `over`.
    pub fn dominates(&self, over: BlockId, mut block: BlockId) -> bool {
        while block != over {
            let above = self.dominators[block];
            if above == block {
                return false;
            }
            block = above;
        }
        true
    }

    /// Loops around a block, innermost first.
    pub fn loops_around(&self, block: BlockId) -> impl Iterator<Item = LoopId> {
        std::iter::successors(self.blocks[block].inner_loop, |inner| self.loops[*inner].parent)
    }

    /// Whether control gets from one of the blocks `open` to a goal, going on only through blocks that `passes` lets.
    pub fn reaches(
        &self,
        mut open: Vec<BlockId>,
        goal: impl Fn(BlockId) -> bool,
        passes: impl Fn(BlockId) -> bool,
    ) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        while let Some(block) = open.pop() {
            if goal(block) {
                return true;
            }
            if passes(block) && !std::mem::replace(&mut seen[block], true) {
                open.extend(&self.blocks[block].successors);
            }
        }
        false
    }

    /// Whether the block runs exactly once in each round of the loop.
    pub fn once_per_round(&self, inside: LoopId, block: BlockId) -> bool {
        self.blocks[block].inner_loop == Some(inside) && self.in_every_round(inside, block)
    }

    /// Whether no round of the loop goes past the block.
    pub fn in_every_round(&self, inside: LoopId, block: BlockId) -> bool {
        self.loops[inside].latches.iter().all(|latch| self.dominates(block, *latch))
    }

    /// Blocks outside a loop that enter it.
    pub fn entries(&self, inside: LoopId) -> impl Iterator<Item = BlockId> {
        let natural = &self.loops[inside];
        self.blocks[natural.header].predecessors.iter().copied().filter(|from| !natural.contains(*from))
    }

    fn connect(&mut self) {
        let mut indirect = Vec::new();
        for block in 0..self.blocks.len() {
            let last = &self.steps[self.blocks[block].end - 1].code;
            let next = (block + 1 < self.blocks.len()).then_some(block + 1);
            let flow = last.flow_control();
            let jumps = matches!(flow, FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch);
            let target = jumps.then(|| self.step_at(last.near_branch_target()).map(|step| self.block_of[step]));
            let falls = matches!(
                flow,
                FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::Call | FlowControl::IndirectCall
            );
            let mut successors: Vec<BlockId> = target.flatten().into_iter().collect();
            successors.extend(next.filter(|_| falls));
            successors.dedup();
            let leaves = matches!(target, Some(None)) || flow == FlowControl::Return || falls && next.is_none();
            if flow == FlowControl::IndirectBranch {
                indirect.push(block);
            }
            self.blocks[block].leaves = leaves || flow == FlowControl::Exception || flow == FlowControl::Interrupt;
            self.link(block, &successors);
        }
        self.connect_indirect(&indirect);
    }

    fn link(&mut self, from: BlockId, to: &[BlockId]) {
        for &target in to {
            self.blocks[from].successors.push(target);
            self.blocks[target].predecessors.push(from);
        }
    }

    fn connect_indirect(&mut self, jumps: &[BlockId]) {
        let orphans: Vec<BlockId> =
            (1..self.blocks.len()).filter(|b| self.blocks[*b].predecessors.is_empty()).collect();
        for &jump in jumps {
            self.link(jump, &orphans);
            self.blocks[jump].leaves = true;
        }
    }

    fn nest(&mut self) {
        // Larger loops first, so that the last one to claim a block is its innermost.
        let mut order: Vec<LoopId> = (0..self.loops.len()).collect();
        order.sort_by_key(|id| std::cmp::Reverse(self.loops[*id].body.len()));
        for id in order {
            let header = self.loops[id].header;
            self.loops[id].parent = self.blocks[header].inner_loop;
            for block in self.loops[id].body.clone() {
                self.blocks[block].inner_loop = Some(id);
            }
        }
    }
}

fn cut(steps: &[Step]) -> Vec<Block> {
    let mut leader = vec![false; steps.len() + 1];
    leader[0] = true;
    leader[steps.len()] = true;
    for (position, step) in steps.iter().enumerate() {
        let flow = step.code.flow_control();
        if flow != FlowControl::Next {
            leader[position + 1] = true;
        }
        if matches!(flow, FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch) {
            let target = step.code.near_branch_target();
            steps.binary_search_by_key(&target, |other| other.code.ip()).into_iter().for_each(|at| leader[at] = true);
        }
    }
    let starts: Vec<usize> = (0..=steps.len()).filter(|position| leader[*position]).collect();
    let block = |first: usize, end: usize| {
        let work = steps[first..end].iter().map(Step::work).sum();
        Block { first, end, work, ..Block::default() }
    };
    starts.windows(2).map(|pair| block(pair[0], pair[1])).collect()
}

fn blocks_of_steps(blocks: &[Block]) -> Vec<BlockId> {
    blocks.iter().enumerate().flat_map(|(id, block)| std::iter::repeat_n(id, block.len())).collect()
}

/// Immediate dominators; blocks that cannot be reached are their own.
fn dominators(blocks: &[Block]) -> Vec<BlockId> {
    let order = reverse_postorder(blocks);
    let mut rank = vec![usize::MAX; blocks.len()];
    order.iter().enumerate().for_each(|(position, block)| rank[*block] = position);
    let mut dominator: Vec<Option<BlockId>> = vec![None; blocks.len()];
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
    dominator.into_iter().enumerate().map(|(block, over)| over.unwrap_or(block)).collect()
}

fn meet(dominator: &[Option<BlockId>], rank: &[usize], mut left: BlockId, mut right: BlockId) -> BlockId {
    while left != right {
        let deeper = if rank[left] > rank[right] { &mut left } else { &mut right };
        match dominator[*deeper] {
            Some(over) => *deeper = over,
            None => return left.min(right),
        }
    }
    left
}

fn reverse_postorder(blocks: &[Block]) -> Vec<BlockId> {
    let mut order = Vec::with_capacity(blocks.len());
    let mut seen = vec![false; blocks.len()];
    let mut stack: Vec<(BlockId, usize)> = Vec::new();
    if !blocks.is_empty() {
        seen[0] = true;
        stack.push((0, 0));
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

fn loops(function: &Function) -> Vec<Loop> {
    let mut latches: BTreeMap<BlockId, Vec<BlockId>> = BTreeMap::new();
    for (block, content) in function.blocks.iter().enumerate() {
        for &target in content.successors.iter().filter(|target| function.dominates(**target, block)) {
            latches.entry(target).or_default().push(block);
        }
    }
    latches.into_iter().map(|(header, latches)| natural_loop(function, header, latches)).collect()
}

fn natural_loop(function: &Function, header: BlockId, latches: Vec<BlockId>) -> Loop {
    let mut inside = vec![false; function.blocks.len()];
    inside[header] = true;
    let mut open = latches.clone();
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut inside[block], true) {
            open.extend(&function.blocks[block].predecessors);
        }
    }
    let body: Vec<BlockId> = (0..inside.len()).filter(|block| inside[*block]).collect();
    let steps =
        body.iter().flat_map(|block| &function.steps[function.blocks[*block].first..function.blocks[*block].end]);
    let written = steps.fold(RegisterSet::default(), |set, step| set.union(step.clobbered()));
    Loop { header, latches, body, parent: None, written }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two nested counted loops: `for i { body; for j { body } }`.
    /// 0x1000 xor eax,eax | 0x1002 xor ecx,ecx | 0x1004 inc rcx; cmp rcx,rdx; jne 0x1004 |
    /// 0x100c inc rax; cmp rax,rsi; jne 0x1002 | 0x1014 ret
    pub(crate) const NEST: &[u8] = &[
        0x31, 0xc0, 0x31, 0xc9, 0x48, 0xff, 0xc1, 0x48, 0x39, 0xd1, 0x75, 0xf8, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xf0,
        0x75, 0xee, 0xc3,
    ];

    #[test]
    fn nested_loops_are_found_with_their_nesting() {
        let function = Function::decode(NEST, 0x1000);
        assert_eq!(function.blocks.len(), 5);
        assert_eq!(function.loops.len(), 2);
        let inner = function.blocks[function.block_of(function.step_at(0x1004).unwrap())].inner_loop.unwrap();
        let outer = function.loops[inner].parent.unwrap();
        assert_eq!(function.loops[inner].body.len(), 1);
        assert_eq!(function.loops[outer].body.len(), 3);
        assert!(function.once_per_round(outer, 1) && function.once_per_round(outer, 3));
        assert!(!function.once_per_round(outer, 2), "the inner loop runs more than once");
        assert_eq!(function.entries(inner).collect::<Vec<_>>(), vec![1]);
        assert_eq!(function.loops[inner].written, RegisterSet(1 << 1));
    }

    #[test]
    fn dominance_is_that_of_a_diamond() {
        // 0: je 3 | 1: nop; jmp 4 -> | 2: nop | 3: ret   (75 03 90 eb 01 90 c3)
        let function = Function::decode(&[0x75, 0x03, 0x90, 0xeb, 0x01, 0x90, 0xc3], 0);
        assert_eq!(function.blocks.len(), 4);
        assert!(function.dominates(0, 3) && function.dominates(3, 3));
        assert!(!function.dominates(1, 3) && !function.dominates(2, 3) && !function.dominates(1, 2));
        assert!(function.loops.is_empty());
    }

    #[test]
    fn any_bytes_decode_to_something_consistent() {
        let bytes: Vec<u8> = (0u32..3000).map(|k| k.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
        let function = Function::decode(&bytes, 0x40_0000);
        assert_eq!(function.blocks.iter().map(Block::len).sum::<usize>(), function.steps.len());
        for natural in &function.loops {
            assert!(natural.body.iter().all(|block| function.dominates(natural.header, *block)));
        }
    }
}
