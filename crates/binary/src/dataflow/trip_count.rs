//! How often a loop goes round, found by running its control on invented data.
//!
//! What decides about another round is mostly arithmetic on registers: a counter against its end, a
//! length that is halved. The emulator runs a loop on a state in which everything unknown is an
//! invented number, the same for the same address. If two different inventions give the same number
//! of rounds, the number does not depend on what was invented, and is right. Where the distance to the
//! end shrinks evenly, the rest of the rounds is computed instead of run.

use std::collections::BTreeMap;

use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::modular::steps;
use crate::dataflow::state::State;
use crate::dataflow::stores::Stores;
use crate::instruction::Condition::{Equal, NotEqual};
use crate::instruction::flags::{low_bits, sign_extended};
use crate::instruction::{Arithmetic, Compute, Flags, Flow, Gpr, Instruction, Operation, Place, RegisterSet, Source};

/// Instructions run at most for one answer.
const MOST_INSTRUCTIONS: usize = 6000;
/// Rounds run before the rest may be computed.
const ROUNDS_SEEN: usize = 3;
/// Stands for every place outside of the function: no function has so many blocks.
const OUTSIDE: BlockId = BlockId::from_raw_unchecked(u32::MAX);
/// More rounds than this are a number that was invented.
const MOST_ROUNDS: f64 = 1e12;

/// Rounds from the entry to the exit: the same each time the loop is entered, whatever is known. Of that only
/// registers count that the loop leaves alone. Inner loops are run, or passed over where that takes too long.
pub fn rounds(function: &Function, inside: LoopId, known: Option<&State>) -> Option<f64> {
    let attempt = |over: bool| {
        agree(|invention| {
            let mut machine = Machine { over, ..Machine::new(function, inside, invention) };
            machine.start(known);
            machine.run(function.loops[inside].header, 0).map(|again| again + 1.0)
        })
    };
    attempt(false).or_else(|| attempt(true))
}

/// Value of a register when the loop is entered, where the sample's registers tell.
pub fn at_entry(function: &Function, inside: LoopId, register: Gpr, known: &State) -> Option<u64> {
    let value = |invention| {
        let mut machine = Machine::new(function, inside, invention);
        machine.start(Some(known));
        machine.state.get(register)
    };
    all_alike(value, |one, other| one == other)
}

/// Times the header is reached again before the exit, from the state before an instruction.
pub fn remaining(function: &Function, inside: LoopId, at: usize, state: &State) -> Option<f64> {
    agree(|invention| {
        let mut machine = Machine::new(function, inside, invention);
        machine.state = *state;
        let block = function.block_of(at);
        machine.run(block, at - function.blocks[block].first)
    })
}

/// Where invented numbers come from. Large and small ones, so that halving takes differently long.
#[derive(Clone, Copy)]
struct Invention {
    seed: u64,
    shift: u32,
}

impl Invention {
    fn number(self, of: u64) -> u64 {
        scramble(self.seed ^ of) >> self.shift
    }
}

/// One answer of all inventions: a branch on invented data goes either way, so a few agreeing attempts
/// could be chance.
fn agree(attempt: impl Fn(Invention) -> Option<f64>) -> Option<f64> {
    let possible = |invention| attempt(invention).filter(|rounds| *rounds < MOST_ROUNDS);
    all_alike(possible, |one, other| (one - other).abs() < 0.5)
}

fn all_alike<T>(attempt: impl Fn(Invention) -> Option<T>, alike: impl Fn(&T, &T) -> bool) -> Option<T> {
    const ATTEMPTS: u64 = 6;
    let invention = |number: u64| Invention { seed: scramble(number), shift: 36 * u32::from(number % 2 == 1) };
    let first = attempt(invention(0))?;
    let same = |number: u64| attempt(invention(number)).is_some_and(|other| alike(&first, &other));
    (1..ATTEMPTS).all(same).then_some(first)
}

/// A way into a loop: blocks that run one after the other before its header is reached.
struct Way {
    /// Ends with the header.
    blocks: Vec<BlockId>,
    /// By step of the way: registers that other rounds of a loop change in between.
    lost: Vec<RegisterSet>,
}

/// One of the ways into a loop; another `choice` takes other turns where ways meet.
fn way(function: &Function, inside: LoopId, choice: u64) -> Way {
    const LONGEST: usize = 24;
    let header = function.loops[inside].header;
    let mut way = Way { blocks: vec![header], lost: Vec::new() };
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
        way.lost.push(lost(function, inside, from, block));
        way.blocks.push(from);
    }
    way.blocks.reverse();
    way.lost.reverse();
    way
}

