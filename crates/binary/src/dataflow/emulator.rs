//! Runs code on a state in which everything unknown is an invented number, the same for the same address.

use std::collections::BTreeMap;

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function, LoopId, Slot};
use crate::dataflow::left_alone::{LeftAlone, changes_on};
use crate::dataflow::modular::steps;
use crate::dataflow::slots;
use crate::dataflow::state::State;
use crate::dataflow::stores::{Stored, Stores};
use crate::dataflow::way::{Behind, behind, changed, way};
use crate::instruction::Condition::{Equal, NotEqual};
use crate::instruction::flags::{low_bits, sign_extended};
use crate::instruction::{Arithmetic, Compute, Flags, Flow, Gpr, Instruction, Operation, Place, Source};

/// Instructions run at most for one answer.
const MOST_INSTRUCTIONS: usize = 6000;
/// Rounds run before the rest may be computed.
const ROUNDS_SEEN: usize = 3;
/// Stands for every place outside of the function: no function has so many blocks.
const OUTSIDE: BlockId = BlockId::from_raw_unchecked(u32::MAX);

/// Where invented numbers come from. Large and small ones, so that halving takes differently long.
#[derive(Clone, Copy)]
pub(super) struct Invention {
    pub(super) seed: u64,
    pub(super) shift: u32,
}

impl Invention {
    fn number(self, of: u64) -> u64 {
        scramble(self.seed ^ of) >> self.shift
    }
}

