//! Which way branches go, as far as the registers of samples decide it.
//!
//! From a sample the code is run on, with nothing invented, until the branch is reached: where all that
//! it asks for is in registers, the sample tells which way it goes. A comparison of two pointers before
//! a vectorised loop is such a branch; one on loaded data is not.

pub(crate) mod ahead;
pub(crate) mod entry;
pub(crate) mod heuristics;
pub(crate) mod invariant;

use std::collections::BTreeMap;

use crate::attribution::{AttributedSample, Observed};
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::state::State;
use tierloom_binary::dataflow::way::{Behind, behind};
use tierloom_binary::instruction::{Arithmetic, Flags, Operation};

/// Blocks that one sample is run on for.
const FURTHEST: usize = 12;
/// Samples of a block that are run on.
pub(crate) const MOST_SAMPLES: usize = 60;
/// Fewer answers than this decide nothing.
const FEWEST: f64 = 10.0;
/// Share of the samples that come to a branch and must decide it.
const DECIDED: f64 = 0.8;

/// What samples say about a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct BranchCounts {
    pub(crate) taken: f64,
    pub(crate) passed: f64,
    open: f64,
}

impl BranchCounts {
    /// Another time that it was come to: whether it jumped, where that is known.
    fn add(&mut self, taken: Option<bool>) {
        let times = match taken {
            Some(true) => &mut self.taken,
            Some(false) => &mut self.passed,
            None => &mut self.open,
        };
        *times += 1.0;
    }

    pub(crate) fn decides(&self) -> bool {
        let decided = self.taken + self.passed;
        decided >= FEWEST && decided >= DECIDED * (decided + self.open)
    }

    /// A sample more of either kind keeps it off the extremes. Ways of different length meet different numbers of samples.
    pub(crate) fn share(&self) -> Jumps {
        let mixed = if self.taken > 0.0 && self.passed > 0.0 { UNEVEN } else { 0.0 };
        let by_chance = Jumps::of(self.taken, self.taken + self.passed);
        Jumps { deviation: by_chance.deviation + mixed, ..by_chance }
    }
}

/// How often a branch jumps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jumps {
    /// Part of its executions.
    pub(crate) share: f64,
    /// One standard deviation.
    pub(crate) deviation: f64,
}

impl Jumps {
    /// Of so many that were seen, each by itself.
    pub(crate) fn of(taken: f64, count: f64) -> Self {
        let share = (taken + 0.5) / (count + 1.0);
        Self { share, deviation: (share * (1.0 - share) / count).sqrt().max(0.5 / count) }
    }
}

/// How far a share is off because one way takes longer than the other. Assumed: half and double moved 3 of 16
/// recordings by .1 to 1.1 points of TVD, `ssor` at -O3 most, and its total by 25 to 36 points.
const UNEVEN: f64 = 0.1;

/// Branches of which it is known how often they jump, by function and block.
pub(crate) type BranchTable = BTreeMap<(FunctionId, BlockId), Jumps>;

/// Runs on from the samples.
pub(crate) fn outcomes(observed: &Observed) -> BranchTable {
    let mut by_block: BTreeMap<(FunctionId, BlockId), Vec<(&AttributedSample, usize)>> = BTreeMap::new();
    for seen in &observed.seen {
        if let Some((id, step)) = seen.at {
            by_block.entry((id, observed.code.functions[id].function.block_of(step))).or_default().push((seen, step));
        }
    }
    let mut found: BTreeMap<(FunctionId, BlockId), BranchCounts> = BTreeMap::new();
    for ((id, _), samples) in by_block {
        let function = &observed.code.functions[id].function;
        for (seen, step) in samples.iter().step_by(samples.len().div_ceil(MOST_SAMPLES)) {
            run_on(function, *step, seen.state, |block, taken| {
                found.entry((id, block)).or_default().add(taken);
                true
            });
        }
    }
    decided(found)
}

/// Those of which enough is known.
pub(crate) fn decided(found: BTreeMap<(FunctionId, BlockId), BranchCounts>) -> BranchTable {
    found.into_iter().filter(|(_, counts)| counts.decides()).map(|(at, counts)| (at, counts.share())).collect()
}

/// Calls `each` for every branch that is come to, up to the first one that is open, or as long as it wants more.
fn run_on(function: &Function, at: usize, mut state: State, mut each: impl FnMut(BlockId, Option<bool>) -> bool) {
    let mut block = function.block_of(at);
    let mut first = at;
    for _ in 0..FURTHEST {
        let flags = pass(function, first, block, &mut state);
        let [one, other] = function.blocks[block].successors[..] else {
            match function.blocks[block].successors[..] {
                [only] if !function.blocks[block].leaves => block = only,
                _ => return,
            }
            first = function.blocks[block].first;
            continue;
        };
        let taken = flags.and_then(|flags| function.last(block).flow.is_taken(flags));
        let more = each(block, taken);
        let Some(taken) = taken.filter(|_| more) else { return };
        // The target of the jump comes first among the successors.
        block = if taken { one } else { other };
        first = function.blocks[block].first;
    }
}