/// Registers changed by rounds that the way leaves out: of loops that it passes through, and of loops
/// around the target that it enters.
fn lost(function: &Function, inside: LoopId, from: BlockId, to: BlockId) -> RegisterSet {
    let target = function.loops[inside].header;
    let passed = function.loops_around(from).filter(|id| !function.loops[*id].contains(target));
    let entered = function.loops_around(to).filter(|id| {
        let around = &function.loops[*id];
        *id != inside && around.contains(target) && around.header == to && !around.contains(from)
    });
    passed.chain(entered).fold(RegisterSet::default(), |set, id| set.union(function.loops[id].written))
}

/// A processor without memory: what is loaded is invented, or what was stored there before.
struct Machine<'a> {
    function: &'a Function,
    inside: LoopId,
    /// Whether inner loops are passed over.
    over: bool,
    invention: Invention,
    invented: u64,
    state: State,
    flags: Flags,
    /// Distance to zero of the last comparison, and the bits of what it compared.
    distance: i64,
    bits: u32,
    stored: Stores,
    executed: usize,
    /// By block: distances at its jump, one a round.
    history: BTreeMap<BlockId, Vec<i64>>,
}

impl<'a> Machine<'a> {
    fn new(function: &'a Function, inside: LoopId, invention: Invention) -> Self {
        Self {
            function,
            inside,
            over: false,
            invention,
            invented: 0,
            state: State::unknown(),
            flags: Flags::default(),
            distance: 0,
            bits: 64,
            stored: Stores::default(),
            executed: 0,
            history: BTreeMap::new(),
        }
    }

    /// Runs the way into the loop, then takes over what the loop itself leaves alone.
    fn start(&mut self, known: Option<&State>) {
        let way = way(self.function, self.inside, self.invention.seed);
        let mut kept = known.copied().unwrap_or_else(State::unknown);
        kept.forget(self.function.loops[self.inside].written);
        // Back to the start of the way, for what the loop still shows of it.
        let mut shown = vec![kept];
        self.state = kept;
        for (block, lost) in way.blocks.iter().zip(&way.lost).rev() {
            self.state.forget(*lost);
            let back = self.function.instructions_of(*block).iter().rev();
            back.for_each(|instruction| self.state.undo(instruction));
            shown.push(self.state);
        }
        for ((block, lost), shown) in way.blocks.iter().zip(&way.lost).zip(shown.iter().rev().skip(1)) {
            self.function.instructions_of(*block).iter().for_each(|instruction| self.execute(instruction));
            self.state.forget(*lost);
            self.state = shown.or(&self.state);
        }
        self.fill();
    }

    fn invent(&mut self) -> u64 {
        self.invented += 1;
        self.invention.number(self.invented)
    }

    /// Runs from a block of the loop to its exit; how often the header came by.
    fn run(&mut self, mut block: BlockId, mut skip: usize) -> Option<f64> {
        let natural = &self.function.loops[self.inside];
        let mut rounds = 0usize;
        loop {
            for instruction in &self.function.instructions_of(block)[skip..] {
                self.execute(instruction);
                self.executed += 1;
            }
            skip = 0;
            if self.executed > MOST_INSTRUCTIONS {
                return None;
            }
            let next = self.follow(block)?;
            let next = if self.over { self.pass_over(block, next)? } else { next };
            if !natural.contains(next) {
                return Some(rounds as f64);
            }
            if let Some(rest) = self.rest(block) {
                return Some(rounds as f64 + rest);
            }
            rounds += usize::from(next == natural.header);
            block = next;
        }
    }

    /// The block behind the inner loop that control enters, with everything forgotten that the loop writes.
    fn pass_over(&mut self, from: BlockId, to: BlockId) -> Option<BlockId> {
        match behind(self.function, self.inside, from, to) {
            Behind::Same => Some(to),
            Behind::Unclear => None,
            Behind::Loop(inner, exit) => {
                self.state.forget(self.function.loops[inner].written);
                self.stored.forget();
                self.fill();
                Some(exit)
            }
        }
    }

    /// The block after this one.
    fn follow(&mut self, block: BlockId) -> Option<BlockId> {
        let flow = self.function.last(block).flow;
        match flow {
            Flow::Branch { .. } if !flow.is_taken(self.flags)? => Some(block + 1),
            // A jump out of the function leaves the loop, too.
            Flow::Branch { .. } | Flow::Jump(_) => Some(self.function.jump_target(block).unwrap_or(OUTSIDE)),
            _ if flow.falls_through() => Some(block + 1),
            _ => Some(OUTSIDE),
        }
    }

