//! Branches that a counter comes to every so many times: a buffer is full, a batch complete.
//!
//! A register moves by the same step in one place of a loop; where a comparison with a constant finds that it has
//! come far enough, it is set back to another constant. So many moves lie between two settings as the way has steps.
//! Samples of the branch alone tell that badly: it is seldom taken, and what then is done takes its time.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::Observed;
use crate::frequency::flow_network::{Observation, edge};
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::state::State;
use tierloom_binary::dataflow::update::{Step, steady_step};
use tierloom_binary::instruction::{Arithmetic, Compute, Flags, Gpr, Instruction, Operation, Part, Place, Source};

/// Of a shorter way the steps are rounds of their own kind, which take unlike times. Assumed.
const FEWEST_STEPS: u64 = 8;
/// No buffer that is counted in a register is longer.
const MOST_STEPS: u64 = 1 << 20;
/// Fewer samples than this in the second half of the way say nothing about how often its end is reached.
const FEWEST_SAMPLES: usize = 10;
/// How far off the share is besides: moves take about equally long along the way. Assumed.
const ALONG_THE_WAY: f64 = 0.05;

/// A branch that is taken once in so many moves of a counter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountedBranch {
    moved: BlockId,
    edge: (BlockId, BlockId),
    /// Times the edge is taken for each move, and one relative standard deviation.
    share: f64,
    relative_error: f64,
}

impl CountedBranch {
    /// Whether a block runs only where the edge was taken.
    pub(crate) fn leads_to(&self, function: &Function, block: BlockId) -> bool {
        function.dominates(self.edge.1, block)
    }

    /// As an equation for the flow through the function; `size` is about how often a block runs.
    pub(crate) fn observation(&self, size: impl Fn(BlockId) -> f64) -> Observation {
        Observation {
            blocks: vec![(self.moved.index(), -self.share)],
            edges: vec![(edge(self.edge.0, self.edge.1), 1.0)],
            value: 0.0,
            deviation: self.relative_error * self.share * size(self.moved),
        }
    }
}

/// Those of all functions with samples.
pub(crate) fn batches(observed: &Observed) -> BTreeMap<FunctionId, Vec<CountedBranch>> {
    let mut states: BTreeMap<FunctionId, Vec<(BlockId, &State)>> = BTreeMap::new();
    for seen in &observed.seen {
        let Some((id, step)) = seen.at else { continue };
        let block = observed.code.functions[id].function.block_of(step);
        states.entry(id).or_default().push((block, &seen.state));
    }
    let of_function = |(id, states): (FunctionId, Vec<(BlockId, &State)>)| {
        let function = &*observed.code.functions[id].function;
        let found: Vec<CountedBranch> = function
            .blocks
            .indices()
            .filter_map(|block| {
                let way = Way::to(function, block)?;
                let around = &function.loops[way.inside];
                way.batch(states.iter().filter(|(block, _)| around.contains(*block)).map(|(_, state)| *state))
            })
            .collect();
        (!found.is_empty()).then_some((id, found))
    };
    states.into_iter().filter_map(of_function).collect()
}

/// What a counter goes through from where it is set to where a branch sets it back.
#[derive(Debug, PartialEq)]
struct Way {
    inside: LoopId,
    counter: Gpr,
    moved: BlockId,
    edge: (BlockId, BlockId),
    start: u64,
    step: i64,
    steps: u64,
}

impl Way {
    /// The way that ends at a block's branch.
    fn to(function: &Function, branch: BlockId) -> Option<Self> {
        let content = &function.blocks[branch];
        let inside = content.inner_loop?;
        let (jump, before) = function.instructions_of(branch).split_last()?;
        let (compared, against) = end(before.iter().rfind(|instruction| instruction.sets_flags)?)?;
        let counter = compared.register;
        let (moved, step, sets, start) = writers(function, inside, counter)?;
        let back = |to: BlockId| sets_back(function, inside, &sets, branch, to);
        let to = match content.successors[..] {
            [one, other] if back(one) != back(other) => {
                if back(one) {
                    one
                } else {
                    other
                }
            }
            _ => return None,
        };
        let is_there = |steps: u64| {
            let value = start.wrapping_add(steps.wrapping_mul(step.cast_unsigned()));
            let taken = jump.flow.is_taken(Flags::of_difference(value, against, 8 * u32::from(compared.bytes)));
            taken.is_some_and(|taken| (to == content.successors[0]) == taken)
        };
        let steps = (1..=MOST_STEPS).find(|steps| is_there(*steps)).filter(|steps| *steps >= FEWEST_STEPS)?;
        Some(Self { inside, counter, moved, edge: (branch, to), start, step, steps })
    }

