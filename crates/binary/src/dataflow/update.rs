//! Instructions that move a register on by a step, and what the step is.

use index_vec::{IndexSlice, IndexVec, index_vec};

use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::state::State;
use crate::instruction::flags::sign_extended;
use crate::instruction::{
    Arithmetic, Compute, EffectiveAddress, Gpr, Instruction, Operand, Operation, Part, Place, RegisterSet, Source,
};

/// How much one execution of the counted block moves an induction variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Always by as much.
    Constant(i64),
    /// Times the value of a register that does not change in the loop.
    Register {
        /// The register.
        register: Gpr,
        /// How often its value is added.
        times: i64,
    },
    /// Always the same, but it lies in memory: what the clock moved between samples tells.
    Unknown,
}

impl Step {
    /// Value at a sample; `None` when the register is unknown or zero.
    pub fn value(self, state: &State) -> Option<i64> {
        let value = match self {
            Self::Constant(step) => step,
            Self::Register { register, times } => state.get(register)?.cast_signed().wrapping_mul(times),
            Self::Unknown => 1,
        };
        (value != 0).then_some(value)
    }

    pub(super) fn scaled(self, scale: u64) -> Self {
        let scale = scale.cast_signed();
        match self {
            Self::Constant(step) => Self::Constant(step.wrapping_mul(scale)),
            Self::Register { register, times } => Self::Register { register, times: times.wrapping_mul(scale) },
            Self::Unknown => Self::Unknown,
        }
    }
}

/// How a register moves, in which block, and whether it is 32 bits wide.
pub(super) type Update = (Step, BlockId, bool);

/// Instructions that move the same register, as one: several have to move it alike, and exactly one of them in
/// each round, which the header then counts.
pub(super) fn together(function: &Function, inside: LoopId, movers: &[Update]) -> Option<Update> {
    let (&first, rest) = movers.split_first()?;
    let alike = rest.iter().all(|mover| (mover.0, mover.2) == (first.0, first.2));
    let blocks = movers.iter().map(|mover| mover.1);
    match rest {
        [] => Some(first),
        _ if alike && one_in_each_round(function, inside, &blocks.collect::<Vec<_>>()) => {
            Some((first.0, function.loops[inside].header, first.2))
        }
        _ => None,
    }
}

/// Whether every way from a loop's header to its next round or its end passes one of the blocks, and only one.
fn one_in_each_round(function: &Function, inside: LoopId, blocks: &[BlockId]) -> bool {
    const NONE: u8 = 1;
    const ONE: u8 = 2;
    const MORE: u8 = 4;
    let natural = &function.loops[inside];
    // By block of the body: how many were passed at its end, on any of the ways there.
    let mut passed: IndexVec<BlockId, u8> = index_vec![0; function.blocks.len()];
    let end = |block: BlockId, passed: &IndexSlice<BlockId, [u8]>| {
        let before = function.blocks[block].predecessors.iter().filter(|from| natural.contains(**from));
        let start = if block == natural.header { NONE } else { before.fold(0, |ways, from| ways | passed[*from]) };
        blocks.iter().filter(|mover| **mover == block).fold(start, |ways, _| (ways << 1 | ways & MORE) & (ONE | MORE))
    };
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &natural.body {
            let ways = end(block, &passed);
            changed |= std::mem::replace(&mut passed[block], ways) != ways;
        }
    }
    let ends_round = |block: BlockId| {
        let content = &function.blocks[block];
        let goes_on = |next: &BlockId| natural.contains(*next) && *next != natural.header;
        content.leaves || !content.successors.iter().all(goes_on) || content.successors.is_empty()
    };
    natural.body.iter().filter(|block| ends_round(**block)).all(|block| passed[*block] == ONE)
}

/// `add r, s` and `sub r, s` with s loaded from a place in memory that the loop leaves alone.
pub(super) fn loaded_step(function: &Function, inside: LoopId, block: BlockId, at: usize) -> Option<(Gpr, Step, bool)> {
    let (to, _, amount) = added(&function.instructions[at].operation)?;
    let target = to.whole()?;
    let load = match amount {
        Source::Memory => at,
        Source::Register(source) if source.register != target => {
            let before = function.blocks[block].first..at;
            before.rev().find(|before| function.instructions[*before].clobbered.contains(source.register))?
        }
        _ => return None,
    };
    let loading = &function.instructions[load];
    let plain = load == at || matches!(loading.operation, Operation::Move { .. });
    let same = loading.operands.first().is_some_and(|operand| stays(function, inside, operand));
    (plain && same).then_some((target, Step::Unknown, false))
}

/// Whether what lies at an address that the loop does not change stays the same, as far as stores of the same
/// name go.
fn stays(function: &Function, inside: LoopId, operand: &Operand) -> bool {
    let written = function.loops[inside].written;
    !operand.registers().iter().any(|register| written.contains(register))
        && operand.base.is_some()
        && !stored(function, inside, operand)
}

/// Whether a loop stores anything at an operand by the same name.
pub(super) fn stored(function: &Function, inside: LoopId, operand: &Operand) -> bool {
    let same = |other: &Operand| {
        other.write
            && (other.base, other.index, other.displacement) == (operand.base, operand.index, operand.displacement)
    };
    let mut body = function.loops[inside].body.iter().flat_map(|block| function.instructions_of(*block));
    body.any(|instruction| instruction.operands.iter().any(same))
}

/// A register that is moved by a constant, or by another register that the loop leaves alone: which one, by how much,
/// and whether it is 32 bits wide.
pub fn steady_step(instruction: &Instruction, written: RegisterSet) -> Option<(Gpr, Step, bool)> {
    let (to, step) = match instruction.operation {
        Operation::Address { to, address } => (to, address_step(&address, to.register, written)?),
        operation => {
            let (to, sign, amount) = added(&operation)?;
            (to, constant_step(to, sign, amount, written)?)
        }
    };
    (to.bytes >= 4).then_some((to.register, step, to.bytes == 4))
}

/// A register that something is added to or taken from: the sign, and what it is.
fn added(operation: &Operation) -> Option<(Part, i64, Source)> {
    match *operation {
        Operation::Compute(Compute { what, to: Place::Register(to), left, right, .. })
            if left == Source::Register(to) =>
        {
            match what {
                Arithmetic::Add => Some((to, 1, right)),
                Arithmetic::Subtract => Some((to, -1, right)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn constant_step(to: Part, sign: i64, amount: Source, written: RegisterSet) -> Option<Step> {
    match amount {
        Source::Register(from) if !written.contains(from.register) => {
            Some(Step::Register { register: from.register, times: sign })
        }
        Source::Constant(value) => {
            Some(Step::Constant(sign.wrapping_mul(sign_extended(value, 8 * u32::from(to.bytes)))))
        }
        _ => None,
    }
}

fn address_step(address: &EffectiveAddress, target: Gpr, written: RegisterSet) -> Option<Step> {
    if address.base != Some(target) {
        return None;
    }
    match address.index {
        None => Some(Step::Constant(address.displacement.cast_signed())),
        Some(index) if !written.contains(index) && address.displacement == 0 => {
            Some(Step::Register { register: index, times: address.scale.cast_signed() })
        }
        Some(_) => None,
    }
}
