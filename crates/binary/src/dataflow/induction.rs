//! Registers that count: what a loop's steady steps say about how often it ran.
//!
//! A register that exactly one instruction of a loop changes, by a constant or by a register that the
//! loop leaves alone, is a clock of that loop: its difference between two samples, divided by the
//! step, is the number of times that instruction ran in between. Where a compiler gave each way round
//! the loop an end of its own, several instructions move the register alike, one of them in each round:
//! then it counts the rounds. The address of an operand whose
//! base and index are such registers is a clock, too, and one that often runs on from one short
//! instance of the loop to the next where the index itself starts again.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::spills::{CopyChain, Move, follow};
use crate::dataflow::trip_count::rounds;
use crate::dataflow::update::{Pace, Update, loaded_step, steady_step, together};
use crate::x86::instruction::{Gpr, Operand, RegisterSet, STACK_POINTER, Step, constant, gpr};
use crate::x86::state::State;

/// An address that runs on from one instance of a loop to the next leaves out no more of its way than this: rows may
/// have some points at their ends that a loop passes by (assumed).
const MUCH_FURTHER: f64 = 2.0;

/// What the clock shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A register.
    Register(Gpr),
    /// Address of an operand.
    Address(Operand),
    /// A register here, another one there.
    Carried(CopyChain),
}

impl Value {
    /// Value at a sample before the instruction at position `step`.
    pub fn read(&self, state: &State, step: usize) -> Option<u64> {
        match self {
            Self::Register(register) => state.get(*register),
            Self::Address(operand) => state.address(operand),
            Self::Carried(carrier) => state.get(carrier.holder(step)?),
        }
    }
}

/// A clock of a loop.
#[derive(Debug, Clone, PartialEq)]
pub struct InductionVariable {
    /// What it shows.
    pub value: Value,
    /// By how much it moves.
    pub pace: Pace,
    /// Block that moves it: the one whose executions it counts.
    pub counted: BlockId,
    /// Samples in this loop see it: outermost loop in which nothing else writes its registers.
    pub region: LoopId,
    /// 32-bit registers wrap around.
    pub narrow: bool,
    /// The loop around its own sets it to the same value before each instance: what it shows of two instances
    /// then differs by where they were looked at alone, or by what loops further out did.
    pub restarts: bool,
}

/// All clocks of a function.
pub fn counters(function: &Function) -> Vec<InductionVariable> {
    let mut found: Vec<InductionVariable> = Vec::new();
    for inside in function.loops.indices() {
        let steady = Steady::of(function, inside);
        for counter in steady.counters(function) {
            // The same clock in a wider loop replaces that of the inner one.
            found.retain(|known| !same_clock(known, &counter) || !nested(function, known.region, inside));
            if !found.iter().any(|known| same_clock(known, &counter) && nested(function, inside, known.region)) {
                found.push(counter);
            }
        }
    }
    found
}

/// Whether the loop around a loop sets a clock of it to the same value before each instance, or to one that does not go
/// on where the last instance ended.
fn restarts(function: &Function, value: &Value, pace: Pace, region: LoopId) -> bool {
    let registers = match value {
        Value::Register(register) => RegisterSet::of(*register),
        Value::Address(operand) => operand.registers(),
        Value::Carried(_) => return false,
    };
    let inner = &function.loops[region];
    let Some(outer) = inner.parent.map(|parent| &function.loops[parent]) else { return false };
    let (moving, still) = (RegisterSet(registers.0 & inner.written.0), registers.without(inner.written));
    if still.0 & outer.written.0 != 0 && !leaps(function, value, pace, region) {
        return false;
    }
    moving.iter().all(|register| {
        let writer = |block: &&BlockId| last_write(function, **block, register).is_some();
        let writers: Vec<BlockId> =
            outer.body.iter().filter(|block| !inner.contains(**block)).filter(writer).copied().collect();
        let sets = |block: BlockId| {
            last_write(function, block, register)
                .is_some_and(|step| !step.is_call() && sets_alike(&step.code, outer.written))
        };
        let (set, other): (Vec<BlockId>, Vec<BlockId>) = writers.into_iter().partition(|block| sets(*block));
        // Whatever else is written there in between, it is set again before the next instance.
        set.iter().any(|block| function.dominates(*block, inner.header))
            && !other.iter().any(|block| {
                let behind = function.blocks[*block].successors.clone();
                let goes_on = |block| outer.contains(block) && !set.contains(&block);
                function.reaches(behind, |block| block == inner.header, goes_on)
            })
    })
}