/// Goes over the rest of a block; the flags at its end, where they are known.
pub(crate) fn pass(function: &Function, first: usize, block: BlockId, state: &mut State) -> Option<Flags> {
    let mut flags = None;
    for instruction in &function.instructions[first..function.blocks[block].end] {
        if instruction.sets_flags {
            flags = compare(state, &instruction.operation);
        }
        state.execute(instruction);
    }
    flags
}

/// Whether a round of a loop that begins with these registers is the last one. Inner loops are passed
/// over, with everything forgotten that they write.
pub(crate) fn is_last_round(function: &Function, inside: LoopId, mut state: State) -> Option<bool> {
    let natural = &function.loops[inside];
    let mut block = natural.header;
    for _ in 0..FURTHEST {
        let content = &function.blocks[block];
        let flags = pass(function, content.first, block, &mut state);
        let next = match content.successors[..] {
            [only] if !content.leaves => only,
            [one, other] => {
                if function.last(block).flow.is_taken(flags?)? {
                    one
                } else {
                    other
                }
            }
            _ => return None,
        };
        let next = match behind(function, inside, block, next) {
            Behind::Same => next,
            Behind::Loop(inner, exit) => {
                state.forget(function.loops[inner].written);
                exit
            }
            Behind::Unclear => return None,
        };
        if !natural.contains(next) {
            return Some(true);
        }
        if next == natural.header {
            return Some(false);
        }
        block = next;
    }
    None
}

/// Flags of a comparison of what is known.
fn compare(state: &State, operation: &Operation) -> Option<Flags> {
    let Operation::Compute(compute) = operation else { return None };
    let (left, right) = (state.source(compute.left)?, state.source(compute.right)?);
    let (left, right) = match compute.what {
        Arithmetic::Subtract => (left, right),
        Arithmetic::Add => (left, right.wrapping_neg()),
        Arithmetic::And => (left & right, 0),
        _ => return None,
    };
    Some(Flags::of_difference(left, right, compute.bits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_binary::instruction::Gpr;
    use tierloom_recording::{REGISTERS, register};

    // 0: cmp rax, rdx; jae 10 | 5: cmp [rdi], eax; jne 10 | 9: nop | 10: ret
    const CODE: &[u8] = &[0x48, 0x39, 0xd0, 0x73, 0x05, 0x39, 0x07, 0x75, 0x01, 0x90, 0xc3];

    fn told(left: u64, right: u64) -> Vec<(usize, Option<bool>)> {
        let mut registers = [0; REGISTERS];
        registers[register::AX] = left;
        registers[register::DX] = right;
        let mut told = Vec::new();
        run_on(&Function::decode(CODE, 0), 0, State::of_sample(&registers, 0), |block, taken| {
            told.push((block.index(), taken));
            true
        });
        told
    }

    #[test]
    fn registers_decide_a_branch_and_data_leave_it_open() {
        assert_eq!(told(5, 3), [(0, Some(true))]);
        assert_eq!(told(3, 5), [(0, Some(false)), (1, None)]);
    }

    #[test]
    fn nothing_more_is_run_than_is_wanted() {
        let mut state = State::unknown();
        state.set(Gpr::new(0), Some(3));
        state.set(Gpr::new(2), Some(5));
        let mut told = Vec::new();
        run_on(&Function::decode(CODE, 0), 0, state, |block, taken| {
            told.push((block.index(), taken));
            false
        });
        assert_eq!(told, [(0, Some(false))]);
    }

    #[test]
    fn a_branch_that_always_goes_one_way_is_nearly_sure() {
        let always = BranchCounts { taken: 99.0, passed: 0.0, open: 0.0 };
        let Jumps { share, deviation } = always.share();
        assert!(share > 0.99 && deviation < 0.01, "{share} {deviation}");
        assert!(!BranchCounts { taken: 9.0, passed: 0.0, open: 9.0 }.decides());
    }

    #[test]
    fn the_last_round_of_an_outer_loop_shows_in_what_the_inner_one_leaves_alone() {
        use crate::frequency::nest::NEST;
        let function = Function::decode(NEST, 0x1000);
        let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
        let round = |count: u64, end: u64| {
            let mut registers = [0; REGISTERS];
            (registers[register::AX], registers[register::SI]) = (count, end);
            is_last_round(&function, outer, State::of_sample(&registers, 0))
        };
        assert_eq!((round(3, 9), round(8, 9)), (Some(false), Some(true)));
        assert_eq!(is_last_round(&function, outer, State::unknown()), None);
    }
}
