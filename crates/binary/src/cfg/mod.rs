//! A function as basic blocks and natural loops.
//!
//! Built from the code bytes alone, by linear decoding from the function's start (`.eh_frame` bounds
//! make that exact). Natural loops are found from dominators (Cooper, Harvey, Kennedy, *A Simple, Fast
//! Dominance Algorithm*, 2001) and merged by header. Where an indirect jump goes is not known; it is
//! taken to reach every block that nothing else reaches.

mod block;
mod dominators;
mod loops;
mod places;

use index_vec::{IndexSlice, IndexVec, index_vec};

pub(crate) use block::Kept;
pub use block::{Block, BlockId, Loop, LoopId};
pub(crate) use places::{Holder, Places, Slot, Waiting};

use crate::arch;
use crate::instruction::{Flow, Instruction, RegisterSet};
use dominators::{dominates, dominators};
use loops::loops;

/// A decoded function.
#[derive(Debug)]
pub struct Function {
    /// Virtual address of the first byte.
    pub start: u64,
    /// Its instructions, by address.
    pub instructions: Vec<Instruction>,
    /// Its blocks, by address.
    pub blocks: IndexVec<BlockId, Block>,
    /// Its loops, in no order that matters.
    pub loops: IndexVec<LoopId, Loop>,
    /// By block: its immediate dominator; the entry is its own.
    dominators: IndexVec<BlockId, BlockId>,
    /// By block: whether the program ends on every way from it.
    dead_ends: IndexVec<BlockId, bool>,
    block_of: Vec<BlockId>,
}

impl Function {
    /// Decodes the bytes of a function that starts at a virtual address.
    pub fn decode(code: &[u8], start: u64) -> Self {
        Self::decode_among(code, start, |_| None)
    }

    /// The same, where it is known of some functions which registers are not after a call what they were before.
    pub fn decode_among(code: &[u8], start: u64, mut changed_by: impl FnMut(u64) -> Option<RegisterSet>) -> Self {
        let mut instructions = arch::decode(code, start);
        for call in &mut instructions {
            if let Flow::Call(target) = call.flow {
                call.clobbered = changed_by(target).unwrap_or(call.clobbered);
            }
        }
        let mut function = Self {
            start,
            blocks: cut(&instructions),
            block_of: Vec::new(),
            loops: IndexVec::new(),
            dominators: IndexVec::new(),
            dead_ends: IndexVec::new(),
            instructions,
        };
        function.block_of = blocks_of_instructions(&function.blocks);
        function.connect();
        function.dominators = dominators(&function.blocks);
        function.dead_ends = function.find_dead_ends();
        function.loops = loops(&function.blocks, &function.instructions, &function.dominators);
        function.nest();
        function
    }