/// Whether an address that the loop around moves on goes much further by that than by all rounds of an instance, or
/// much less far: a block of a matrix is narrower than its rows.
fn leaps(function: &Function, value: &Value, pace: Pace, region: LoopId) -> bool {
    let (Value::Address(operand), Pace::Constant(pace)) = (value, pace) else { return false };
    let Some(parent) = function.loops[region].parent else { return false };
    let outer = Steady::of(function, parent);
    let written = function.loops[region].written;
    let parts = [(operand.base, 1), (operand.index, operand.scale.cast_signed())];
    let between = parts.into_iter().try_fold(0i64, |sum, (register, times)| match register {
        Some(register) if outer.written.contains(register) && !written.contains(register) => {
            match outer.moves[register]? {
                (Pace::Constant(step), ..) => Some(sum.wrapping_add(step.wrapping_mul(times))),
                _ => None,
            }
        }
        _ => Some(sum),
    });
    let within = rounds(function, region, None).map(|rounds| rounds * pace.unsigned_abs() as f64);
    between.zip(within).is_some_and(|(between, within)| {
        let between = between.unsigned_abs() as f64;
        between.max(within) > MUCH_FURTHER * between.min(within)
    })
}

/// The last instruction of a block that writes a register.
fn last_write(function: &Function, block: BlockId, register: Gpr) -> Option<&Step> {
    let content = &function.blocks[block];
    function.steps[content.first..content.end].iter().rfind(|step| step.clobbered().contains(register))
}

/// `xor r, r`, and copies and addresses made of constants and of registers that a loop leaves alone.
fn sets_alike(code: &Instruction, written: RegisterSet) -> bool {
    let left_alone = |register: Register| match register {
        Register::None | Register::RIP => true,
        _ => gpr(register).is_some_and(|register| !written.contains(register)),
    };
    match code.mnemonic() {
        _ if constant(code).is_some() => true,
        Mnemonic::Mov => code.op1_kind() == OpKind::Register && left_alone(code.op1_register()),
        Mnemonic::Lea => left_alone(code.memory_base()) && left_alone(code.memory_index()),
        _ => false,
    }
}

fn same_clock(left: &InductionVariable, right: &InductionVariable) -> bool {
    left.value == right.value && left.counted == right.counted && left.pace == right.pace
}

/// Whether loop `inner` lies in `outer` or is it.
fn nested(function: &Function, inner: LoopId, outer: LoopId) -> bool {
    std::iter::successors(Some(inner), |id| function.loops[*id].parent).any(|id| id == outer)
}

/// Registers that a loop changes in one place only, and how.
pub struct Steady {
    inside: LoopId,
    /// By register: how it moves and where; `None` for those that move otherwise.
    moves: [Option<Update>; 16],
    written: RegisterSet,
}

impl Steady {
    /// What a loop does to each register.
    pub fn of(function: &Function, inside: LoopId) -> Self {
        let mut writers = [0usize; 16];
        let mut movers: [Vec<Update>; 16] = Default::default();
        let written = function.loops[inside].written;
        for &block in &function.loops[inside].body {
            for step in &function.steps[function.blocks[block].first..function.blocks[block].end] {
                step.clobbered().iter().for_each(|register| writers[register] += 1);
                if let Some((register, pace, narrow)) = steady_step(&step.code, written) {
                    movers[register].push((pace, block, narrow));
                }
            }
        }
        let mut moves = [None; 16];
        for register in (0..16).filter(|register| *register != STACK_POINTER) {
            if writers[register] == movers[register].len() {
                moves[register] = together(function, inside, &movers[register]);
            }
        }
        Self { inside, moves, written }
    }

    /// Registers that move by a constant once in each round: (register, position of the instruction, step).
    pub fn every_round(&self, function: &Function) -> Vec<(Gpr, usize, i64)> {
        let movers = (0..16).filter_map(|register| {
            let (pace, block, narrow) = self.moves[register]?;
            let Pace::Constant(step) = pace else { return None };
            let content = &function.blocks[block];
            let moves = |at: &usize| {
                steady_step(&function.steps[*at].code, self.written).is_some_and(|(target, ..)| target == register)
            };
            let at = (content.first..content.end).find(moves)?;
            (function.once_per_round(self.inside, block) && !narrow).then_some((register, at, step))
        });
        movers.collect()
    }

    /// Registers whose value tells the address of any round, up to a few steps.
    pub fn known(&self) -> RegisterSet {
        let moving = (0..16).filter(|register| self.moves[*register].is_some());
        RegisterSet(!self.written.0 | moving.fold(0, |set, register| set | 1 << register))
    }

