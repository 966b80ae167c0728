//! Blocks of code that direct branches reach from an entry.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::text::{LONGEST_INSTRUCTION, Text};

/// A block: instructions that follow each other, and how it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Address of its first instruction.
    pub(crate) start: u64,
    /// All that are executed one after the other; without the one that decides where to go.
    pub(crate) body: Vec<Instruction>,
    /// How it ends.
    pub(crate) end: End,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Goes on behind its last instruction.
    Next(u64),
    /// Jumps.
    Jump { at: u64, to: u64 },
    /// Jumps or goes on.
    Branch { branch: Instruction, next: u64 },
    /// Calls a function.
    Call { at: u64, to: u64, back: u64 },
    /// Calls what a register or a word of memory says.
    CallThrough { call: Instruction, back: u64 },
    /// Jumps to what a register or a word of memory says.
    JumpThrough { jump: Instruction },
    /// Returns, and takes so many bytes more off the stack.
    Return { at: u64, more: u16 },
    /// What follows here is not copied: a system call, something that no copy can do, or no code.
    Leave { at: u64 },
}

impl End {
    /// Blocks of the same function that may be next.
    pub(crate) fn successors(&self) -> impl Iterator<Item = u64> {
        let (one, other) = match self {
            End::Next(next) => (Some(*next), None),
            End::Jump { to, .. } => (Some(*to), None),
            End::Branch { branch, next } => (Some(branch.near_branch_target()), Some(*next)),
            End::Call { .. } | End::CallThrough { .. } => (None, None),
            End::JumpThrough { .. } | End::Return { .. } | End::Leave { .. } => (None, None),
        };
        one.into_iter().chain(other)
    }

    /// Where a call comes back to.
    pub(crate) fn back(&self) -> Option<u64> {
        match self {
            End::Call { back, .. } | End::CallThrough { back, .. } => Some(*back),
            _ => None,
        }
    }
}

impl End {
    /// Address of the instruction that decides, or of what follows.
    pub(crate) fn address(&self) -> u64 {
        match self {
            End::Next(at) | End::Leave { at } => *at,
            End::Jump { at, .. } | End::Call { at, .. } | End::Return { at, .. } => *at,
            End::Branch { branch, .. } => branch.ip(),
            End::CallThrough { call, .. } => call.ip(),
            End::JumpThrough { jump } => jump.ip(),
        }
    }
}

impl Block {
    /// How many instructions it has.
    pub(crate) fn len(&self) -> usize {
        self.body.len() + usize::from(!matches!(self.end, End::Next(_) | End::Leave { .. }))
    }

    /// One past where its last instruction begins.
    pub(crate) fn end_address(&self) -> u64 {
        let decides = !matches!(self.end, End::Next(_) | End::Leave { .. });
        self.end.address() + u64::from(decides)
    }
}

/// A conditional jump by flags, neither by `rcx` nor with a count.
pub(crate) fn is_plain(branch: &Instruction) -> bool {
    !matches!(
        branch.mnemonic(),
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne | Mnemonic::Jrcxz | Mnemonic::Jecxz | Mnemonic::Jcxz
    )
}

/// Blocks that direct branches reach from an entry, by address; those that are copied already are not looked
/// into. There are none where no code is.
///
/// Where the entry is only where a thread happened to be (`is_target` not), no block begins there if code leads up to
/// it. `reaches` says whether a copy could get at an address from where it will lie.
pub(crate) fn discover(
    text: &dyn Text,
    entry: u64,
    is_target: bool,
    is_copied: &dyn Fn(u64) -> bool,
    reaches: &dyn Fn(u64) -> bool,
    most: usize,
) -> BTreeMap<u64, Block> {
    let mut found = Found { text, reaches, most, instructions: BTreeMap::new(), leaders: BTreeSet::from([entry]) };
    let mut waiting = vec![entry];
    while let Some(start) = waiting.pop() {
        if start == entry || !is_copied(start) {
            waiting.extend(found.follow(start, is_copied));
        }
    }
    if !is_target && found.is_led_up_to(entry) {
        found.leaders.remove(&entry);
    }
    found.cut()
}

/// Instructions found so far.
struct Found<'a> {
    text: &'a dyn Text,
    reaches: &'a dyn Fn(u64) -> bool,
    most: usize,
    /// By address; `None` is one that is not copied.
    instructions: BTreeMap<u64, Option<Instruction>>,
    leaders: BTreeSet<u64>,
}

