//! Counters that do not stay in one register.
//!
//! Where registers run out, a loop's counter waits on the stack or in another register while an inner
//! loop runs, and comes back. It is followed through copies: of all places (registers and stack slots)
//! those remain that hold the counter on every way round the loop. What the counter is, is told by the
//! one instruction that moves it on. Slots are taken to be written by name only; a program that does
//! so by pointer as well is found out by the tests on pairs of samples.

use std::rc::Rc;

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function, LoopId};
use crate::instruction::{self, GENERAL, Gpr, Instruction, Operand, Operation, Part, Source};

/// Loops with more instructions than this are not followed: generated code.
const MOST_INSTRUCTIONS: usize = 4000;

/// Where a counter is, by position of the instruction.
#[derive(Debug, Clone)]
pub struct CopyChain {
    /// Position of the instruction that moves it on.
    pub moved_at: usize,
    holders: Rc<[Option<Gpr>]>,
}

impl CopyChain {
    /// A register that holds it before an instruction.
    pub fn holder(&self, instruction: usize) -> Option<Gpr> {
        self.holders[instruction]
    }
}

/// The same counter, even if it is followed through a wider loop.
impl PartialEq for CopyChain {
    fn eq(&self, other: &Self) -> bool {
        self.moved_at == other.moved_at
    }
}

/// An instruction that moves a counter on: from one register to the same or another one.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    /// Position of the instruction.
    pub at: usize,
    /// Where the value was.
    pub from: Gpr,
    /// Where it is afterwards.
    pub to: Gpr,
}

/// Follows what `moved` moves on through a loop; `None` where it does not come back.
pub fn follow(function: &Function, inside: LoopId, moved: Move) -> Option<CopyChain> {
    let web = Web::new(function, inside, moved)?;
    let held = web.settle();
    let mut holders = vec![None; function.instructions.len()];
    let mut comes_back = false;
    for (&block, entry) in function.loops[inside].body.iter().zip(held) {
        let mut places = entry;
        for (at, holder) in positions(function, block).zip(&mut holders[function.blocks[block].first..]) {
            comes_back |= at == moved.at && places >> moved.from.index() & 1 == 1;
            *holder = Gpr::all().find(|register| places >> register.index() & 1 == 1);
            places = web.after(at, places);
        }
    }
    comes_back.then(|| CopyChain { moved_at: moved.at, holders: holders.into() })
}

/// Places as bits: registers, then slots.
type Places = u128;
const ALL: Places = !(1 << STACK_POINTER.index());

struct Web<'a> {
    function: &'a Function,
    inside: LoopId,
    moved: Move,
    /// Displacements from the stack pointer.
    slots: Vec<u64>,
}

impl<'a> Web<'a> {
    fn new(function: &'a Function, inside: LoopId, moved: Move) -> Option<Self> {
        let natural = &function.loops[inside];
        let positions = || natural.body.iter().flat_map(|block| positions(function, *block));
        let all = || positions().map(|at| &function.instructions[at]);
        if all().count() > MOST_INSTRUCTIONS {
            return None;
        }
        let mut slots = Vec::new();
        if !natural.written.contains(STACK_POINTER) && !all().any(|one| one.written.contains(STACK_POINTER)) {
            slots.extend(all().filter_map(copied).flat_map(|(to, from)| [to, from]).filter_map(slot));
            slots.sort_unstable();
            slots.dedup();
            slots.truncate(Places::BITS as usize - GENERAL);
        }
        Some(Self { function, inside, moved, slots })
    }

    /// Places that hold the counter at the start of each block: the most that no way contradicts.
    fn settle(&self) -> Vec<Places> {
        let body = &self.function.loops[self.inside].body;
        let mut held = vec![ALL; body.len()];
        let mut left: Vec<Places> = body.iter().map(|block| self.through(*block, ALL)).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for (position, &block) in body.iter().enumerate() {
                let before = self.function.blocks[block].predecessors.iter().filter_map(|b| body.binary_search(b).ok());
                let entry = before.fold(ALL, |places, from| places & left[from]);
                if entry != held[position] {
                    held[position] = entry;
                    left[position] = self.through(block, entry);
                    changed = true;
                }
            }
        }
        held
    }

    fn through(&self, block: BlockId, entry: Places) -> Places {
        positions(self.function, block).fold(entry, |places, at| self.after(at, places))
    }

    fn after(&self, at: usize, places: Places) -> Places {
        let instruction = &self.function.instructions[at];
        if at == self.moved.at {
            return (places >> self.moved.from.index() & 1) << self.moved.to.index();
        }
        if let Some((to, from)) = copied(instruction)
            && let Some(to) = self.bit(to)
        {
            let holds = self.bit(from).is_some_and(|from| places >> from & 1 == 1);
            return places & !(1 << to) | Places::from(holds) << to;
        }
        let lost = instruction.clobbered.iter().fold(0, |lost, register| lost | 1 << register.index());
        places & !lost & !self.overwritten(instruction)
    }

    /// Slots that an instruction writes.
    fn overwritten(&self, instruction: &Instruction) -> Places {
        let written = |operand: &&Operand| operand.write && is_slot(operand);
        instruction.operands.iter().filter(written).fold(0, |lost, operand| {
            let hit = |slot: &&u64| {
                let ahead = slot.wrapping_sub(operand.displacement).cast_signed();
                -8 < ahead && ahead < i64::from(operand.bytes)
            };
            self.slots
                .iter()
                .filter(hit)
                .filter_map(|slot| self.bit(Place::Slot(*slot)))
                .fold(lost, |l, bit| l | 1 << bit)
        })
    }

    fn bit(&self, place: Place) -> Option<usize> {
        match place {
            Place::Register(register) => Some(register.index()),
            Place::Slot(displacement) => self.slots.binary_search(&displacement).ok().map(|slot| GENERAL + slot),
        }
    }
}

