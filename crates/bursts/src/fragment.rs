//! Blocks as a copy: the program's instructions, and between them what counts and what keeps the thread in copies.
//!
//! - `counting` says what is counted: a few ways between blocks, where no flag is needed if there is such a place.
//! - A small loop stands several times behind each other (`loops`): its rounds are told by laps and by where it is left.
//! - A call pushes the program's own return address, so the stack never shows a copy. Returns, and calls and jumps
//!   through registers and memory, look up where they go (`sequence`).
//! - What can come round again counts down, and leaves at zero: nobody stays in copies for ever.

use std::collections::BTreeMap;

use iced_x86::{Code, Instruction};

use crate::area::{Area, Control, Kind};
use crate::blocks::{Block, End, is_plain};
use crate::counting::{Counter, Counting, Flow, Way};
use crate::flags::Needed;
use crate::log::{Log, LoggedOperand, operands};
use crate::loops::{Loops, Repeated};
use crate::sequence::{Emitted, Label, Lookup, Origin, Place, Sequence, Then, load_target, load_top};

/// What a counter goes to when a thread is let in: rounds after which it leaves by itself. The fastest round takes some
/// cycles, so this is more than a window lasts; most take less than a microsecond, so it is seconds at most. Assumed.
pub const ROUNDS: u64 = 1 << 24;

/// A copy of blocks that hang together.
#[derive(Debug, Default)]
pub(crate) struct Fragment {
    /// Code, for where it was made for.
    pub(crate) code: Vec<u8>,
    /// By address of an instruction in the copy, ascending: the state of the program before it.
    pub(crate) origins: Vec<(u64, Origin)>,
    /// Addresses of the program's own instructions in the copy, ascending.
    pub(crate) own: Vec<u64>,
    /// By address in the program: the copy of that instruction.
    pub(crate) instructions: BTreeMap<u64, u64>,
    /// By start of a block that others may come to: where they do.
    pub(crate) blocks: BTreeMap<u64, u64>,
    /// Words that hold an address to be jumped to, and the address in the program.
    pub(crate) links: Vec<(u64, u64)>,
    /// Words that hold an address, and the address.
    pub(crate) constants: Vec<(u64, u64)>,
    /// By address of the program: the way out to it.
    pub(crate) ways_out: BTreeMap<u64, u64>,
    /// What the counters tell.
    pub(crate) flow: Flow,
    /// Functions that are called.
    pub(crate) callees: Vec<u64>,
    /// Words of the program that say where to go, at addresses that its code names.
    pub(crate) slots: Vec<u64>,
    /// Where calls come back to: in the program, and in the copy.
    pub(crate) returns: Vec<(u64, u64)>,
}

/// What a fragment needs to know of those before it.
pub(crate) struct Surroundings<'a> {
    pub(crate) area: &'a mut Area,
    /// Copies of blocks by their addresses in the program, all areas.
    pub(crate) copied: &'a BTreeMap<u64, u64>,
    /// Words of this area that hold where to jump, by address in the program.
    pub(crate) linked: &'a BTreeMap<u64, u64>,
    /// Where addresses are written down, if that is what the copy is for, and the operands by their numbers.
    pub(crate) log: Option<(Log, &'a mut Vec<LoggedOperand>)>,
}

/// Makes the copy; `None` where there is no room for it, or it cannot be encoded.
pub(crate) fn fragment<'a>(blocks: &'a BTreeMap<u64, Block>, entry: u64, around: Surroundings<'a>) -> Option<Fragment> {
    let word = &mut |kind| around.area.word(kind);
    let mut loops = Loops::of(blocks, entry);
    let (counting, flow) = if around.log.is_some() {
        loops = loops.once();
        (Counting::of_ends(blocks, &loops, entry, word), Flow::default())
    } else {
        let counting = Counting::of(blocks, &loops, entry, word);
        let flow = counting.flow(blocks, &loops);
        (counting, flow)
    };
    let mut maker = Maker {
        needed: Needed::of(blocks),
        blocks,
        loops: &loops,
        counting: &counting,
        labels: BTreeMap::new(),
        entries: Vec::new(),
        later: Vec::new(),
        ways_out: BTreeMap::new(),
        trampolines: BTreeMap::new(),
        sequence: Sequence::default(),
        following: None,
        calls: Vec::new(),
        returns: Vec::new(),
        originals: Vec::new(),
        own: Vec::new(),
        made: Fragment { flow, ..Fragment::default() },
        around,
    };
    maker.once();
    for repeated in &loops.repeated {
        maker.repeated(repeated);
    }
    maker.entries();
    maker.later();
    maker.calls();
    maker.trampolines();
    maker.ways_out();
    maker.encode()
}

/// A call: its address, what it calls where that is known, where it comes back to.
struct Call {
    label: Label,
    at: u64,
    to: Option<u64>,
    back: u64,
}

