//! Registers that count: what a loop's steady steps say about how often it ran.
//!
//! A register that exactly one instruction of a loop changes, by a constant or by a register that the
//! loop leaves alone, is a clock of that loop: its difference between two samples, divided by the
//! step, is the number of times that instruction ran in between. Where a compiler gave each way round
//! the loop an end of its own, several instructions move the register alike, one of them in each round:
//! then it counts the rounds. The address of an operand whose
//! base and index are such registers is a clock, too, and one that often runs on from one short
//! instance of the loop to the next where the index itself starts again.

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::dependence::is_indirect;
use crate::dataflow::slots;
use crate::dataflow::spills::{CopyChain, Move, follow};
use crate::dataflow::state::Shown;
use crate::dataflow::steady::Steady;
use crate::dataflow::update::{Step, Update, loaded_step, steady_step};
use crate::instruction::{Gpr, Operand, Operation, RegisterSet, Source};

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
    /// A register here, another one or a place on the stack there.
    Carried(CopyChain),
}

impl Value {
    /// Value at a sample before the instruction at a position.
    pub fn read(&self, shown: Shown<'_>, instruction: usize) -> Option<u64> {
        match self {
            Self::Register(register) => shown.state.get(*register),
            Self::Address(operand) => shown.state.address(operand),
            Self::Carried(carrier) => carrier.read(shown, instruction),
        }
    }
}

/// A clock of a loop.
#[derive(Debug, Clone, PartialEq)]
pub struct InductionVariable {
    /// What it shows.
    pub value: Value,
    /// By how much it moves.
    pub step: Step,
    /// Block that moves it: the one whose executions it counts.
    pub counted: BlockId,
    /// Samples in this loop see it: outermost loop in which nothing else writes its registers.
    pub region: LoopId,
    /// 32-bit registers wrap around.
    pub narrow: bool,
    /// The loop around its own sets it to the same value before each instance: what it shows of two instances
    /// then differs by where they were looked at alone, or by what loops further out did.
    pub restarts: bool,
    /// How far on it starts from one instance to the next, where the loop around its own says so.
    pub start_step: Option<i64>,
    /// The next instance starts where data say, and not where this one ends: what lies between is left out.
    pub skips: bool,
}

impl InductionVariable {
    /// Whether an instance of so many rounds ends far from where the next one starts: the column of a matrix begins beside
    /// the one before, and not below it.
    pub fn starts_elsewhere_after(&self, rounds: f64) -> bool {
        let Step::Constant(step) = self.step else { return false };
        self.start_step.is_some_and(|between| is_far(between, rounds * step.unsigned_abs() as f64))
    }
}