    /// Rounds still to come, where an exit's distance shrinks by the same amount each round.
    fn rest(&mut self, block: BlockId) -> Option<f64> {
        let content = &self.function.blocks[block];
        let exits = content.successors.iter().any(|to| !self.function.loops[self.inside].contains(*to));
        let own = content.inner_loop == Some(self.inside);
        if !exits || !own || !self.function.last(block).flow.asks_flags() {
            return None;
        }
        let history = self.history.entry(block).or_default();
        history.push(self.distance);
        let [.., before, between, now] = history[..] else { return None };
        let (step, earlier) = (now.wrapping_sub(between), between.wrapping_sub(before));
        if history.len() <= ROUNDS_SEEN || step != earlier || step == 0 || now == 0 {
            return None;
        }
        if matches!(self.function.last(block).flow, Flow::Branch { condition: Some(Equal | NotEqual), .. }) {
            let steps = steps(now.cast_unsigned().wrapping_neg(), step.cast_unsigned(), self.bits);
            return steps.map(|steps| steps as f64);
        }
        if (now < 0) != (step > 0) {
            return None;
        }
        // Exits that watch loaded data move unevenly and never come here.
        Some((now.unsigned_abs() as f64 / step.unsigned_abs() as f64).ceil())
    }

    fn execute(&mut self, instruction: &Instruction) {
        let loaded = self.loaded(instruction);
        if instruction.sets_flags {
            self.compare(&instruction.operation, loaded);
        }
        let address = instruction.operands.first().and_then(|operand| self.state.address(operand));
        let moved = self.stored_value(&instruction.operation, loaded);
        self.state.execute(instruction);
        if let (Some(operand), Some(address)) = (instruction.operands.first(), address) {
            if operand.write {
                let value = moved.unwrap_or_else(|| self.invent());
                self.stored.set(address, value);
            } else if let (Some(target), Some(value)) = (load_target(&instruction.operation), loaded) {
                self.state.set(target, Some(value));
            }
        }
        self.fill();
    }

    /// Invents what is not known.
    fn fill(&mut self) {
        for register in self.state.unknown_registers().iter() {
            let value = self.invent();
            self.state.set(register, Some(value));
        }
    }

    /// What an instruction stores, where it is a move or simple arithmetic.
    fn stored_value(&mut self, operation: &Operation, loaded: Option<u64>) -> Option<u64> {
        match *operation {
            Operation::Move { to: Place::Memory, from } => Some(self.value(from, loaded)),
            Operation::Compute(Compute { what: Arithmetic::Add, to: Place::Memory, right, .. }) => {
                Some(loaded?.wrapping_add(self.value(right, None)))
            }
            Operation::Compute(Compute { what: Arithmetic::Subtract, to: Place::Memory, right, .. }) => {
                Some(loaded?.wrapping_sub(self.value(right, None)))
            }
            _ => None,
        }
    }

    /// What the memory operand holds: the last store there, or an invention that belongs to the place.
    fn loaded(&mut self, instruction: &Instruction) -> Option<u64> {
        let operand = instruction.operands.first().filter(|operand| operand.read)?;
        let address = self.state.address(operand)?;
        let value = self.stored.get(address).unwrap_or_else(|| self.invention.number(address));
        Some(if operand.bytes >= 8 { value } else { value & ((1 << (8 * operand.bytes)) - 1) })
    }

    fn value(&mut self, source: Source, loaded: Option<u64>) -> u64 {
        let value = if source == Source::Memory { loaded } else { self.state.source(source) };
        value.unwrap_or_else(|| self.invent())
    }

    /// Sets flags and distance as the instruction does.
    fn compare(&mut self, operation: &Operation, loaded: Option<u64>) {
        let compared = match operation {
            Operation::Compute(compute) => self.compared(compute, loaded).map(|numbers| (numbers, compute.bits())),
            _ => None,
        };
        if let Some(((left, right), bits)) = compared {
            self.flags = Flags::of_difference(left, right, bits);
            self.distance = sign_extended(left.wrapping_sub(right), bits);
            self.bits = bits;
        } else {
            self.flags = Flags(self.invent());
            self.distance = self.invent().cast_signed();
        }
    }

    /// The two numbers whose difference sets the flags.
    fn compared(&mut self, compute: &Compute, loaded: Option<u64>) -> Option<(u64, u64)> {
        let known = [Arithmetic::Subtract, Arithmetic::Add, Arithmetic::And, Arithmetic::ShiftRight];
        if !known.contains(&compute.what) {
            return None;
        }
        let (left, right) = (self.value(compute.left, loaded), self.value(compute.right, loaded));
        Some(match compute.what {
            Arithmetic::Subtract => (left, right),
            Arithmetic::Add => (left, right.wrapping_neg()),
            Arithmetic::And => (left & right, 0),
            _ => (low_bits(left, compute.bits()) >> (right & 63), 0),
        })
    }
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
    let inner = &function.loops[id];
    let next = inner.body.iter().flat_map(|block| &function.blocks[*block].successors);
    let mut exits: Vec<BlockId> = next.copied().filter(|block| !inner.contains(*block)).collect();
    exits.dedup();
    let [exit] = exits[..] else { return Behind::Unclear };
    if inner.body.iter().any(|block| function.blocks[*block].leaves) { Behind::Unclear } else { Behind::Loop(id, exit) }
}