    /// How an operand moves per round: its pace and the block that moves it. `None` when it does not
    /// move or moves otherwise.
    pub fn pace(&self, operand: &Operand) -> Option<(Pace, BlockId)> {
        let part = |register: Option<Gpr>| match register {
            Some(register) if self.written.contains(register) => self.moves[register].map(Some),
            _ => Some(None),
        };
        match (part(operand.base)?, part(operand.index)?) {
            (Some((pace, block, _)), None) => Some((pace, block)),
            (None, Some((pace, block, _))) => Some((pace.scaled(operand.scale), block)),
            (Some((Pace::Constant(base), block, _)), Some((Pace::Constant(index), other, _))) if block == other => {
                let step = base.wrapping_add(index.wrapping_mul(operand.scale.cast_signed()));
                (step != 0).then_some((Pace::Constant(step), block))
            }
            _ => None,
        }
    }

    /// Whether an operand stays where it is during the loop.
    pub fn still(&self, operand: &Operand) -> bool {
        !operand.registers().iter().any(|register| self.written.contains(register))
    }

    fn counter(&self, function: &Function, value: Value, (pace, counted, narrow): Update) -> InductionVariable {
        let restarts = restarts(function, &value, pace, self.inside);
        InductionVariable { value, pace, counted, region: self.inside, narrow, restarts }
    }

    fn counters(&self, function: &Function) -> Vec<InductionVariable> {
        let region = self.inside;
        let registers = (0..16).filter_map(|register| {
            let mover = self.moves[register]?;
            Some(self.counter(function, Value::Register(register), mover))
        });
        let mut all: Vec<InductionVariable> = registers.collect();
        all.extend(self.carried(function));
        for &block in function.loops[region].body.iter().filter(|b| function.blocks[**b].inner_loop == Some(region)) {
            for step in &function.steps[function.blocks[block].first..function.blocks[block].end] {
                for operand in step.operands.iter().filter(|o| o.base.is_some() && o.index.is_some() && !o.gather) {
                    let Some((pace, counted)) = self.pace(operand) else { continue };
                    let plain = Operand { displacement: 0, read: true, write: false, bytes: 0, ..*operand };
                    let counter = self.counter(function, Value::Address(plain), (pace, counted, false));
                    if !all.iter().any(|known| same_clock(known, &counter)) {
                        all.push(counter);
                    }
                }
            }
        }
        all
    }
}