/// Whether from one instance to the next it is much further than the way of an instance, or much less far.
fn is_far(between: i64, within: f64) -> bool {
    let between = between.unsigned_abs() as f64;
    between.max(within) > MUCH_FURTHER * between.min(within)
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

/// Whether the loop around a loop sets a clock of it to the same value before each instance.
fn restarts(function: &Function, value: &Value, region: LoopId) -> bool {
    let registers = match value {
        Value::Register(register) => RegisterSet::of(&[*register]),
        Value::Address(operand) => operand.registers(),
        Value::Carried(_) => return false,
    };
    let inner = &function.loops[region];
    let Some(parent) = inner.parent else { return false };
    let steady = Steady::of(function, parent);
    let (moving, still) = (registers.common(inner.written), registers.without(inner.written));
    if !still.common(steady.written).is_empty() {
        return false;
    }
    moving.iter().all(|register| {
        let sets = set_before(function, register, region);
        sets.is_some_and(|sets| sets.iter().all(|at| steady.start(function, *at) == Some(0)))
    })
}

/// Whether a loop leaves out what lies between two of its instances. It begins at an address that the loop around it loads,
/// and either it has several ends, as a search through a row of a sparse matrix that ends with the first hit, or other
/// loaded data say which row is next, as a queue of vertices does.
fn skips(function: &Function, value: &Value, region: LoopId) -> bool {
    let registers = match value {
        Value::Register(register) => RegisterSet::of(&[*register]),
        Value::Address(operand) => operand.registers(),
        Value::Carried(_) => return false,
    };
    let inner = &function.loops[region];
    let is_end = |block: &&BlockId| function.blocks[**block].successors.iter().any(|to| !inner.contains(*to));
    let is_loaded = |at: usize| {
        let sets = &function.instructions[at];
        let loads = matches!(sets.operation, Operation::Move { from: Source::Memory, .. });
        loads && !sets.operands.first().is_some_and(slots::is_slot)
    };
    let has_ends = inner.body.iter().filter(is_end).count() > 1;
    let leaves_out = |register: Gpr, at: usize| {
        has_ends && is_loaded(at) || inner.parent.is_some_and(|around| is_indirect(function, around, at, register))
    };
    registers.common(inner.written).iter().any(|register| {
        set_before(function, register, region).is_some_and(|sets| sets.iter().any(|at| leaves_out(register, *at)))
    })
}

/// How far on a clock starts from one instance of its loop to the next: its registers are copies of what the loop around
/// moves by a constant, or that loop itself moves them.
fn start_step(function: &Function, value: &Value, region: LoopId) -> Option<i64> {
    let parts = match value {
        Value::Register(register) => [(Some(*register), 1), (None, 1)],
        Value::Address(operand) => [(operand.base, 1), (operand.index, operand.scale.cast_signed())],
        Value::Carried(_) => return None,
    };
    let inner = &function.loops[region];
    let outer = Steady::of(function, inner.parent?);
    let starts = |register: Gpr| {
        if inner.written.contains(register) {
            match set_before(function, register, region)?[..] {
                [at] => outer.start(function, at),
                _ => None,
            }
        } else {
            outer.moved(function, register, function.blocks[inner.header].first)
        }
    };
    parts
        .into_iter()
        .filter_map(|(register, times)| Some((register?, times)))
        .try_fold(0i64, |sum, (register, times)| Some(sum.wrapping_add(starts(register)?.wrapping_mul(times))))
}

/// Positions of the instructions of the loop around a loop that set a register to what it is when an instance begins;
/// `None` where a way comes to the loop without one.
fn set_before(function: &Function, register: Gpr, region: LoopId) -> Option<Vec<usize>> {
    let inner = &function.loops[region];
    let outer = &function.loops[inner.parent?];
    let around = outer.body.iter().copied().filter(|block| !inner.contains(*block));
    let writes: Vec<(BlockId, usize)> =
        around.filter_map(|block| Some((block, last_write(function, block, register)?))).collect();
    let is_set = |block: BlockId| writes.iter().any(|write| write.0 == block);
    // Whatever else is written there in between, it is set again before the next instance.
    let lasts = |block: BlockId| {
        let behind = function.blocks[block].successors.clone();
        function.reaches(behind, |to| to == inner.header, |to| outer.contains(to) && !is_set(to))
    };
    writes
        .iter()
        .any(|write| function.dominates(write.0, inner.header))
        .then(|| writes.iter().filter(|write| lasts(write.0)).map(|write| write.1).collect())
}

/// Position of the last instruction of a block that writes a register.
fn last_write(function: &Function, block: BlockId, register: Gpr) -> Option<usize> {
    let mut block = function.blocks[block].first..function.blocks[block].end;
    block.rfind(|at| function.instructions[*at].clobbered.contains(register))
}

fn same_clock(left: &InductionVariable, right: &InductionVariable) -> bool {
    left.value == right.value && left.counted == right.counted && left.step == right.step
}

/// Whether loop `inner` lies in `outer` or is it.
fn nested(function: &Function, inner: LoopId, outer: LoopId) -> bool {
    std::iter::successors(Some(inner), |id| function.loops[*id].parent).any(|id| id == outer)
}

impl Steady {
    fn counter(&self, function: &Function, value: Value, (step, counted, narrow): Update) -> InductionVariable {
        let restarts = restarts(function, &value, self.inside);
        let start_step = start_step(function, &value, self.inside);
        let skips = skips(function, &value, self.inside);
        InductionVariable { value, step, counted, region: self.inside, narrow, restarts, start_step, skips }
    }

    fn counters(&self, function: &Function) -> Vec<InductionVariable> {
        let region = self.inside;
        let registers = Gpr::all().filter_map(|register| {
            let mover = self.moves[register.index()]?;
            Some(self.counter(function, Value::Register(register), mover))
        });
        let mut all: Vec<InductionVariable> = registers.collect();
        all.extend(self.carried(function));
        for &block in function.loops[region].body.iter().filter(|b| function.blocks[**b].inner_loop == Some(region)) {
            for instruction in function.instructions_of(block) {
                let both = |o: &&Operand| o.base.is_some() && o.index.is_some() && !o.gather;
                for operand in instruction.operands.iter().filter(both) {
                    let Some((step, counted)) = self.step(operand) else { continue };
                    let plain = Operand { displacement: 0, read: true, write: false, bytes: 0, ..*operand };
                    let counter = self.counter(function, Value::Address(plain), (step, counted, false));
                    if !all.iter().any(|known| same_clock(known, &counter)) {
                        all.push(counter);
                    }
                }
            }
        }
        all
    }

    /// Counters whose registers serve other purposes in between.
    fn carried(&self, function: &Function) -> impl Iterator<Item = InductionVariable> {
        let blocks = function.loops[self.inside].body.iter().copied();
        let places = blocks.flat_map(|block| {
            let content = &function.blocks[block];
            (content.first..content.end).map(move |at| (block, at))
        });
        places.filter_map(|(counted, at)| {
            let step = steady_step(&function.instructions[at], self.written);
            let (to, step, narrow) = step.or_else(|| loaded_step(function, self.inside, counted, at))?;
            if self.moves[to.index()].is_some() || to == STACK_POINTER {
                return None;
            }
            let carrier = follow(function, self.inside, Move { at, from: to, to })?;
            Some(self.counter(function, Value::Carried(carrier), (step, counted, narrow)))
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
        let inner = clocks.iter().find(|clock| clock.value == Value::Register(Gpr::new(1))).unwrap();
        let outer = clocks.iter().find(|clock| clock.value == Value::Register(Gpr::new(0))).unwrap();
        assert_eq!((inner.counted, inner.step), (BlockId::new(2), Step::Constant(1)));
        assert_eq!((outer.counted, outer.step), (BlockId::new(3), Step::Constant(1)));
        assert_eq!(function.loops[inner.region].parent, Some(outer.region));
    }

    #[test]
    fn a_step_by_a_register_that_stays_is_steady() {
        // 0: add rax, rdx; cmp rax, rsi; jne 0; ret
        let function = Function::decode(&[0x48, 0x01, 0xd0, 0x48, 0x39, 0xf0, 0x75, 0xf8, 0xc3], 0);
        let clocks = counters(&function);
        assert_eq!(clocks[0].step, Step::Register { register: Gpr::new(2), times: 1 });
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
        assert_eq!((clocks[0].counted, clocks[0].step), (BlockId::new(0), Step::Constant(8)), "{clocks:?}");
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
        assert_eq!(address.step, Step::Constant(24));
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
            let clock = clocks.iter().find(|clock| matches!(clock.value, Value::Address(_))).unwrap();
            clock.starts_elsewhere_after(32.0)
        };
        assert!(address(0x10), "rows of 4096 bytes, of which 512 are walked over");
        assert!(!address(0x02) && !address(0x03), "rows of 512, and of 768");
        assert!(!address(0x04), "twice as far is no more than twice");
    }

    // 0: mov rax,[r10+rcx*8]; mov r9,[r10+rcx*8+8] | 9: mov rdx,[rax]; test rdx,rdx; je 1a | 11: add rax,8; cmp rax,r9
    // 18: jne 9 | 1a: inc rcx; cmp rcx,rdi; jne 0 | ret
    const SEARCH: &[u8] = &[
        0x49, 0x8b, 0x04, 0xca, 0x4d, 0x8b, 0x4c, 0xca, 0x08, 0x48, 0x8b, 0x10, 0x48, 0x85, 0xd2, 0x74, 0x09, 0x48,
        0x83, 0xc0, 0x08, 0x4c, 0x39, 0xc8, 0x75, 0xef, 0x48, 0xff, 0xc1, 0x48, 0x39, 0xf9, 0x75, 0xde, 0xc3,
    ];

    #[test]
    fn a_row_that_ends_with_the_first_hit_leaves_out_the_rest_of_it() {
        let skipping = |code: &[u8]| {
            let clocks = counters(&Function::decode(code, 0));
            clocks.iter().filter(|clock| clock.skips).map(|clock| clock.value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(skipping(SEARCH), [Value::Register(Gpr::new(0))]);
        // All of the row: nop in the place of the jump.
        let whole = [&SEARCH[..15], &[0x66, 0x90], &SEARCH[17..]].concat();
        assert_eq!(skipping(&whole), []);
    }

    // 0: movsxd rdx,[r11]; mov rax,[r10+rdx*8]; mov r9,[r10+rdx*8+8] | c: add rax,8; cmp rax,r9; jne c
    // 15: add r11,4; cmp r11,rdi; jne 0 | ret
    const QUEUE: &[u8] = &[
        0x49, 0x63, 0x13, 0x49, 0x8b, 0x04, 0xd2, 0x4d, 0x8b, 0x4c, 0xd2, 0x08, 0x48, 0x83, 0xc0, 0x08, 0x4c, 0x39,
        0xc8, 0x75, 0xf7, 0x49, 0x83, 0xc3, 0x04, 0x49, 0x39, 0xfb, 0x75, 0xe2, 0xc3,
    ];

    #[test]
    fn rows_in_the_order_of_a_queue_leave_out_what_lies_between() {
        let of = |code: &[u8]| {
            let clocks = counters(&Function::decode(code, 0));
            clocks.iter().find(|clock| clock.value == Value::Register(Gpr::new(0))).unwrap().skips
        };
        assert!(of(QUEUE));
        // In the order of the rows, where each begins behind the one before: mov rdx,r11.
        assert!(!of(&[&[0x4c, 0x89, 0xda], &QUEUE[3..]].concat()));
        // Always the same row, which a place names that stays: movsxd rdx,[r8].
        assert!(!of(&[&[0x49, 0x63, 0x10], &QUEUE[3..]].concat()));
    }

    #[test]
    fn a_counter_that_a_called_function_leaves_alone_is_one() {
        // 0: call 100; inc rcx; cmp rcx,rdi; jne 0; ret
        let code = &[0xe8, 0xfb, 0, 0, 0, 0x48, 0xff, 0xc1, 0x48, 0x39, 0xf9, 0x75, 0xf3, 0xc3];
        let of = |changed: Option<RegisterSet>| {
            let function = Function::decode_among(code, 0, |target| changed.filter(|_| target == 0x100));
            counters(&function).len()
        };
        let (ax, cx) = (RegisterSet::of(&[Gpr::new(0)]), RegisterSet::of(&[Gpr::new(1)]));
        assert_eq!((of(None), of(Some(cx)), of(Some(ax))), (0, 0, 1));
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
        let starts =
            |code: &[u8]| counters(&Function::decode(code, 0)).iter().map(|one| one.start_step).collect::<Vec<_>>();
        assert!(starts(&follows).contains(&Some(1)), "each instance starts one further");
        assert!(!starts(nest).contains(&Some(1)));
        // Between two instances it holds something else: mov ecx, eax before inc rax, and the jump two bytes longer.
        let lent = [&nest[..12], &[0x89, 0xc1], &nest[12..19], &[0xec, 0xc3]].concat();
        let mut told = of(&lent);
        told.sort_unstable();
        assert_eq!(told, [false, true], "what it held in between is gone");
    }

    #[test]
    fn a_counter_that_is_loaded_from_a_slot_restarts_where_nothing_moves_the_slot() {
        // 0: mov rax,[rsp-8] | 5: add rax,8; cmp rax,rsi; jne 5 | add qword [rsp-16],96; dec rdi; jne 0 | ret
        let code = [
            0x48, 0x8b, 0x44, 0x24, 0xf8, 0x48, 0x83, 0xc0, 8, 0x48, 0x39, 0xf0, 0x75, 0xf7, 0x48, 0x83, 0x44, 0x24,
            0xf0, 96, 0x48, 0xff, 0xcf, 0x75, 0xe7, 0xc3,
        ];
        let of = |code: &[u8]| {
            let clocks = counters(&Function::decode(code, 0));
            let clock = clocks.iter().find(|clock| clock.value == Value::Register(Gpr::new(0))).unwrap();
            (clock.restarts, clock.start_step)
        };
        assert_eq!(of(&code), (true, Some(0)));
        let moved = [&code[..4], &[0xf0], &code[5..]].concat();
        assert_eq!(of(&moved), (false, Some(96)), "each instance starts 96 bytes further");
    }
}