impl Found<'_> {
    /// Decodes up to the end of a block; returns where it leads.
    fn follow(&mut self, start: u64, is_copied: &dyn Fn(u64) -> bool) -> Vec<u64> {
        let mut at = start;
        loop {
            if self.instructions.contains_key(&at) || at != start && is_copied(at) {
                return Vec::new();
            }
            // What is too much for one time is copied when somebody comes there.
            if self.instructions.len() >= self.most {
                return Vec::new();
            }
            let instruction = self.decode(at);
            self.instructions.insert(at, instruction);
            let Some(instruction) = instruction else { return Vec::new() };
            let targets = targets(&instruction);
            if instruction.flow_control() != FlowControl::Next {
                self.leaders.extend(&targets);
                return targets;
            }
            at = instruction.next_ip();
        }
    }

    fn decode(&self, at: u64) -> Option<Instruction> {
        let mut bytes = [0; LONGEST_INSTRUCTION];
        let length = self.text.fetch(at, &mut bytes);
        let instruction = Decoder::with_ip(64, &bytes[..length], at, DecoderOptions::NONE).decode();
        let reached = !instruction.is_ip_rel_memory_operand() || (self.reaches)(instruction.ip_rel_memory_address());
        let enters_sequence = address_taken(&instruction).is_some_and(|address| self.text.has_sequence(address));
        (can_be_copied(&instruction) && reached && !enters_sequence).then_some(instruction)
    }

    /// Whether the instruction before goes on here.
    fn is_led_up_to(&self, at: u64) -> bool {
        let before = self.instructions.range(..at).next_back();
        before
            .and_then(|(_, instruction)| instruction.as_ref())
            .is_some_and(|before| before.flow_control() == FlowControl::Next && before.next_ip() == at)
            && !self.is_jumped_to(at)
    }

    fn is_jumped_to(&self, at: u64) -> bool {
        let known = self.instructions.values().flatten();
        known
            .filter(|instruction| instruction.flow_control() != FlowControl::Next)
            .any(|jump| targets(jump).contains(&at))
    }

    /// Cuts what was found into blocks.
    fn cut(mut self) -> BTreeMap<u64, Block> {
        loop {
            let blocks = self.blocks();
            // Instructions may overlap: a jump behind a prefix. Where both come together a block begins.
            let beginnings: Vec<u64> = blocks.values().filter_map(|block| self.inside(block, &blocks)).collect();
            if beginnings.is_empty() {
                return blocks;
            }
            self.leaders.extend(beginnings);
        }
    }

    /// Where a block goes on in the middle of another.
    fn inside(&self, block: &Block, blocks: &BTreeMap<u64, Block>) -> Option<u64> {
        let End::Next(next) = block.end else { return None };
        (self.instructions.contains_key(&next) && !blocks.contains_key(&next)).then_some(next)
    }

    fn blocks(&self) -> BTreeMap<u64, Block> {
        let mut blocks = BTreeMap::new();
        let mut open: Option<Block> = None;
        for (&at, instruction) in &self.instructions {
            let mut block = match open.take() {
                Some(block) if block.end == End::Next(at) && !self.leaders.contains(&at) => block,
                other => {
                    blocks.extend(other.map(|block| (block.start, block)));
                    Block { start: at, body: Vec::new(), end: End::Leave { at } }
                }
            };
            block.end = end(at, instruction.as_ref());
            if let (End::Next(_), Some(instruction)) = (block.end, instruction) {
                block.body.push(*instruction);
            }
            open = Some(block);
        }
        blocks.extend(open.map(|block| (block.start, block)));
        blocks
    }
}

/// Where an instruction leads within its function, beside the one behind it.
fn targets(instruction: &Instruction) -> Vec<u64> {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => vec![instruction.next_ip(), instruction.near_branch_target()],
        FlowControl::UnconditionalBranch => vec![instruction.near_branch_target()],
        FlowControl::Call | FlowControl::IndirectCall => vec![instruction.next_ip()],
        _ => Vec::new(),
    }
}

fn end(at: u64, instruction: Option<&Instruction>) -> End {
    let Some(instruction) = instruction else { return End::Leave { at } };
    let (next, to) = (instruction.next_ip(), instruction.near_branch_target());
    match instruction.flow_control() {
        FlowControl::Next => End::Next(next),
        FlowControl::UnconditionalBranch => End::Jump { at, to },
        FlowControl::ConditionalBranch => End::Branch { branch: *instruction, next },
        FlowControl::Call => End::Call { at, to, back: next },
        FlowControl::IndirectCall => End::CallThrough { call: *instruction, back: next },
        FlowControl::IndirectBranch => End::JumpThrough { jump: *instruction },
        FlowControl::Return => End::Return { at, more: popped(instruction) },
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => End::Leave { at },
    }
}

fn popped(instruction: &Instruction) -> u16 {
    if instruction.op_count() == 1 { instruction.immediate16() } else { 0 }
}

/// Whether a copy of an instruction does what the instruction does. What asks the kernel for something does not: it
/// would wait in the copy. Nor does what another processor mode or a transaction needs.
fn can_be_copied(instruction: &Instruction) -> bool {
    if instruction.is_invalid() || instruction.is_privileged() {
        return false;
    }
    match instruction.flow_control() {
        FlowControl::Next => !matches!(
            instruction.mnemonic(),
            Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Popfq | Mnemonic::Popf | Mnemonic::Wrpkru
        ),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
            instruction.op0_kind() == OpKind::NearBranch64
        }
        FlowControl::IndirectCall => instruction.code() == Code::Call_rm64 && !goes_by_stack(instruction),
        FlowControl::IndirectBranch => instruction.code() == Code::Jmp_rm64 && !goes_by_stack(instruction),
        FlowControl::Return => matches!(instruction.code(), Code::Retnq | Code::Retnq_imm16),
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => false,
    }
}

