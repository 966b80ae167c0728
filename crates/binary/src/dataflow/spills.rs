//! Counters that do not stay in one register.
//!
//! Where registers run out, a loop's counter waits on the stack or in another register while an inner
//! loop runs, and comes back. It is followed through copies: of all places (registers and stack slots)
//! those remain that hold the counter on every way round the loop. What the counter is, is told by the
//! one instruction that moves it on. Slots are taken to be written by name only; a program that does
//! so by pointer as well is found out by the tests on pairs of samples.

use std::rc::Rc;

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function, Holder, Kept, LoopId, Slot, Waiting};
use crate::dataflow::slots::{self, is_slot};
use crate::dataflow::state::Shown;
use crate::instruction::{self, GENERAL, Gpr, Instruction, Operation, Part, RegisterSet, Source};

/// Loops with more instructions than this are not followed: generated code.
const MOST_INSTRUCTIONS: usize = 4000;

/// Where a counter is, by position of the instruction.
#[derive(Debug, Clone)]
pub struct CopyChain {
    /// Position of the instruction that moves it on.
    pub moved_at: usize,
    holders: Rc<[Holders]>,
}

impl CopyChain {
    /// What it is before an instruction, as far as a sample shows it.
    pub fn read(&self, shown: Shown<'_>, instruction: usize) -> Option<u64> {
        let Holders { registers, slot } = self.holders[instruction];
        let held = registers.iter().find_map(|register| shown.state.get(register));
        held.or_else(|| slot?.value(shown.stack))
    }
}

/// Where a value is: in all of these.
#[derive(Debug, Clone, Copy, Default)]
struct Holders {
    registers: RegisterSet,
    slot: Option<Slot>,
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
    let web = Web::new(function, inside, Some(moved))?;
    let held = web.settle(ALL, true);
    let slots: Vec<Option<Slot>> = web.slots.iter().map(|slot| web.narrowest(*slot)).collect();
    let held_in = |places: Places| Holders {
        registers: Gpr::all().filter(|register| places >> register.index() & 1 == 1).collect(),
        slot: (0..slots.len()).find(|slot| places >> (GENERAL + slot) & 1 == 1).and_then(|slot| slots[slot]),
    };
    let mut holders = vec![Holders::default(); function.instructions.len()];
    let mut comes_back = false;
    for (&block, entry) in function.loops[inside].body.iter().zip(held) {
        let mut places = entry;
        for (at, holder) in positions(function, block).zip(&mut holders[function.blocks[block].first..]) {
            comes_back |= at == moved.at && places >> moved.from.index() & 1 == 1;
            *holder = held_in(places);
            places = web.after(at, places);
        }
    }
    comes_back.then(|| CopyChain { moved_at: moved.at, holders: holders.into() })
}

/// Registers that a loop writes and that come back.
pub(super) fn kept(function: &Function, inside: LoopId) -> Kept {
    let natural = &function.loops[inside];
    *natural.kept.get_or_init(|| {
        let Some(web) = Web::new(function, inside, None) else { return Kept::default() };
        let is_exit = |block: BlockId| {
            let content = &function.blocks[block];
            content.leaves || content.successors.iter().any(|to| !natural.contains(*to))
        };
        let mut kept = Kept::default();
        for register in natural.written.iter().filter(|register| *register != STACK_POINTER) {
            let held = web.held_at_ends(register);
            if natural.latches.iter().all(|latch| held(*latch)) {
                kept.each_round.insert(register);
                if natural.body.iter().filter(|block| is_exit(**block)).all(|block| held(*block)) {
                    kept.at_exits.insert(register);
                }
            }
        }
        kept
    })
}

impl Waiting {
    /// All of a loop.
    pub(super) fn all(function: &Function, inside: LoopId) -> Vec<Self> {
        let kept = kept(function, inside).each_round;
        let Some(web) = Web::new(function, inside, None).filter(|_| !kept.is_empty()) else { return Vec::new() };
        kept.iter().map(|register| Self { register, holders: web.holders_of(register) }).collect()
    }

    /// What holds it before an instruction of the loop; a register for choice.
    pub(super) fn holder(&self, function: &Function, inside: LoopId, at: usize) -> Option<Holder> {
        *self.holders.get(at.checked_sub(first_of(function, inside))?)?
    }

    /// Whether the stack alone holds it somewhere.
    pub(super) fn is_on_stack(&self) -> bool {
        self.holders.iter().any(|holder| matches!(holder, Some(Holder::Slot(_))))
    }
}

/// Position of the first instruction of a loop.
fn first_of(function: &Function, inside: LoopId) -> usize {
    function.blocks[function.loops[inside].body[0]].first
}

