//! Instructions that move a register on by a step, and what the step is.

use iced_x86::{Instruction, Mnemonic, OpKind};
use index_vec::{IndexSlice, IndexVec, index_vec};

use crate::cfg::{BlockId, Function, LoopId};
use crate::x86::instruction::{Gpr, Operand, RegisterSet, gpr};
use crate::x86::state::State;

/// How much one execution of the counted block moves a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
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

impl Pace {
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
pub(super) type Update = (Pace, BlockId, bool);

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
pub(super) fn loaded_step(function: &Function, inside: LoopId, block: BlockId, at: usize) -> Option<(Gpr, Pace, bool)> {
    let code = &function.steps[at].code;
    let target = (code.op_count() == 2 && code.op0_kind() == OpKind::Register).then(|| gpr(code.op0_register()))??;
    if !matches!(code.mnemonic(), Mnemonic::Add | Mnemonic::Sub) || code.op0_register().size() != 8 {
        return None;
    }
    let load = match code.op1_kind() {
        OpKind::Memory => at,
        OpKind::Register => {
            let source = gpr(code.op1_register()).filter(|source| *source != target)?;
            let before = function.blocks[block].first..at;
            before.rev().find(|step| function.steps[*step].clobbered().contains(source))?
        }
        _ => return None,
    };
    let plain = load == at || function.steps[load].code.mnemonic() == Mnemonic::Mov;
    let same = function.steps[load].operands.first().is_some_and(|operand| stays(function, inside, operand));
    (plain && same).then_some((target, Pace::Unknown, false))
}

/// Whether what lies at an address that the loop does not change stays the same, as far as stores of the same
/// name go.
fn stays(function: &Function, inside: LoopId, operand: &Operand) -> bool {
    let natural = &function.loops[inside];
    let stored = |other: &Operand| {
        other.write
            && (other.base, other.index, other.displacement) == (operand.base, operand.index, operand.displacement)
    };
    let mut blocks = natural.body.iter().map(|block| &function.blocks[*block]);
    !operand.registers().iter().any(|register| natural.written.contains(register))
        && operand.base.is_some()
        && !blocks
            .any(|block| function.steps[block.first..block.end].iter().any(|step| step.operands.iter().any(stored)))
}

/// `add r, k`, `sub r, k`, `inc`, `dec`, `lea r, [r+k]`, and `add r, s` with s constant in the loop;
/// with the register, its pace, and whether it is 32 bits wide.
pub fn steady_step(code: &Instruction, written: RegisterSet) -> Option<(Gpr, Pace, bool)> {
    if code.op_count() == 0 || code.op0_kind() != OpKind::Register || code.op0_register().size() < 4 {
        return None;
    }
    let target = gpr(code.op0_register())?;
    let narrow = code.op0_register().size() == 4;
    let pace = match code.mnemonic() {
        Mnemonic::Inc => Pace::Constant(1),
        Mnemonic::Dec => Pace::Constant(-1),
        Mnemonic::Add => added(code, written, 1)?,
        Mnemonic::Sub => added(code, written, -1)?,
        Mnemonic::Lea => lea_step(code, target, written)?,
        _ => return None,
    };
    Some((target, pace, narrow))
}

fn added(code: &Instruction, written: RegisterSet, sign: i64) -> Option<Pace> {
    match code.op1_kind() {
        OpKind::Register => {
            let register = gpr(code.op1_register()).filter(|register| !written.contains(*register))?;
            Some(Pace::Register { register, times: sign })
        }
        OpKind::Memory => None,
        OpKind::Immediate32 => {
            let narrow = u32::try_from(code.immediate(1) & 0xffff_ffff).ok()?;
            Some(Pace::Constant(sign * i64::from(narrow.cast_signed())))
        }
        _ => Some(Pace::Constant(sign.wrapping_mul(code.try_immediate(1).ok()?.cast_signed()))),
    }
}

fn lea_step(code: &Instruction, target: Gpr, written: RegisterSet) -> Option<Pace> {
    if gpr(code.memory_base()) != Some(target) {
        return None;
    }
    match gpr(code.memory_index()) {
        None => Some(Pace::Constant(code.memory_displacement64().cast_signed())),
        Some(index) if !written.contains(index) && code.memory_displacement64() == 0 => {
            Some(Pace::Register { register: index, times: i64::from(code.memory_index_scale()) })
        }
        Some(_) => None,
    }
}
