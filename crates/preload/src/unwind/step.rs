//! The step from a frame to its caller's: a row of call frame information, packed into one word where it is one
//! of the usual kind, and remembered by address. Programs allocate from few places, so nearly every step is a
//! look-up, an addition, and a read for each register that the frame has kept.
//!
//! A usual row: the CFA is a register and a distance, or lies in memory at such a place (where a function
//! aligned its stack); the return address is right below it; and registers that the callee saves are kept
//! within 31 words, all from the CFA or all from the frame pointer.
//!
//! The memory of steps is shared by all threads, without locks: a word and its key are stored so that one
//! without the other fits no key (Hyatt and Mann, "A lockless transposition-table implementation for parallel
//! search", ICGA Journal 25, 2002). A step is true of the code, not of a stack, so nothing of it goes stale but
//! by unloading: the generation is part of the key.

use std::sync::atomic::{AtomicU64, Ordering};

use tierloom_wire::scatter;

use super::bytes::Bytes;
use super::cfi::{self, Cfa, Expression, Frame, RBP, RBX, REGISTERS, RETURN_ADDRESS, RSP, Row, Rule};
use super::expression::evaluate;
use super::memory::Memory;
use super::registers::Registers;

const WORD: i32 = 8;
/// Registers that the callee saves, and the lowest bit of where each is kept.
const SAVED: [(usize, u32); 6] = [(RBX, 5), (RBP, 11), (12, 17), (13, 23), (14, 29), (15, 35)];
/// Registers from which a CFA is counted: the stack pointer, and those.
const BASES: [usize; 7] = [RSP, RBP, RBX, 12, 13, 14, 15];

/// How to get to the caller, in one word; from the lowest bit: base (3 bits), whether the CFA is in memory
/// there, whether registers are kept from the frame pointer, where each is (6 bits: words, [`NOT_KEPT`] = it is
/// not), and the distance from the base, words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step(u64);

const IN_MEMORY: u64 = 1 << 3;
const FROM_FRAME_POINTER: u64 = 1 << 4;
const KEPT_BITS: u32 = 6;
const NOT_KEPT: i64 = -32;
/// Lowest bit of the distance.
const DISTANCE: u32 = 41;
/// No base has this number: nobody knows of a caller.
const NO_CALLER: Step = Step(7);

/// Goes to the caller of these registers' frame. `interrupted`: the frame did not call, so its address is the one where it goes on; else that behind a call.
pub(super) fn to_caller(registers: &mut Registers, interrupted: bool, generation: u32, memory: &mut Memory) -> Found {
    let address = registers.address().wrapping_sub(u64::from(!interrupted));
    let key = key_of(address, generation);
    if let Some(step) = remembered(key) {
        return step.take(registers, memory);
    }
    by_row(registers, address, key, memory)
}

/// What a walk over frames of the usual kind needs: where it goes on, its stack pointer, its frame pointer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pointers {
    pub(super) address: u64,
    pub(super) stack: u64,
    pub(super) frame: u64,
}

/// The caller of a frame whose step is remembered and needs no register but these two, and no word that has to be
/// copied first. `None` is no answer; zeroes mean that there is no caller.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn quick(pointers: Pointers, generation: u32, memory: &Memory) -> Option<Pointers> {
    let Step(step) = remembered(key_of(pointers.address.wrapping_sub(1), generation))?;
    let base = match step & (7 | IN_MEMORY | FROM_FRAME_POINTER) {
        0 => pointers.stack,
        1 => pointers.frame,
        7 => return Some(Pointers { address: 0, stack: 0, frame: 0 }),
        _ => return None,
    };
    let cfa = base.wrapping_add_signed(step.cast_signed() >> DISTANCE << 3);
    let (_, bit) = SAVED[1];
    let words = (step << (64 - KEPT_BITS - bit)).cast_signed() >> (64 - KEPT_BITS);
    let frame = if words == NOT_KEPT { pointers.frame } else { memory.at_once(cfa.wrapping_add_signed(words * 8))? };
    Some(Pointers { address: memory.at_once(cfa.wrapping_sub(8))?, stack: cfa, frame })
}