/// Whether a register still holds before an instruction of a loop what it held at the start of the round.
pub(super) fn holds(function: &Function, inside: LoopId, register: Gpr, at: usize) -> bool {
    let Some(web) = Web::new(function, inside, None) else { return false };
    let block = function.block_of(at);
    let Ok(position) = function.loops[inside].body.binary_search(&block) else { return false };
    let entry = web.settle(1 << register.index(), false)[position];
    let places = (function.blocks[block].first..at).fold(entry, |places, at| web.after(at, places));
    places >> register.index() & 1 == 1
}

/// Places as bits: registers, then slots.
type Places = u128;
const ALL: Places = !(1 << STACK_POINTER.index());

struct Web<'a> {
    function: &'a Function,
    inside: LoopId,
    /// What moves the value on, if anything does.
    moved: Option<Move>,
    /// Displacements from the stack pointer.
    slots: Vec<u64>,
}

impl<'a> Web<'a> {
    fn new(function: &'a Function, inside: LoopId, moved: Option<Move>) -> Option<Self> {
        let natural = &function.loops[inside];
        let positions = || natural.body.iter().flat_map(|block| positions(function, *block));
        let all = || positions().map(|at| &function.instructions[at]);
        if all().count() > MOST_INSTRUCTIONS {
            return None;
        }
        let mut slots = Vec::new();
        // A call leaves it where it was.
        if !natural.written.contains(STACK_POINTER) {
            slots.extend(all().filter_map(copied).flat_map(|(to, from)| [to, from]).filter_map(slot));
            slots.sort_unstable();
            slots.dedup();
            // Of a place whose address is taken others may write.
            slots.retain(|slot| !function.instructions.iter().any(|one| is_address_of(one, *slot)));
            slots.truncate(Places::BITS as usize - GENERAL);
        }
        Some(Self { function, inside, moved, slots })
    }