    /// Position of the instruction at a virtual address.
    pub fn instruction_at(&self, address: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&address, |instruction| instruction.address).ok()
    }

    /// The block that an instruction is in.
    pub fn block_of(&self, instruction: usize) -> BlockId {
        self.block_of[instruction]
    }

    /// The instructions of a block.
    pub fn instructions_of(&self, block: BlockId) -> &[Instruction] {
        &self.instructions[self.blocks[block].first..self.blocks[block].end]
    }

    /// The last instruction of a block.
    pub fn last(&self, block: BlockId) -> &Instruction {
        &self.instructions[self.blocks[block].end - 1]
    }

    /// The block that the jump at the end of a block names; nothing where that is not in this function.
    pub fn jump_target(&self, block: BlockId) -> Option<BlockId> {
        self.instruction_at(self.last(block).flow.jump_target()?).map(|target| self.block_of[target])
    }

    /// Whether every way from the entry to `block` goes through `over`.
    pub fn dominates(&self, over: BlockId, block: BlockId) -> bool {
        dominates(&self.dominators, over, block)
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
        let mut seen: IndexVec<BlockId, bool> = index_vec![false; self.blocks.len()];
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

    /// Whether no call of the function goes past the block.
    pub fn in_every_call(&self, block: BlockId) -> bool {
        let mut ends = self.blocks.iter_enumerated().filter(|(_, block)| block.successors.is_empty());
        ends.all(|(end, _)| self.dominates(block, end))
    }

    /// Blocks whose last act is another function, which returns to who called this one.
    pub fn tail_calls(&self) -> impl Iterator<Item = BlockId> {
        let jumps_out = |block: &BlockId| {
            self.blocks[*block].successors.is_empty()
                && matches!(self.last(*block).flow, Flow::Jump(_) | Flow::IndirectJump)
        };
        self.blocks.indices().filter(jumps_out)
    }

    /// Whether a way from one block to another was not taken by a program that went on: it leads to nothing but an instruction
    /// that stops the program, as compilers put behind a call that does not return, and there is another way.
    pub fn is_dead_end(&self, from: BlockId, to: BlockId) -> bool {
        let alive = |block: &BlockId| !self.dead_ends[*block];
        let from = &self.blocks[from];
        !alive(&to) && (from.leaves || from.successors.iter().any(alive))
    }

    fn find_dead_ends(&self) -> IndexVec<BlockId, bool> {
        let mut dead: IndexVec<BlockId, bool> = index_vec![false; self.blocks.len()];
        loop {
            let ends = |id: &BlockId| {
                let block = &self.blocks[*id];
                let stops = self.last(*id).flow == Flow::Stop;
                stops || !block.leaves && !block.successors.is_empty() && block.successors.iter().all(|to| dead[*to])
            };
            let found: Vec<BlockId> = self.blocks.indices().filter(|id| !dead[*id]).filter(ends).collect();
            if found.is_empty() {
                return dead;
            }
            for id in found {
                dead[id] = true;
            }
        }
    }

    /// Blocks outside a loop that enter it.
    pub fn entries(&self, inside: LoopId) -> impl Iterator<Item = BlockId> {
        let natural = &self.loops[inside];
        self.blocks[natural.header].predecessors.iter().copied().filter(|from| !natural.contains(*from))
    }

    fn connect(&mut self) {
        let mut indirect = Vec::new();
        for block in self.blocks.indices() {
            let flow = self.last(block).flow;
            let next = (block + 1 < self.blocks.len()).then_some(block + 1);
            let target = flow.jump_target().map(|_| self.jump_target(block));
            let falls = flow.falls_through();
            let mut successors: Vec<BlockId> = target.flatten().into_iter().collect();
            successors.extend(next.filter(|_| falls));
            successors.dedup();
            if flow == Flow::IndirectJump {
                indirect.push(block);
            }
            let ends = matches!(flow, Flow::Return | Flow::Stop);
            self.blocks[block].leaves = ends || matches!(target, Some(None)) || falls && next.is_none();
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
            self.blocks.indices().skip(1).filter(|b| self.blocks[*b].predecessors.is_empty()).collect();
        for &jump in jumps {
            self.link(jump, &orphans);
            self.blocks[jump].leaves = true;
        }
    }

    fn nest(&mut self) {
        // Larger loops first, so that the last one to claim a block is its innermost.
        let mut order: Vec<LoopId> = self.loops.indices().collect();
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

fn cut(instructions: &[Instruction]) -> IndexVec<BlockId, Block> {
    let mut leader = vec![false; instructions.len() + 1];
    leader[0] = true;
    leader[instructions.len()] = true;
    for (position, instruction) in instructions.iter().enumerate() {
        if instruction.flow != Flow::Next {
            leader[position + 1] = true;
        }
        if let Some(target) = instruction.flow.jump_target()
            && let Ok(at) = instructions.binary_search_by_key(&target, |other| other.address)
        {
            leader[at] = true;
        }
    }
    let starts: Vec<usize> = (0..=instructions.len()).filter(|position| leader[*position]).collect();
    let block = |first: usize, end: usize| {
        let work = instructions[first..end].iter().map(|instruction| instruction.work).sum();
        Block { first, end, work, ..Block::default() }
    };
    starts.windows(2).map(|pair| block(pair[0], pair[1])).collect()
}

fn blocks_of_instructions(blocks: &IndexSlice<BlockId, [Block]>) -> Vec<BlockId> {
    blocks.iter_enumerated().flat_map(|(id, block)| std::iter::repeat_n(id, block.len())).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::instruction::{Gpr, RegisterSet};

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
        let inner = function.blocks[function.block_of(function.instruction_at(0x1004).unwrap())].inner_loop.unwrap();
        let outer = function.loops[inner].parent.unwrap();
        assert_eq!(function.loops[inner].body.len(), 1);
        assert_eq!(function.loops[outer].body.len(), 3);
        let once = |block: usize| function.once_per_round(outer, BlockId::new(block));
        assert!(once(1) && once(3));
        assert!(!once(2), "the inner loop runs more than once");
        assert_eq!(function.entries(inner).collect::<Vec<_>>(), vec![1]);
        assert_eq!(function.loops[inner].written, RegisterSet::of(&[Gpr::new(1)]));
    }

    #[test]
    fn dominance_is_that_of_a_diamond() {
        // 0: je 3 | 1: nop; jmp 4 -> | 2: nop | 3: ret   (75 03 90 eb 01 90 c3)
        let function = Function::decode(&[0x75, 0x03, 0x90, 0xeb, 0x01, 0x90, 0xc3], 0);
        assert_eq!(function.blocks.len(), 4);
        let dominates = |over: usize, block: usize| function.dominates(BlockId::new(over), BlockId::new(block));
        assert!(dominates(0, 3) && dominates(3, 3));
        assert!(!dominates(1, 3) && !dominates(2, 3) && !dominates(1, 2));
        assert!(function.loops.is_empty());
    }

    #[test]
    fn any_bytes_decode_to_something_consistent() {
        let bytes: Vec<u8> = (0u32..3000).map(|k| k.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
        let function = Function::decode(&bytes, 0x40_0000);
        assert_eq!(function.blocks.iter().map(Block::len).sum::<usize>(), function.instructions.len());
        for natural in &function.loops {
            assert!(natural.body.iter().all(|block| function.dominates(natural.header, *block)));
        }
    }
}