fn key_of(address: u64, generation: u32) -> u64 {
    address ^ (u64::from(generation) << 48)
}

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The registers are the caller's.
    Caller,
    /// They are those of code that a signal interrupted.
    Interrupted,
    /// There is no caller.
    Nobody,
}

#[cold]
fn by_row(registers: &mut Registers, address: u64, key: u64, memory: &mut Memory) -> Found {
    let Some((frame, row)) = cfi::find(address).and_then(|frame| Some((frame, frame.row(address)?))) else {
        remember(key, NO_CALLER);
        return Found::Nobody;
    };
    if row.rules[RETURN_ADDRESS] == Rule::Undefined {
        remember(key, NO_CALLER);
        return Found::Nobody;
    }
    if let Some(step) = Step::pack(&frame, &row).filter(|_| !frame.by_signal) {
        remember(key, step);
    }
    match taken(&frame, &row, registers, memory) {
        None => Found::Nobody,
        Some(()) if frame.by_signal => Found::Interrupted,
        Some(()) => Found::Caller,
    }
}

/// Goes to the caller by a row of any kind.
fn taken(frame: &Frame, row: &Row, registers: &mut Registers, memory: &mut Memory) -> Option<()> {
    let here = registers.0;
    let cfa = match row.cfa {
        Cfa::Register(register, offset) => here[usize::from(register)].wrapping_add_signed(offset.into()),
        Cfa::Expression(expression) => evaluate(frame.expression(expression), 0, &here, memory)?,
    };
    registers.0[RSP] = cfa;
    for (register, rule) in row.rules.iter().enumerate() {
        let mut value = |expression| evaluate(frame.expression(expression), cfa, &here, memory);
        registers.0[register] = match *rule {
            Rule::Same | Rule::Undefined => continue,
            Rule::At(offset) => memory.read(cfa.wrapping_add_signed(offset.into()))?,
            Rule::Offset(offset) => cfa.wrapping_add_signed(offset.into()),
            Rule::In(register) => here[usize::from(register)],
            Rule::Expression(expression) => value(expression)?,
            Rule::AtExpression(expression) => {
                let at = value(expression)?;
                memory.read(at)?
            }
        };
    }
    Some(())
}

impl Step {
    /// Packs a row; `None` where it is not a usual one.
    fn pack(frame: &Frame, row: &Row) -> Option<Self> {
        let (register, distance, in_memory) = match row.cfa {
            Cfa::Register(register, distance) => (usize::from(register), distance, false),
            Cfa::Expression(expression) => in_memory(frame, expression)?,
        };
        let base = BASES.iter().position(|base| *base == register)? as u64;
        let kept_from = SAVED.iter().find_map(|(register, _)| match row.rules[*register] {
            Rule::At(_) => Some(0),
            Rule::AtExpression(_) => Some(FROM_FRAME_POINTER),
            _ => None,
        });
        let kept_from = kept_from.unwrap_or(0);
        let mut word = base | if in_memory { IN_MEMORY } else { 0 } | kept_from;
        for (register, bit) in SAVED {
            word |= kept(frame, row.rules[register], kept_from)? << bit;
        }
        let is_usual = |(register, rule): (usize, &Rule)| match rule {
            _ if SAVED.iter().any(|(saved, _)| *saved == register) => true,
            Rule::At(offset) => register == RETURN_ADDRESS && *offset == -WORD,
            rule => register != RETURN_ADDRESS && *rule == Rule::Same,
        };
        if !row.rules.iter().enumerate().all(is_usual) {
            return None;
        }
        let distance = words(distance)?;
        let fits = distance.unsigned_abs() < 1 << (u64::BITS - 1 - DISTANCE);
        fits.then_some(Self(word | distance.cast_unsigned() << DISTANCE))
    }

    #[inline]
    fn take(self, registers: &mut Registers, memory: &mut Memory) -> Found {
        self.taken(registers, memory).map_or(Found::Nobody, |()| Found::Caller)
    }