    /// Places that hold the value at the start of each block of the body, the most that no way contradicts; at the
    /// header those that are given, and if it `comes_back` only where other rounds leave it there.
    fn settle(&self, at_header: Places, comes_back: bool) -> Vec<Places> {
        let natural = &self.function.loops[self.inside];
        let body = &natural.body;
        let start = |block: BlockId| if block == natural.header { at_header } else { ALL };
        let mut held: Vec<Places> = body.iter().map(|block| start(*block)).collect();
        let mut left: Vec<Places> = body.iter().zip(&held).map(|(block, entry)| self.through(*block, *entry)).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for (position, &block) in
                body.iter().enumerate().filter(|(_, block)| comes_back || **block != natural.header)
            {
                let before = self.function.blocks[block].predecessors.iter().filter_map(|b| body.binary_search(b).ok());
                let entry = before.fold(start(block), |places, from| places & left[from]);
                if entry != held[position] {
                    held[position] = entry;
                    left[position] = self.through(block, entry);
                    changed = true;
                }
            }
        }
        held
    }

    /// Whether a register holds at the end of a block what it held at the start of the round.
    fn held_at_ends(&self, register: Gpr) -> impl Fn(BlockId) -> bool {
        let body = &self.function.loops[self.inside].body;
        let held = self.settle(1 << register.index(), false);
        move |block| {
            let position = body.binary_search(&block);
            position.is_ok_and(|position| self.through(block, held[position]) >> register.index() & 1 == 1)
        }
    }

    /// By instruction from the first one of the loop on, what holds what a register held at the start of the round.
    fn holders_of(&self, register: Gpr) -> Box<[Option<Holder>]> {
        let body = &self.function.loops[self.inside].body;
        let first = first_of(self.function, self.inside);
        let end = body.iter().map(|block| self.function.blocks[*block].end).max().unwrap_or(first);
        let slots: Vec<Option<Slot>> = self.slots.iter().map(|slot| self.narrowest(*slot)).collect();
        let holder = |held: Places| {
            let bit = (held != 0).then(|| held.trailing_zeros() as usize)?;
            let slot = || *slots.get(bit.checked_sub(GENERAL)?)?;
            Gpr::all().nth(bit).map(Holder::Register).or_else(|| slot().map(Holder::Slot))
        };
        let mut holders = vec![None; end - first];
        for (block, entry) in body.iter().zip(self.settle(1 << register.index(), false)) {
            positions(self.function, *block).fold(entry, |held, at| {
                holders[at - first] = holder(held);
                self.after(at, held)
            });
        }
        holders.into()
    }

    /// The slot at a displacement, as narrow as any instruction of the loop takes it.
    fn narrowest(&self, displacement: u64) -> Option<Slot> {
        let body = self.function.loops[self.inside].body.iter();
        let operands = body.flat_map(|block| self.function.instructions_of(*block)).flat_map(|one| &one.operands);
        let here = operands.filter_map(Slot::of).filter(|slot| slot.displacement == displacement);
        here.min_by_key(|slot| slot.bytes)
    }

    fn through(&self, block: BlockId, entry: Places) -> Places {
        positions(self.function, block).fold(entry, |places, at| self.after(at, places))
    }

    fn after(&self, at: usize, places: Places) -> Places {
        let instruction = &self.function.instructions[at];
        if let Some(moved) = self.moved.filter(|moved| moved.at == at) {
            return (places >> moved.from.index() & 1) << moved.to.index();
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
        let written = self.slots.iter().filter(|slot| slots::writes(instruction, **slot));
        written.filter_map(|slot| self.bit(Place::Slot(*slot))).fold(0, |lost, bit| lost | 1 << bit)
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
    /// Bytes from the stack pointer to it.
    Slot(u64),
}

fn slot(place: Place) -> Option<u64> {
    match place {
        Place::Slot(displacement) => Some(displacement),
        Place::Register(_) => None,
    }
}

/// Whether an instruction computes the address of a slot.
fn is_address_of(instruction: &Instruction, slot: u64) -> bool {
    let Operation::Address { address, .. } = &instruction.operation else { return false };
    address.base == Some(STACK_POINTER) && address.index.is_none() && address.displacement == slot
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::state::State;

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
        // The register holds 3, and so does the slot below the stack pointer, which no sample brings.
        let mut state = State::unknown();
        state.set(DI, Some(3));
        let seen: Vec<u64> = (0..function.instructions.len())
            .filter(|s| carrier.read(Shown { state: &state, stack: &[] }, *s) == Some(3))
            .map(|s| function.instructions[s].address)
            .collect();
        assert_eq!(seen, [0x0, 0x5, 0x14, 0x17, 0x1a], "not while the inner loop counts in its register");
    }

    #[test]
    fn a_counter_that_waits_on_the_stack_is_read_there() {
        // The same, above the stack pointer.
        let code: Vec<u8> = SPILLED.iter().map(|byte| if *byte == 0xf8 { 8 } else { *byte }).collect();
        let code = [&code[..14], &[0xf8], &code[15..]].concat();
        let function = Function::decode(&code, 0);
        let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
        let at = function.instruction_at(0x14).unwrap();
        let carrier = follow(&function, outer, Move { at, from: DI, to: DI }).unwrap();
        let inner = function.instruction_at(0xa).unwrap();
        let state = State::unknown();
        assert_eq!(carrier.read(Shown { state: &state, stack: &[7, 5, 9] }, inner), Some(5));
        assert_eq!(carrier.read(Shown { state: &state, stack: &[7] }, inner), None);
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

    #[test]
    fn registers_that_wait_elsewhere_are_kept_from_round_to_round() {
        // 0: mov [rsp-8],rdi; mov r8,rsi; xor edi,edi | a: inc rdi; mov rsi,rdi; cmp rdi,rdx; jne a
        // | mov rdi,[rsp-8]; mov rsi,r8; dec rcx; jne 0 | ret
        let code = [
            0x48, 0x89, 0x7c, 0x24, 0xf8, 0x49, 0x89, 0xf0, 0x31, 0xff, 0x48, 0xff, 0xc7, 0x48, 0x89, 0xfe, 0x48, 0x39,
            0xd7, 0x75, 0xf5, 0x48, 0x8b, 0x7c, 0x24, 0xf8, 0x4c, 0x89, 0xc6, 0x48, 0xff, 0xc9, 0x75, 0xde, 0xc3,
        ];
        let function = Function::decode(&code, 0);
        let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
        let (source, counter) = (Gpr::new(6), Gpr::new(1));
        let kept_by = |function: &Function| kept(function, outer);
        let found = kept_by(&function);
        assert_eq!(found.each_round, RegisterSet::of(&[DI, source]), "not the counter, nor what holds another");
        assert_eq!(found.at_exits, found.each_round);
        assert!(!found.each_round.contains(counter));
        let at = |address| function.instruction_at(address).unwrap();
        assert!(holds(&function, outer, DI, at(0x8)) && !holds(&function, outer, DI, at(0xa)));
        assert!(!holds(&function, outer, source, at(0x15)) && holds(&function, outer, source, at(0x1d)));
        // lea rax,[rsp-8] behind it: somebody else may write there. mov rsi,r8 gives way to it.
        let shared = [&code[..26], &[0x90, 0x48, 0x8d, 0x44, 0x24, 0xf8], &code[29..33], &[0xdb, 0xc3]].concat();
        assert!(!kept_by(&Function::decode(&shared, 0)).each_round.contains(DI));
    }
}