    /// How often the end is reached: by how many of the samples are past the middle, where a counter that
    /// always reaches it spends half of its time.
    fn batch<'a>(&self, states: impl Iterator<Item = &'a State>) -> Option<CountedBranch> {
        let behind = |state: &State| {
            let moved = state.get(self.counter)?.wrapping_sub(self.start).cast_signed();
            u64::try_from(moved / self.step).ok().filter(|behind| *behind <= self.steps)
        };
        let behind: Vec<u64> = states.filter_map(behind).collect();
        let past = behind.iter().filter(|behind| 2 * **behind >= self.steps).count();
        if past < FEWEST_SAMPLES {
            return None;
        }
        let reached = (2.0 * past as f64 / behind.len() as f64).min(1.0);
        Some(CountedBranch {
            moved: self.moved,
            edge: self.edge,
            share: reached / self.steps as f64,
            relative_error: ALONG_THE_WAY + 1.0 / (past as f64).sqrt(),
        })
    }
}

/// A register, and the constant that it is compared with.
fn end(instruction: &Instruction) -> Option<(Part, u64)> {
    match instruction.operation {
        Operation::Compute(Compute {
            what: Arithmetic::Subtract,
            to: Place::Nowhere,
            left: Source::Register(register),
            right: Source::Constant(value),
            ..
        }) if register.bytes >= 4 => Some((register, value)),
        _ => None,
    }
}

/// What writes a register in a loop: the block that moves it, by how much, the blocks that set it and to what.
fn writers(function: &Function, inside: LoopId, register: Gpr) -> Option<(BlockId, i64, BTreeSet<BlockId>, u64)> {
    let natural = &function.loops[inside];
    let (mut moves, mut sets) = (Vec::new(), Vec::new());
    for &block in &natural.body {
        for writer in function.instructions_of(block).iter().filter(|one| one.clobbered.contains(register)) {
            match (steady_step(writer, natural.written), writer.operation.constant()) {
                (Some((_, Step::Constant(step), _)), _) => moves.push((block, step)),
                (None, Some(value)) => sets.push((block, value)),
                _ => return None,
            }
        }
    }
    let ([(moved, step)], Some((_, start))) = (&moves[..], sets.first()) else { return None };
    let alike = *step != 0 && sets.iter().all(|(_, value)| value == start);
    alike.then(|| (*moved, *step, sets.iter().map(|(block, _)| *block).collect(), *start))
}

/// Whether control that goes from a branch to `to` cannot get around the loop without passing one of the blocks `sets`.
fn sets_back(function: &Function, inside: LoopId, sets: &BTreeSet<BlockId>, branch: BlockId, to: BlockId) -> bool {
    let natural = &function.loops[inside];
    let comes_again = |block| block == branch || block == natural.header;
    !function.reaches(vec![to], comes_again, |block| natural.contains(block) && !sets.contains(&block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_recording::{REGISTERS, register};

    // 0: cmp rdx,512; je 19 | 9: mov [rdi+rdx*4],eax; inc rdx | f: dec rcx; jne 0 | 14: ret; 4 nops
    // 19: a long nop | 1e: xor edx,edx; jmp 9
    const BUFFER: &[u8] = &[
        0x48, 0x81, 0xfa, 0x00, 0x02, 0x00, 0x00, 0x74, 0x10, 0x89, 0x04, 0x97, 0x48, 0xff, 0xc2, 0x48, 0xff, 0xc9,
        0x75, 0xec, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x31, 0xd2, 0xeb, 0xe7,
    ];

    fn at(function: &Function, address: u64) -> BlockId {
        function.block_of(function.instruction_at(address).unwrap())
    }

    #[test]
    fn a_full_buffer_is_a_way_of_as_many_steps_as_it_has_places() {
        let function = Function::decode(BUFFER, 0);
        let way = Way::to(&function, at(&function, 0)).unwrap();
        assert_eq!((way.steps, way.counter, way.edge), (512, Gpr::new(2), (at(&function, 0), at(&function, 0x19))));
        assert!(Way::to(&function, at(&function, 0xf)).is_none(), "the end of the loop is set back by nothing in it");
    }

    #[test]
    fn a_buffer_that_is_never_full_is_taken_less_often() {
        let function = Function::decode(BUFFER, 0);
        let way = Way::to(&function, at(&function, 0)).unwrap();
        let states = |most: u64| {
            let state = move |sample: u64| {
                let mut registers = [0; REGISTERS];
                registers[register::DX] = sample % most;
                State::of_sample(&registers, 0)
            };
            (0..5130).map(state).collect::<Vec<_>>()
        };
        let always = way.batch(states(513).iter()).unwrap();
        assert!((always.share * 512.0 - 1.0).abs() < 0.01, "{always:?}");
        assert!(way.batch(states(200).iter()).is_none(), "it is emptied before");
    }
}