/// Register that a plain load fills.
fn load_target(operation: &Operation) -> Option<Gpr> {
    match operation {
        Operation::Move { to: Place::Register(to), .. } | Operation::Extend { to, signed: false, .. } => {
            Some(to.register)
        }
        _ => None,
    }
}

/// One well-mixed number per number (Steele, Lea, Flood, *Fast splittable pseudorandom number
/// generators*, 2014).
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg::tests::NEST;

    #[test]
    fn a_fixed_count_needs_no_sample() {
        // xor eax,eax | 2: inc rax; cmp rax, 40; jne 2 | ret
        let code = [0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0x83, 0xf8, 40, 0x75, 0xf7, 0xc3];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(40.0));
    }

    #[test]
    fn an_end_that_is_computed_from_an_unknown_start_is_as_good() {
        // mov rax,[rdi]; lea rdx,[rax+128] | add rcx,[rax]; add rax,8; cmp rax,rdx; jne | ret
        let code = [
            0x48, 0x8b, 0x07, 0x48, 0x8d, 0x90, 128, 0, 0, 0, 0x48, 0x03, 0x08, 0x48, 0x83, 0xc0, 8, 0x48, 0x39, 0xd0,
            0x75, 0xf4, 0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(16.0));
    }

    #[test]
    fn padding_before_a_loop_is_no_way_into_it() {
        // xor eax,eax; jmp 7 | 4: nop | 7: inc rax; cmp rax,40; jne 7 | ret
        let code = [0x31, 0xc0, 0xeb, 3, 0x0f, 0x1f, 0, 0x48, 0xff, 0xc0, 0x48, 0x83, 0xf8, 40, 0x75, 0xf7, 0xc3];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(40.0));
    }

    #[test]
    fn a_bound_in_a_register_comes_from_the_sample() {
        let function = Function::decode(NEST, 0x1000);
        let inner = function.blocks[2].inner_loop.unwrap();
        assert_eq!(rounds(&function, inner, None), None, "rdx is anything");
        let mut registers = [0; crate::arch::REGISTERS];
        registers[crate::arch::register::DX] = 1_000_000;
        registers[crate::arch::register::CX] = 999_990;
        let state = State::of_sample(&registers, 0);
        let mut kept = state;
        kept.forget(function.loops[inner].written);
        for known in [state, kept] {
            assert_eq!(rounds(&function, inner, Some(&known)), Some(1e6));
        }
        let at = function.blocks[2].first;
        assert_eq!(remaining(&function, inner, at, &state), Some(9.0), "ten rounds are left, this one included");
    }

    #[test]
    fn a_register_that_goes_around_counts_all_the_same() {
        // mov rdx,0x9e3779b97f4a7c15; mov rcx,rdx; imul rcx,rcx,1000; xor eax,eax | add rax,rdx; cmp rax,rcx; jne | ret
        let code = [
            0x48, 0xba, 0x15, 0x7c, 0x4a, 0x7f, 0xb9, 0x79, 0x37, 0x9e, 0x48, 0x89, 0xd1, 0x48, 0x69, 0xc9, 0xe8, 3, 0,
            0, 0x31, 0xc0, 0x48, 0x01, 0xd0, 0x48, 0x39, 0xc8, 0x75, 0xf8, 0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(1000.0));
    }

    #[test]
    fn a_length_that_is_halved_is_run() {
        // mov eax, 1000 | 5: mov rdx,rax; shr rdx,1; sub rax,rdx; cmp rax,1; ja 5 | ret
        let code = [
            0xb8, 0xe8, 3, 0, 0, 0x48, 0x89, 0xc2, 0x48, 0xd1, 0xea, 0x48, 0x29, 0xd0, 0x48, 0x83, 0xf8, 1, 0x77, 0xf1,
            0xc3,
        ];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), Some(10.0));
    }

    #[test]
    fn a_loop_that_data_ends_has_no_count() {
        // cmp qword [rdi], 0; lea rdi,[rdi+8]; jne 0 | ret
        let code = [0x48, 0x83, 0x3f, 0, 0x48, 0x8d, 0x7f, 8, 0x75, 0xf6, 0xc3];
        assert_eq!(rounds(&Function::decode(&code, 0), LoopId::new(0), None), None);
    }
}