fn positions(function: &Function, block: BlockId) -> std::ops::Range<usize> {
    function.blocks[block].first..function.blocks[block].end
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Register(Gpr),
    Slot(u64),
}

fn slot(place: Place) -> Option<u64> {
    match place {
        Place::Slot(displacement) => Some(displacement),
        Place::Register(_) => None,
    }
}

/// To and from of a plain move of a whole register, from, to, or between registers and slots.
fn copied(instruction: &Instruction) -> Option<(Place, Place)> {
    let Operation::Move { to, from } = instruction.operation else { return None };
    let register = |part: Part| (part.bytes >= 4).then_some(Place::Register(part.register));
    let slot = || instruction.operands.first().filter(|one| is_slot(one)).map(|one| Place::Slot(one.displacement));
    let to = match to {
        instruction::Place::Register(part) => register(part),
        instruction::Place::Memory => slot(),
        instruction::Place::Nowhere => None,
    };
    let from = match from {
        Source::Register(part) => register(part),
        Source::Memory => slot(),
        Source::Constant(_) | Source::Unknown => None,
    };
    to.zip(from)
}

/// Whether an operand lies on the stack, at a place that the instruction says.
fn is_slot(operand: &Operand) -> bool {
    operand.base == Some(STACK_POINTER) && operand.index.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    // 0: mov [rsp-8],rdi | 5: xor edi,edi | 7: inc rdi; cmp rdi,rsi; jne 7 | f: mov rdi,[rsp-8]
    // 14: inc rdi; cmp rdi,rdx; jne 0 | ret
    const SPILLED: &[u8] = &[
        0x48, 0x89, 0x7c, 0x24, 0xf8, 0x31, 0xff, 0x48, 0xff, 0xc7, 0x48, 0x39, 0xf7, 0x75, 0xf8, 0x48, 0x8b, 0x7c,
        0x24, 0xf8, 0x48, 0xff, 0xc7, 0x48, 0x39, 0xd7, 0x75, 0xe4, 0xc3,
    ];

    const DI: Gpr = Gpr::new(7);

    fn spilled() -> (Function, LoopId) {
        let function = Function::decode(SPILLED, 0);
        let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
        (function, outer)
    }

    #[test]
    fn a_counter_that_waits_on_the_stack_is_seen_where_it_is_back() {
        let (function, outer) = spilled();
        let at = function.instruction_at(0x14).unwrap();
        let carrier = follow(&function, outer, Move { at, from: DI, to: DI }).unwrap();
        let seen: Vec<u64> = (0..function.instructions.len())
            .filter(|s| carrier.holder(*s).is_some())
            .map(|s| function.instructions[s].address)
            .collect();
        assert_eq!(seen, [0x0, 0x5, 0x14, 0x17, 0x1a], "not while the inner loop counts in its register");
    }

    #[test]
    fn a_counter_that_is_lost_is_none() {
        let (function, outer) = spilled();
        let at = function.instruction_at(0x7).unwrap();
        assert!(follow(&function, outer, Move { at, from: DI, to: DI }).is_none(), "it starts anew in each round");
    }

    #[test]
    fn a_slot_that_something_else_overwrites_is_lost() {
        let mut code = SPILLED.to_vec();
        // mov [rsp-8],rsi in the place of the move back: the slot holds something else then.
        code.splice(0xf..0x14, [0x48, 0x89, 0x74, 0x24, 0xf8]);
        let function = Function::decode(&code, 0);
        let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
        let at = function.instruction_at(0x14).unwrap();
        assert!(follow(&function, outer, Move { at, from: DI, to: DI }).is_none());
    }
}