/// A processor without memory: what is loaded is invented, or what was stored there before.
pub(super) struct Machine<'a> {
    function: &'a Function,
    inside: LoopId,
    /// Whether inner loops are passed over.
    over: bool,
    invention: Invention,
    invented: u64,
    pub(super) state: State,
    flags: Flags,
    /// Distance to zero of the last comparison, and the bits of what it compared.
    distance: i64,
    bits: u32,
    pub(super) stored: Stores,
    executed: usize,
    /// By block: distances at its jump, one a round.
    history: BTreeMap<BlockId, Vec<i64>>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(function: &'a Function, inside: LoopId, invention: Invention) -> Self {
        Self {
            function,
            inside,
            over: false,
            invention,
            invented: 0,
            state: State::unknown(),
            // What was compared before it begins is not known.
            flags: Flags(invention.number(0)),
            distance: 0,
            bits: 64,
            stored: Stores::default(),
            executed: 0,
            history: BTreeMap::new(),
        }
    }

    /// Passes over inner loops, or runs them.
    pub(super) fn passing_over(self, over: bool) -> Self {
        Self { over, ..self }
    }

    /// Runs the way into the loop, then takes over what the loop itself leaves alone.
    pub(super) fn start(&mut self, known: Option<&LeftAlone>) {
        let way = way(self.function, self.inside, self.invention.seed);
        let kept = known.map_or_else(State::unknown, |known| known.state);
        let slots = known.map_or(&[][..], |known| &known.slots);
        let stack = kept.get(STACK_POINTER);
        // Back to the start of the way, for what the loop still shows of it.
        let mut shown = vec![kept];
        self.state = kept;
        for (block, passed) in way.blocks.iter().zip(&way.passed).rev() {
            self.state.forget(passed.changed(self.function));
            self.function.instructions_of(*block).iter().rev().for_each(|instruction| self.undo(instruction));
            shown.push(self.state);
        }
        self.fill();
        let as_before = slots.iter().filter(|(slot, _)| !changes_on(self.function, &way, *slot));
        self.place(stack, as_before);
        for ((block, passed), shown) in way.blocks.iter().zip(&way.passed).zip(shown.iter().rev().skip(1)) {
            self.run_block(*block);
            passed.all().for_each(|id| self.forget_slots(id));
            self.state.forget(passed.changed(self.function));
            self.state = shown.or(&self.state);
        }
        self.fill();
        self.place(stack, slots);
    }

    /// Takes over what a sample shows of places on the stack.
    pub(super) fn place<'s>(&mut self, stack: Option<u64>, shown: impl IntoIterator<Item = &'s (Slot, u64)>) {
        let Some(stack) = stack else { return };
        for (Slot { displacement, bytes }, value) in shown {
            let address = stack.wrapping_add(*displacement);
            self.stored.set(address, Stored { value: *value, bytes: *bytes, in_slot: true });
        }
    }

    pub(super) fn run_block(&mut self, block: BlockId) {
        self.function.instructions_of(block).iter().for_each(|instruction| self.execute(instruction));
    }

    /// What a loop writes to the stack is not known any more.
    pub(super) fn forget_slots(&mut self, of: LoopId) {
        let body = self.function.loops[of].body.iter().flat_map(|block| self.function.instructions_of(*block));
        let operands = body.flat_map(|instruction| &instruction.operands);
        for operand in operands.filter(|operand| operand.write && slots::is_slot(operand)) {
            if let Some(address) = self.state.address(operand) {
                self.stored.forget(address, u64::from(operand.bytes));
            }
        }
    }

    /// Goes back over an instruction. A copy of the lower half of a register, as of an `int`, is taken for all of it: its
    /// upper half counts nothing.
    fn undo(&mut self, instruction: &Instruction) {
        let copied = match instruction.operation {
            Operation::Move { to: Place::Register(to), from: Source::Register(from) }
                if (to.bytes, from.bytes) == (4, 4) =>
            {
                Some((from.register, self.state.get(to.register))).filter(|_| from.register != to.register)
            }
            _ => None,
        };
        self.state.undo(instruction);
        if let Some((from, value @ Some(_))) = copied
            && self.state.get(from).is_none()
        {
            self.state.set(from, value);
        }
    }

    fn invent(&mut self) -> u64 {
        self.invented += 1;
        self.invention.number(self.invented)
    }

    /// Runs from a block of the loop to its exit; how often the header came by.
    pub(super) fn run(&mut self, mut block: BlockId, mut skip: usize) -> Option<f64> {
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
                self.forget_slots(inner);
                self.stored.forget_all_but_slots();
                self.state.forget(changed(self.function, inner));
                self.fill();
                Some(exit)
            }
        }
    }

    /// The block after this one.
    fn follow(&mut self, block: BlockId) -> Option<BlockId> {
        let flow = self.function.last(block).flow;
        let alive = |to: &&BlockId| !self.function.is_dead_end(block, **to);
        let successors = &self.function.blocks[block].successors;
        match flow {
            // What is invented fails checks that the program passed.
            Flow::Branch { .. } if !successors.iter().all(|to| alive(&to)) => {
                Some(successors.iter().find(alive).copied().unwrap_or(OUTSIDE))
            }
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
        let mut outside = content.successors.iter().filter(|to| !self.function.loops[self.inside].contains(**to));
        let exits = outside.any(|to| !self.function.is_dead_end(block, *to));
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
        // Exits that watch loaded data move unevenly and never come here.
        let rest = if matches!(self.function.last(block).flow, Flow::Branch { condition: Some(Equal | NotEqual), .. }) {
            steps(now.cast_unsigned().wrapping_neg(), step.cast_unsigned(), self.bits)? as f64
        } else if (now < 0) == (step > 0) {
            (now.unsigned_abs() as f64 / step.unsigned_abs() as f64).ceil()
        } else {
            return None;
        };
        (!self.may_end_before(block, rest)).then_some(rest)
    }

    /// Whether another exit comes nearer, too, by steps that may reach it in fewer rounds.
    fn may_end_before(&self, block: BlockId, rest: f64) -> bool {
        let others = self.history.iter().filter(|(other, _)| **other != block);
        others.filter_map(|(_, distances)| rounds_to_zero(distances)).any(|rounds| rounds + 1.0 < rest)
    }

    fn execute(&mut self, instruction: &Instruction) {
        let loaded = self.loaded(instruction);
        let selected = self.selected(&instruction.operation, loaded);
        if instruction.sets_flags {
            self.compare(&instruction.operation, loaded);
        }
        let address = instruction.operands.first().and_then(|operand| self.state.address(operand));
        let moved = self.stored_value(&instruction.operation, loaded);
        let computed = self.computed(&instruction.operation, loaded);
        self.state.execute(instruction);
        if let (Some(operand), Some(address)) = (instruction.operands.first(), address) {
            if operand.write {
                let value = moved.unwrap_or_else(|| self.invent());
                self.stored.set(address, Stored { value, bytes: operand.bytes, in_slot: slots::is_slot(operand) });
            } else if let (Some(target), Some(value)) = (load_target(&instruction.operation), loaded) {
                self.state.set(target, Some(value));
            }
        }
        if let Some((target, value)) = computed.or(selected) {
            self.state.set(target, Some(value));
        }
        self.fill();
    }

    /// Invents what is not known.
    pub(super) fn fill(&mut self) {
        for register in self.state.unknown_registers().iter() {
            let value = self.invent();
            self.state.set(register, Some(value));
        }
    }

    /// What an instruction that asks flags leaves in a register.
    fn selected(&mut self, operation: &Operation, loaded: Option<u64>) -> Option<(Gpr, u64)> {
        let (to, value) = match *operation {
            Operation::Borrow(to) => (to, if self.flags.carry() { u64::MAX } else { 0 }),
            Operation::Select { to, from, condition } if condition.holds(self.flags) => (to, self.value(from, loaded)),
            Operation::Select { to, .. } => (to, self.value(Source::Register(to), None)),
            _ => return None,
        };
        (to.bytes >= 4).then_some((to.register, to.of(value)))
    }

    /// What arithmetic on a register and memory leaves in the register.
    fn computed(&mut self, operation: &Operation, loaded: Option<u64>) -> Option<(Gpr, u64)> {
        let Operation::Compute(compute @ Compute { to: Place::Register(to), right: Source::Memory, .. }) = operation
        else {
            return None;
        };
        let value = compute.result(self.value(compute.left, None), loaded?);
        (to.bytes >= 4).then_some((to.register, to.of(value)))
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
pub(super) fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Fewest rounds in which distances that shrank in each round so far come to zero: by as much each time, or by steps that
/// follow loaded data and may get longer.
fn rounds_to_zero(distances: &[i64]) -> Option<f64> {
    /// Than the mean of those so far. Assumed.
    const LONGER: f64 = 4.0;
    let steps: Option<Vec<u64>> = distances
        .windows(2)
        .map(|pair| {
            let shrunk = pair[0].unsigned_abs().checked_sub(pair[1].unsigned_abs());
            shrunk.filter(|step| *step > 0 && pair[0].signum() == pair[1].signum())
        })
        .collect();
    let steps = steps.filter(|steps| steps.len() + 1 >= ROUNDS_SEEN)?;
    let (fewest, most) = (steps.iter().min()?, steps.iter().max()?);
    let mean = steps.iter().map(|step| *step as f64).sum::<f64>() / steps.len() as f64;
    let longest = if fewest == most { mean } else { LONGER * mean };
    Some(distances.last()?.unsigned_abs() as f64 / longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_choose_the_end_of_a_tile() {
        // lea rcx,[rax+32]; cmp rcx,rsi; cmova rcx,rsi | b: inc rax; cmp rax,rcx; jne b | ret
        let tile = [
            0x48, 0x8d, 0x48, 32, 0x48, 0x39, 0xf1, 0x48, 0x0f, 0x47, 0xce, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xc8, 0x75,
            0xf8, 0xc3,
        ];
        let function = Function::decode(&tile, 0);
        let of = |start: u64, end: u64| {
            let mut machine = Machine::new(&function, LoopId::new(0), Invention { seed: 1, shift: 0 });
            machine.state = State::of_sample(&[0; crate::arch::REGISTERS], 0);
            machine.state.set(Gpr::new(0), Some(start));
            machine.state.set(Gpr::new(6), Some(end));
            machine.run_block(BlockId::new(0));
            machine.run(BlockId::new(1), 0).map(|again| again + 1.0)
        };
        assert_eq!((of(64, 1000), of(64, 80)), (Some(32.0), Some(16.0)));
    }
}