/// A way between blocks, in a copy of a repeated loop or the only one, and the address that it leads to.
#[derive(Clone, Copy)]
struct Passage {
    way: Way,
    copy: usize,
    to: u64,
}

/// A jump on the opposite condition.
fn negated(branch: &Instruction) -> Instruction {
    let mut negated = *branch;
    negated.negate_condition_code();
    negated
}

struct Maker<'a> {
    blocks: &'a BTreeMap<u64, Block>,
    loops: &'a Loops,
    counting: &'a Counting,
    needed: Needed,
    /// By start of a block and round of a repeated loop; what follows the last round is one more.
    labels: BTreeMap<(u64, usize), Label>,
    /// Blocks that others may come to, and where they do.
    entries: Vec<(u64, Label)>,
    /// Ways that are jumped to because something is counted there.
    later: Vec<(Label, u64, Passage)>,
    ways_out: BTreeMap<u64, Label>,
    /// Jumps to what is copied elsewhere, or not yet.
    trampolines: BTreeMap<u64, Label>,
    sequence: Sequence,
    /// What stands behind this block.
    following: Option<Label>,
    /// Calls, of which what is behind the call itself is not made yet.
    calls: Vec<Call>,
    /// Where calls come back to: in the program, and here.
    returns: Vec<(u64, Label)>,
    /// Positions of the copies of the program's instructions, and their addresses.
    originals: Vec<(u64, usize)>,
    /// Positions of the program's own instructions.
    own: Vec<usize>,
    made: Fragment,
    around: Surroundings<'a>,
}