/// The address of data that an instruction puts somewhere, as one that stands in it.
fn address_taken(instruction: &Instruction) -> Option<u64> {
    match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Lea, _) if instruction.is_ip_rel_memory_operand() => Some(instruction.ip_rel_memory_address()),
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64) => {
            Some(instruction.immediate(1))
        }
        _ => None,
    }
}

/// A jump to the stack pointer itself: no compiler makes one.
fn goes_by_stack(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::Bytes;

    fn found(bytes: &[u8]) -> BTreeMap<u64, Block> {
        discover(&Bytes(0x1000, bytes), 0x1000, true, &|_| false, &|_| true, 1000)
    }

    #[test]
    fn a_loop_with_a_call_is_four_blocks() {
        // 0: xor eax,eax | 2: call 0x1010 | 7: inc eax; cmp eax,ecx; jne 2 | d: ret
        let bytes = [0x31, 0xc0, 0xe8, 9, 0, 0, 0, 0xff, 0xc0, 0x39, 0xc8, 0x75, 0xf5, 0xc3];
        let blocks = found(&bytes);
        assert_eq!(blocks.keys().copied().collect::<Vec<_>>(), [0x1000, 0x1002, 0x1007, 0x100d]);
        assert_eq!(blocks[&0x1002].end, End::Call { at: 0x1002, to: 0x1010, back: 0x1007 });
        assert_eq!(blocks[&0x1007].end.successors().collect::<Vec<_>>(), [0x1002, 0x100d]);
        assert_eq!(blocks[&0x100d].end, End::Return { at: 0x100d, more: 0 });
    }

    #[test]
    fn instructions_that_overlap_come_together() {
        // je 3; lock cmpxchg [rdi],ecx with the jump behind the prefix; ret
        let blocks = found(&[0x74, 0x01, 0xf0, 0x0f, 0xb1, 0x0f, 0xc3]);
        assert_eq!(blocks.keys().copied().collect::<Vec<_>>(), [0x1000, 0x1002, 0x1003, 0x1006]);
        assert_eq!(blocks[&0x1002].end, End::Next(0x1006));
        assert_eq!(blocks[&0x1003].end, End::Next(0x1006));
    }

    #[test]
    fn system_calls_and_the_end_of_the_code_are_left_to_the_program() {
        assert_eq!(found(&[0x90, 0x0f, 0x05])[&0x1000].end, End::Leave { at: 0x1001 });
        assert_eq!(found(&[0x90])[&0x1000].end, End::Leave { at: 0x1001 });
        assert_eq!(found(&[0x90, 0xcc])[&0x1000].end, End::Leave { at: 0x1001 });
    }

    #[test]
    fn who_tells_the_kernel_of_a_sequence_is_left_to_the_program() {
        struct WithSequence<'a>(Bytes<'a>, u64);
        impl Text for WithSequence<'_> {
            fn fetch(&self, address: u64, into: &mut [u8; LONGEST_INSTRUCTION]) -> usize {
                self.0.fetch(address, into)
            }
            fn has_sequence(&self, address: u64) -> bool {
                address == self.1
            }
        }
        // nop; lea rax,[rip+0x10]; mov eax,0x2000; ret
        let bytes = [0x90, 0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xb8, 0, 0x20, 0, 0, 0xc3];
        let end = |sequence| {
            let text = WithSequence(Bytes(0x1000, &bytes), sequence);
            discover(&text, 0x1000, true, &|_| false, &|_| true, 1000)[&0x1000].end
        };
        assert_eq!(end(0x1018), End::Leave { at: 0x1001 });
        assert_eq!(end(0x2000), End::Leave { at: 0x1008 });
        assert_eq!(end(0x3000), End::Return { at: 0x100d, more: 0 });
    }

    #[test]
    fn what_is_too_much_at_once_is_gone_on_to() {
        // Three times inc eax, of which two are found.
        let code = [0xff, 0xc0, 0xff, 0xc0, 0xff, 0xc0, 0xc3];
        let blocks = discover(&Bytes(0x1000, &code), 0x1000, true, &|_| false, &|_| true, 2);
        assert_eq!(blocks[&0x1000].end, End::Next(0x1004));
        assert_eq!(blocks.len(), 1);
    }

    #[test]
    fn no_block_begins_where_a_thread_happened_to_be() {
        // inc eax; cmp eax,ecx; jne 0; ret
        let bytes = [0xff, 0xc0, 0x39, 0xc8, 0x75, 0xfa, 0xc3];
        let starts = |is_target| {
            let blocks = discover(&Bytes(0x1000, &bytes), 0x1002, is_target, &|_| false, &|_| true, 1000);
            blocks.keys().copied().collect::<Vec<_>>()
        };
        assert_eq!(starts(false), [0x1000, 0x1006]);
        assert_eq!(starts(true), [0x1000, 0x1002, 0x1006]);
    }
}
