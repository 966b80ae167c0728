//! What a loop does to each register: leaves it alone, moves it by the same in each round, or anything else.

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::slots;
use crate::dataflow::spills::{holds, kept};
use crate::dataflow::update::{Step, Update, steady_step, together};
use crate::instruction::{GENERAL, Gpr, Operand, Operation, RegisterSet, Source};

/// Registers that a loop changes in one place only, and how.
pub struct Steady {
    pub(super) inside: LoopId,
    /// By register: how it moves and where; `None` for those that move otherwise.
    pub(super) moves: [Option<Update>; GENERAL],
    pub(super) written: RegisterSet,
}

impl Steady {
    /// What a loop does to each register.
    pub fn of(function: &Function, inside: LoopId) -> Self {
        let mut writers = [0usize; GENERAL];
        let mut movers: [Vec<Update>; GENERAL] = Default::default();
        let written = function.loops[inside].written;
        for &block in &function.loops[inside].body {
            for instruction in function.instructions_of(block) {
                instruction.clobbered.iter().for_each(|register| writers[register.index()] += 1);
                if let Some((register, step, narrow)) = steady_step(instruction, written) {
                    movers[register.index()].push((step, block, narrow));
                }
            }
        }
        let mut moves = [None; GENERAL];
        for register in Gpr::all().filter(|register| *register != STACK_POINTER).map(Gpr::index) {
            if writers[register] == movers[register].len() {
                moves[register] = together(function, inside, &movers[register]);
            }
        }
        Self { inside, moves, written }
    }

    /// Registers that move by a constant once in each round: (register, position of the instruction, step).
    pub fn every_round(&self, function: &Function) -> Vec<(Gpr, usize, i64)> {
        let movers = Gpr::all().filter_map(|register| {
            let (step, block, narrow) = self.moves[register.index()]?;
            let Step::Constant(step) = step else { return None };
            let content = &function.blocks[block];
            let moves = |at: &usize| {
                steady_step(&function.instructions[*at], self.written).is_some_and(|(target, ..)| target == register)
            };
            let at = (content.first..content.end).find(moves)?;
            (function.once_per_round(self.inside, block) && !narrow).then_some((register, at, step))
        });
        movers.collect()
    }

    /// Registers whose value tells the address of any round, up to a few steps.
    pub fn known(&self) -> RegisterSet {
        let moving = Gpr::all().filter(|register| self.moves[register.index()].is_some());
        self.written.others().union(moving.collect())
    }

    /// How an operand moves per round: its step and the block that moves it. `None` when it does not
    /// move or moves otherwise.
    pub fn step(&self, operand: &Operand) -> Option<(Step, BlockId)> {
        let part = |register: Option<Gpr>| match register {
            Some(register) if self.written.contains(register) => self.moves[register.index()].map(Some),
            _ => Some(None),
        };
        match (part(operand.base)?, part(operand.index)?) {
            (Some((step, block, _)), None) => Some((step, block)),
            (None, Some((step, block, _))) => Some((step.scaled(operand.scale), block)),
            (Some((Step::Constant(base), block, _)), Some((Step::Constant(index), other, _))) if block == other => {
                let step = base.wrapping_add(index.wrapping_mul(operand.scale.cast_signed()));
                (step != 0).then_some((Step::Constant(step), block))
            }
            _ => None,
        }
    }

    /// Whether an operand stays where it is during the loop.
    pub fn still(&self, operand: &Operand) -> bool {
        !operand.registers().iter().any(|register| self.written.contains(register))
    }

    /// How far on a register is from one round to the next, before an instruction, where it is moved by a constant or not
    /// at all.
    pub(super) fn moved(&self, function: &Function, register: Gpr, at: usize) -> Option<i64> {
        match self.moves[register.index()] {
            _ if !self.written.contains(register) => Some(0),
            Some((Step::Constant(step), ..)) => Some(step),
            None if kept(function, self.inside).each_round.contains(register) => {
                holds(function, self.inside, register, at).then_some(0)
            }
            _ => None,
        }
    }

    /// How far on what an instruction sets a register to is from one round to the next.
    pub(super) fn start(&self, function: &Function, at: usize) -> Option<i64> {
        let sets = &function.instructions[at];
        match &sets.operation {
            operation if operation.constant().is_some() => Some(0),
            _ if sets.is_call() => None,
            Operation::Move { from: Source::Register(from), .. } => self.moved(function, from.register, at),
            Operation::Move { from: Source::Memory, .. } => slots::step(function, self.inside, sets.operands.first()?),
            Operation::Address { address, .. } => {
                let part =
                    |register: Option<Gpr>| register.map_or(Some(0), |register| self.moved(function, register, at));
                let index = part(address.index)?.wrapping_mul(address.scale.cast_signed());
                Some(part(address.base)?.wrapping_add(index))
            }
            _ => None,
        }
    }
}