impl Maker<'_> {
    /// Blocks that stand once.
    fn once(&mut self) {
        let blocks = self.blocks.values().filter(|block| self.loops.around(block.start).is_none());
        let blocks: Vec<&Block> = blocks.collect();
        for (position, block) in blocks.iter().enumerate() {
            self.following = blocks.get(position + 1).map(|next| self.label(next.start, 0));
            self.block(block, 0);
        }
    }

    /// A loop whose rounds stand behind each other.
    fn repeated(&mut self, repeated: &Repeated) {
        let (head, rounds) = (repeated.head(), repeated.rounds);
        for round in 0..rounds {
            for (position, start) in repeated.blocks.iter().enumerate() {
                let following = repeated.blocks.get(position + 1).map_or((head, round + 1), |next| (*next, round));
                self.following = Some(self.label(following.0, following.1));
                self.block(&self.blocks[start], round);
            }
        }
        let (end, first) = (self.label(head, rounds), self.label(head, 0));
        self.sequence.place(end);
        self.count(self.counting.laps(head), head, self.needed.none_at(head));
        self.sequence.jump(first, head);
    }

    fn block(&mut self, block: &Block, copy: usize) {
        let label = self.label(block.start, copy);
        self.sequence.place(label);
        let spot = self.needed.none_in(block);
        for (position, instruction) in block.body.iter().enumerate() {
            if position == spot.unwrap_or(0) {
                self.count_in(block, instruction.ip(), spot.is_some());
            }
            self.copy(instruction);
        }
        if spot.unwrap_or(0) >= block.body.len() {
            self.count_in(block, block.end.address(), spot.is_some());
        }
        self.end(block, copy);
    }

    fn count_in(&mut self, block: &Block, at: u64, flags_are_free: bool) {
        for counter in self.counting.within(block.start) {
            self.count(*counter, at, flags_are_free);
        }
    }

    fn count(&mut self, counter: Counter, at: u64, flags_are_free: bool) {
        if counter.kind == Kind::Up {
            return self.sequence.count(self.around.area, counter.word, at, flags_are_free);
        }
        let way_out = self.way_out(at);
        self.sequence.count_down(self.around.area, counter.word, at, flags_are_free, way_out);
    }

    fn copy(&mut self, instruction: &Instruction) {
        self.mark(instruction.ip());
        self.log(instruction);
        self.own.push(self.sequence.emitted.len());
        self.sequence.push(*instruction, Origin::at(instruction.ip()));
    }

    /// Writes down where the operands of an instruction are, if that is what the copy is for.
    fn log(&mut self, instruction: &Instruction) {
        let Some((log, known)) = &mut self.around.log else { return };
        for (which, load_address) in operands(instruction) {
            let number = u32::try_from(known.len()).unwrap_or(u32::MAX);
            known.push(LoggedOperand { instruction: instruction.ip(), which });
            self.sequence.log(self.around.area, *log, load_address, number, instruction.ip());
        }
    }

    /// The next instruction is the copy of this one.
    fn mark(&mut self, at: u64) {
        self.originals.push((at, self.sequence.emitted.len()));
    }

    fn end(&mut self, block: &Block, copy: usize) {
        let next = |to| Passage { way: Way::Next(block.start), copy, to };
        self.mark(block.end.address());
        match &block.end {
            End::Next(to) | End::Jump { to, .. } => self.go(next(*to), block.start),
            End::Branch { branch, next: behind } => {
                let taken = Passage { way: Way::Taken(block.start), copy, to: branch.near_branch_target() };
                self.branch(branch, block.start, taken, next(*behind));
            }
            End::Leave { at } => {
                let way_out = self.way_out(*at);
                self.sequence.jump(way_out, *at);
            }
            End::Call { at, to, back } => {
                self.made.callees.push(*to);
                let label = self.sequence.label();
                self.calls.push(Call { label, at: *at, to: Some(*to), back: *back });
                self.sequence.call(label, *at);
                self.come_back(*back);
            }
            End::CallThrough { call, back } => {
                self.log(call);
                let label = self.sequence.label();
                self.calls.push(Call { label, at: call.ip(), to: None, back: *back });
                self.look_up(call.ip(), load_target(call), Then::Call(label));
                self.come_back(*back);
            }
            End::JumpThrough { jump } => {
                self.log(jump);
                self.look_up(jump.ip(), load_target(jump), Then::Jump);
            }
            End::Return { at, more } => self.look_up(*at, load_top(), Then::Return(*more)),
        }
    }

    fn branch(&mut self, branch: &Instruction, from: u64, taken: Passage, next: Passage) {
        if is_plain(branch) {
            // Where a round ends with a jump to the next, which stands behind it, nothing is jumped over.
            if self.is_behind(taken, from) {
                let label = self.passage(next, from);
                return self.own_branch(&negated(branch), label);
            }
            let label = self.passage(taken, from);
            self.own_branch(branch, label);
            return self.go(next, from);
        }
        // These reach 127 bytes far.
        let near = self.sequence.label();
        let behind = self.passage(next, from);
        self.own_branch(branch, near);
        self.sequence.jump(behind, next.to);
        self.sequence.place(near);
        self.following = None;
        self.go(taken, from);
    }

    fn own_branch(&mut self, branch: &Instruction, label: Label) {
        self.sequence.branch(branch, label);
        self.own.push(self.sequence.emitted.len() - 1);
    }

    /// A return comes here, and goes on in the copy of what is behind the call.
    fn come_back(&mut self, back: u64) {
        let label = self.sequence.label();
        self.sequence.place(label);
        self.returns.push((back, label));
        let way = Passage { way: Way::Back(back), copy: 0, to: back };
        // Who comes back comes from outside, so into the first round of whatever loop is there.
        self.count_on(way);
        let label = self.target(back);
        self.jump(label, back);
    }

    /// Goes a way, from a block; the last of it.
    fn go(&mut self, passage: Passage, from: u64) {
        self.count_on(passage);
        let label = self.destination(passage, from);
        self.jump(label, passage.to);
    }

    fn jump(&mut self, label: Label, at: u64) {
        if self.following != Some(label) {
            self.sequence.jump(label, at);
        }
    }

    fn count_on(&mut self, passage: Passage) {
        if let Some(counter) = self.counting.on(passage.way, passage.copy) {
            self.count(counter, passage.to, self.needed.none_at(passage.to));
        }
    }

    /// Whether a way within a repeated loop leads to what stands behind.
    fn is_behind(&mut self, passage: Passage, from: u64) -> bool {
        let is_free = self.loops.around(from).is_some() && self.counting.on(passage.way, passage.copy).is_none();
        is_free && Some(self.destination(passage, from)) == self.following
    }

    /// Where a jump goes that takes a way.
    fn passage(&mut self, passage: Passage, from: u64) -> Label {
        if self.counting.on(passage.way, passage.copy).is_none() {
            return self.destination(passage, from);
        }
        let label = self.sequence.label();
        self.later.push((label, from, passage));
        label
    }

    /// Where a way leads.
    fn destination(&mut self, passage: Passage, from: u64) -> Label {
        let Passage { copy, to, .. } = passage;
        match self.loops.around(to).filter(|around| self.loops.around(from) == Some(*around)) {
            Some(around) if self.loops.repeated[around].head() == to => self.label(to, copy + 1),
            Some(_) => self.label(to, copy),
            None => self.target(to),
        }
    }

    fn target(&mut self, to: u64) -> Label {
        if self.blocks.contains_key(&to) {
            return self.label(to, 0);
        }
        *self.trampolines.entry(to).or_insert_with(|| self.sequence.label())
    }

    fn label(&mut self, start: u64, copy: usize) -> Label {
        *self.labels.entry((start, copy)).or_insert_with(|| self.sequence.label())
    }

    fn way_out(&mut self, to: u64) -> Label {
        *self.ways_out.entry(to).or_insert_with(|| self.sequence.label())
    }

    /// Where others come in.
    fn entries(&mut self) {
        self.following = None;
        for start in self.counting.entries() {
            let way = Passage { way: Way::In(start), copy: 0, to: start };
            let block = self.label(start, 0);
            if self.counting.on(way.way, 0).is_none() {
                self.entries.push((start, block));
                continue;
            }
            let label = self.sequence.label();
            self.sequence.place(label);
            self.count_on(way);
            self.sequence.jump(block, start);
            self.entries.push((start, label));
        }
    }

    fn later(&mut self) {
        for (label, from, passage) in std::mem::take(&mut self.later) {
            self.sequence.place(label);
            self.go(passage, from);
        }
    }

    /// What calls lead to first: the return address becomes the program's.
    fn calls(&mut self) {
        for Call { label, at, to, back } in std::mem::take(&mut self.calls) {
            self.sequence.place(label);
            let word = self.constant(back);
            self.sequence.called(word, at);
            match to {
                Some(to) => {
                    let label = self.entry(to);
                    self.sequence.jump(label, to);
                }
                None => self.sequence.jump_through(self.around.area.control(Control::Target), Place::Noted),
            }
        }
    }

    /// Where a call of a function goes: calls are counted as such, also where a function calls itself.
    fn entry(&mut self, to: u64) -> Label {
        match self.entries.iter().find(|(start, _)| *start == to) {
            Some((_, label)) => *label,
            None => *self.trampolines.entry(to).or_insert_with(|| self.sequence.label()),
        }
    }

    fn look_up(&mut self, at: u64, target: Instruction, then: Then) {
        self.made.slots.extend(target.is_ip_rel_memory_operand().then(|| target.ip_rel_memory_address()));
        let way_out = self.way_out(at);
        self.sequence.look_up(self.around.area, &Lookup { at, target, then }, way_out);
    }

    fn constant(&mut self, value: u64) -> u64 {
        let (word, is_new) = self.around.area.constant(value);
        self.made.constants.extend(is_new.then_some((word, value)));
        word
    }

    fn trampolines(&mut self) {
        for (to, label) in self.trampolines.clone() {
            self.sequence.place(label);
            if let Some(copy) = self.around.copied.get(&to).filter(|copy| self.around.area.code().contains(copy)) {
                self.sequence.jump_to(*copy, to);
                continue;
            }
            let word = self.around.linked.get(&to).copied().unwrap_or_else(|| {
                let word = self.around.area.word(Kind::Constant);
                self.made.links.push((word, to));
                word
            });
            self.sequence.jump_through(word, Place::At(to));
            if !self.around.copied.contains_key(&to) {
                self.way_out(to);
            }
        }
    }

    fn ways_out(&mut self) {
        for (to, label) in self.ways_out.clone() {
            let word = self.constant(to);
            self.sequence.place(label);
            self.sequence.leave(self.around.area, to, word);
        }
    }

    fn encode(mut self) -> Option<Fragment> {
        let base = self.around.area.next_code();
        let encoded = self.sequence.encoded(base)?;
        let instructions = self.sequence.emitted.iter().map(|emitted| emitted.instruction);
        let offsets = &encoded.new_instruction_offsets;
        // One that became several has states that nobody knows.
        if offsets.contains(&u32::MAX) || !self.around.area.take_code(encoded.code_buffer.len() as u64) {
            return None;
        }
        let address = |position: usize| base + u64::from(offsets[position]);
        let named: BTreeMap<u64, u64> =
            instructions.enumerate().map(|(position, one)| (one.ip(), address(position))).collect();
        let place = |label: &Label| named[&label.ip()];
        self.made.origins =
            self.sequence.emitted.iter().enumerate().map(|(at, emitted)| (address(at), emitted.origin)).collect();
        // Calls and returns are the program's, too.
        let is_call =
            |one: &Emitted| matches!(one.instruction.code(), Code::Call_rel32_64 | Code::Retnq | Code::Retnq_imm16);
        let calls =
            self.sequence.emitted.iter().enumerate().filter(|(_, one)| is_call(one)).map(|(position, _)| position);
        self.own.extend(calls);
        self.made.own = self.own.iter().map(|position| address(*position)).collect();
        self.made.own.sort_unstable();
        for (original, position) in &self.originals {
            self.made.instructions.entry(*original).or_insert_with(|| address(*position));
        }
        self.made.blocks = self.entries.iter().map(|(start, label)| (*start, place(label))).collect();
        self.made.returns = self.returns.iter().map(|(back, label)| (*back, place(label))).collect();
        self.made.ways_out = self.ways_out.iter().map(|(to, label)| (*to, place(label))).collect();
        self.made.code = encoded.code_buffer;
        Some(self.made)
    }
}