impl Steady {
    /// Counters whose registers serve other purposes in between.
    fn carried(&self, function: &Function) -> impl Iterator<Item = InductionVariable> {
        let blocks = function.loops[self.inside].body.iter().copied();
        let places = blocks.flat_map(|block| {
            let content = &function.blocks[block];
            (content.first..content.end).map(move |at| (block, at))
        });
        places.filter_map(|(counted, at)| {
            let code = &function.steps[at].code;
            let step = steady_step(code, self.written);
            let (to, pace, narrow) = step.or_else(|| loaded_step(function, self.inside, counted, at))?;
            if self.moves[to].is_some() || to == STACK_POINTER {
                return None;
            }
            let carrier = follow(function, self.inside, Move { at, from: to, to })?;
            Some(self.counter(function, Value::Carried(carrier), (pace, counted, narrow)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg::tests::NEST;

    #[test]
    fn each_loop_of_a_nest_has_its_clock() {
        let function = Function::decode(NEST, 0x1000);
        let clocks = counters(&function);
        // rcx counts the inner loop and is set anew in the outer one; rax counts the outer one.
        assert_eq!(clocks.len(), 2);
        let inner = clocks.iter().find(|clock| clock.value == Value::Register(1)).unwrap();
        let outer = clocks.iter().find(|clock| clock.value == Value::Register(0)).unwrap();
        assert_eq!((inner.counted, inner.pace), (BlockId::new(2), Pace::Constant(1)));
        assert_eq!((outer.counted, outer.pace), (BlockId::new(3), Pace::Constant(1)));
        assert_eq!(function.loops[inner.region].parent, Some(outer.region));
    }

    #[test]
    fn a_step_by_a_register_that_stays_is_steady() {
        // 0: add rax, rdx; cmp rax, rsi; jne 0; ret
        let function = Function::decode(&[0x48, 0x01, 0xd0, 0x48, 0x39, 0xf0, 0x75, 0xf8, 0xc3], 0);
        let clocks = counters(&function);
        assert_eq!(clocks[0].pace, Pace::Register { register: 2, times: 1 });
        // add rax, rax is not.
        let doubling = Function::decode(&[0x48, 0x01, 0xc0, 0x48, 0x39, 0xf0, 0x75, 0xf8, 0xc3], 0);
        assert!(counters(&doubling).is_empty());
    }

    // 0: cmp [rdi],rax; je e | 5: add rdi,8; cmp rdi,rsi; jmp 16 | e: nop; add rdi,8; cmp rdi,rsi | 16: jne 0 | ret
    const TWO_ENDS: &[u8] = &[
        0x48, 0x39, 0x07, 0x74, 0x09, 0x48, 0x83, 0xc7, 8, 0x48, 0x39, 0xf7, 0xeb, 0x08, 0x90, 0x48, 0x83, 0xc7, 8,
        0x48, 0x39, 0xf7, 0x75, 0xe8, 0xc3,
    ];

    #[test]
    fn a_register_that_each_way_round_moves_once_counts_the_rounds() {
        let clocks = counters(&Function::decode(TWO_ENDS, 0));
        assert_eq!((clocks[0].counted, clocks[0].pace), (BlockId::new(0), Pace::Constant(8)), "{clocks:?}");
        let uneven = [&TWO_ENDS[..18], &[16], &TWO_ENDS[19..]].concat();
        assert_eq!(counters(&Function::decode(&uneven, 0)), [], "one way moves it further than the other");
        let twice = [&TWO_ENDS[..14], &[0x48, 0x83, 0xc7, 8], &TWO_ENDS[15..]].concat();
        assert_eq!(counters(&Function::decode(&twice, 0)), [], "one way moves it twice");
    }

    #[test]
    fn an_address_of_two_moving_registers_is_a_clock() {
        // 0: mov rdx,[rdi+rax*8]; inc rax; add rdi, 16; cmp rax, rsi; jne 0; ret
        let code =
            [0x48, 0x8b, 0x14, 0xc7, 0x48, 0xff, 0xc0, 0x48, 0x83, 0xc7, 0x10, 0x48, 0x39, 0xf0, 0x75, 0xf0, 0xc3];
        let clocks = counters(&Function::decode(&code, 0));
        let address = clocks.iter().find(|clock| matches!(clock.value, Value::Address(_))).unwrap();
        assert_eq!(address.pace, Pace::Constant(24));
    }

    // 0: xor r9d,r9d | 3: mov rax,[r11+r9]; add r9,0x10; cmp r9,0x200; jne 3 | add r11,0x1000; cmp r11,rbx; jne 0 | ret
    const BLOCKED: &[u8] = &[
        0x45, 0x31, 0xc9, 0x4b, 0x8b, 0x04, 0x0b, 0x49, 0x83, 0xc1, 0x10, 0x49, 0x81, 0xf9, 0x00, 0x02, 0x00, 0x00,
        0x75, 0xef, 0x49, 0x81, 0xc3, 0x00, 0x10, 0x00, 0x00, 0x49, 0x39, 0xdb, 0x75, 0xe0, 0xc3,
    ];

    #[test]
    fn an_address_that_goes_much_further_between_instances_than_within_does_not_run_on() {
        let address = |step: u8| {
            let code = [&BLOCKED[..24], &[step], &BLOCKED[25..]].concat();
            let clocks = counters(&Function::decode(&code, 0));
            clocks.iter().find(|clock| matches!(clock.value, Value::Address(_))).unwrap().restarts
        };
        assert!(address(0x10), "rows of 4096 bytes, of which 512 are walked over");
        assert!(!address(0x02) && !address(0x03), "rows of 512, and of 768");
        assert!(!address(0x04), "twice as far is no more than twice");
    }

    #[test]
    fn a_counter_that_the_loop_around_sets_to_the_same_value_restarts() {
        let of = |code: &[u8]| {
            let function = Function::decode(code, 0);
            counters(&function).iter().map(|counter| counter.restarts).collect::<Vec<_>>()
        };
        let nest = crate::cfg::tests::NEST;
        let mut told = of(nest);
        told.sort_unstable();
        assert_eq!(told, [false, true], "the inner one starts at zero, the outer one is set outside");
        // The inner one starts where the outer one is: mov ecx, eax.
        let follows = [&nest[..2], &[0x89, 0xc1], &nest[4..]].concat();
        assert_eq!(of(&follows), [false, false]);
        // Between two instances it holds something else: mov ecx, eax before inc rax, and the jump two bytes longer.
        let lent = [&nest[..12], &[0x89, 0xc1], &nest[12..19], &[0xec, 0xc3]].concat();
        let mut told = of(&lent);
        told.sort_unstable();
        assert_eq!(told, [false, true], "what it held in between is gone");
    }
}