    #[inline]
    fn taken(self, registers: &mut Registers, memory: &mut Memory) -> Option<()> {
        let base = registers.0[*BASES.get((self.0 & 7) as usize)?];
        let mut cfa = base.wrapping_add_signed(self.0.cast_signed() >> DISTANCE << 3);
        if self.0 & IN_MEMORY != 0 {
            cfa = memory.read(cfa)?;
        }
        let kept_from = if self.0 & FROM_FRAME_POINTER == 0 { cfa } else { registers.0[RBP] };
        for (register, bit) in SAVED {
            let words = (self.0 << (64 - KEPT_BITS - bit)).cast_signed() >> (64 - KEPT_BITS);
            if words != NOT_KEPT {
                registers.0[register] = memory.read(kept_from.wrapping_add_signed(words * 8))?;
            }
        }
        registers.0[RETURN_ADDRESS] = memory.read(cfa.wrapping_sub(8))?;
        registers.0[RSP] = cfa;
        Some(())
    }
}

/// Where a CFA lies in memory, if this is all that its expression says (`DW_OP_breg…`, `DW_OP_deref`): a register
/// and a distance.
fn in_memory(frame: &Frame, expression: Expression) -> Option<(usize, i32, bool)> {
    let (register, distance, mut rest) = from_register(frame, expression)?;
    (rest.byte() == Some(0x06) && rest.is_empty()).then_some((register, distance, true))
}

/// `DW_OP_breg…`: the register, the distance, and what follows.
fn from_register<'a>(frame: &Frame<'a>, expression: Expression) -> Option<(usize, i32, Bytes<'a>)> {
    let mut code = frame.expression(expression);
    let register = usize::from(code.byte()?).checked_sub(0x70).filter(|register| *register < REGISTERS)?;
    let distance = i32::try_from(code.signed()?).ok()?;
    Some((register, distance, code))
}

/// Where a register is kept, in the bits of a step; `None` where a step cannot say it.
fn kept(frame: &Frame, rule: Rule, from: u64) -> Option<u64> {
    let words_away = match rule {
        Rule::Same => NOT_KEPT,
        Rule::At(offset) if from == 0 => words(offset)?,
        Rule::AtExpression(expression) if from == FROM_FRAME_POINTER => match from_register(frame, expression)? {
            (RBP, offset, rest) if rest.is_empty() => words(offset)?,
            _ => return None,
        },
        _ => return None,
    };
    let fits = words_away == NOT_KEPT || rule != Rule::Same && words_away.abs() < -NOT_KEPT;
    fits.then_some(words_away.cast_unsigned() & ((1 << KEPT_BITS) - 1))
}

fn words(offset: i32) -> Option<i64> {
    (offset % WORD == 0).then_some(i64::from(offset / WORD))
}

/// Steps that are remembered: a program has some thousand calls on the ways to those that allocate much.
const REMEMBERED: usize = 1 << 12;

/// A step, and its key with the bits of the step turned in it.
struct Remembered {
    step: AtomicU64,
    turned_key: AtomicU64,
}

static STEPS: [Remembered; REMEMBERED] =
    [const { Remembered { step: AtomicU64::new(0), turned_key: AtomicU64::new(0) } }; REMEMBERED];

#[inline]
fn place_of(key: u64) -> &'static Remembered {
    #[allow(clippy::cast_possible_truncation)]
    let index = (scatter(key) >> (64 - REMEMBERED.trailing_zeros())) as usize;
    &STEPS[index]
}

#[inline]
fn remembered(key: u64) -> Option<Step> {
    let place = place_of(key);
    let (step, turned_key) = (place.step.load(Ordering::Relaxed), place.turned_key.load(Ordering::Relaxed));
    (step != 0 && step ^ turned_key == key).then_some(Step(step))
}

fn remember(key: u64, step: Step) {
    let place = place_of(key);
    place.step.store(step.0, Ordering::Relaxed);
    place.turned_key.store(key ^ step.0, Ordering::Relaxed);
}
