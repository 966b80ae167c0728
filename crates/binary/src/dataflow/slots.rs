//! Places on the stack that instructions name, and what a loop does to them.
//!
//! A slot is written by its name alone, as compilers do with what they have no register for; a program that also does so
//! by pointer is not followed.

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function, LoopId, Slot};
use crate::instruction::flags::sign_extended;
use crate::instruction::{Arithmetic, Instruction, Operand, Operation, Source};

/// Bytes of a slot.
const SLOT: i64 = 8;

impl Slot {
    /// That of an operand, where it is one.
    pub(super) fn of(operand: &Operand) -> Option<Self> {
        let Operand { displacement, bytes, .. } = *operand;
        (is_slot(operand) && bytes <= 8).then_some(Self { displacement, bytes })
    }

    /// Whether an instruction writes any of it.
    pub(super) fn is_written_by(self, instruction: &Instruction) -> bool {
        instruction.operands.iter().any(|operand| {
            let ahead = self.displacement.wrapping_sub(operand.displacement).cast_signed();
            operand.write && is_slot(operand) && -i64::from(self.bytes) < ahead && ahead < i64::from(operand.bytes)
        })
    }

    /// What it holds, of words from the stack pointer on.
    pub(super) fn value(self, stack: &[u64]) -> Option<u64> {
        value_of(stack, self.displacement, self.bytes)
    }
}

/// What the bytes hold that lie at a displacement from the first of some words.
pub(super) fn value_of(words: &[u64], displacement: u64, bytes: u32) -> Option<u64> {
    let end = displacement.checked_add(u64::from(bytes))?;
    if end > 8 * words.len() as u64 {
        return None;
    }
    let (word, shift) = (usize::try_from(displacement / 8).ok()?, 8 * (displacement % 8));
    let above = words.get(word + 1).copied().unwrap_or(0);
    let value = words[word] >> shift | above.checked_shl(u32::try_from(64 - shift).ok()?).unwrap_or(0);
    Some(if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) })
}

/// Whether an operand lies on the stack, at a place that the instruction says.
pub(super) fn is_slot(operand: &Operand) -> bool {
    operand.base == Some(STACK_POINTER) && operand.index.is_none()
}

/// Whether an instruction writes the slot at a displacement from the stack pointer, or a part of it.
pub(super) fn writes(instruction: &Instruction, slot: u64) -> bool {
    instruction.operands.iter().any(|operand| {
        let ahead = slot.wrapping_sub(operand.displacement).cast_signed();
        operand.write && is_slot(operand) && -SLOT < ahead && ahead < i64::from(operand.bytes)
    })
}

/// How far on the value of a slot is from one round of a loop to the next: by nothing, or by the constant that the one
/// instruction adds which writes it, once a round.
pub(super) fn step(function: &Function, inside: LoopId, slot: &Operand) -> Option<i64> {
    let natural = &function.loops[inside];
    if !is_slot(slot) || natural.written.contains(STACK_POINTER) {
        return None;
    }
    if natural.body.iter().any(|block| function.last(*block).is_call()) && is_lent(function, slot.displacement) {
        return None;
    }
    let of_block = |block: BlockId| function.instructions_of(block).iter().map(move |one| (block, one));
    let mut writers = natural.body.iter().copied().flat_map(of_block).filter(|(_, one)| writes(one, slot.displacement));
    let Some((block, writer)) = writers.next() else { return Some(0) };
    let Operation::Compute(compute) = writer.operation else { return None };
    let whole = |operand: &Operand| operand.displacement == slot.displacement && operand.bytes == slot.bytes;
    if !writer.operands.iter().any(whole) {
        return None;
    }
    let Source::Constant(amount) = compute.right else { return None };
    let amount = sign_extended(amount, compute.bits());
    let step = match compute.what {
        Arithmetic::Add => amount,
        Arithmetic::Subtract => amount.wrapping_neg(),
        _ => return None,
    };
    (writers.next().is_none() && function.once_per_round(inside, block)).then_some(step)
}

/// Whether a function takes the address of a slot: what it calls may write there.
fn is_lent(function: &Function, slot: u64) -> bool {
    let takes = |one: &Instruction| match one.operation {
        Operation::Address { address, .. } => {
            address.base == Some(STACK_POINTER) && address.index.is_none() && address.displacement == slot
        }
        _ => false,
    };
    function.instructions.iter().any(takes)
}

#[cfg(test)]
mod tests {
    use super::*;

    // 0: mov rax,[rsp-8]; mov rcx,[rsp-16]; add qword [rsp-16],96; dec rdi; jne 0 | ret
    const LOOP: &[u8] = &[
        0x48, 0x8b, 0x44, 0x24, 0xf8, 0x48, 0x8b, 0x4c, 0x24, 0xf0, 0x48, 0x83, 0x44, 0x24, 0xf0, 96, 0x48, 0xff, 0xcf,
        0x75, 0xeb, 0xc3,
    ];

    fn steps(code: &[u8]) -> [Option<i64>; 2] {
        let function = Function::decode(code, 0);
        [0, 1].map(|load| step(&function, LoopId::new(0), &function.instructions[load].operands[0]))
    }

    #[test]
    fn a_slot_moves_by_what_is_added_to_it() {
        assert_eq!(steps(LOOP), [Some(0), Some(96)]);
        // sub qword [rsp-16],96
        assert_eq!(steps(&[&LOOP[..12], &[0x6c], &LOOP[13..]].concat()), [Some(0), Some(-96)]);
        // add qword [rsp-12],96 reaches into both.
        assert_eq!(steps(&[&LOOP[..14], &[0xf4], &LOOP[15..]].concat()), [None, None]);
        // mov [rdi],rcx in the place of the second load: by pointer, and so not of a slot.
        let by_pointer = Function::decode(&[&LOOP[..5], &[0x48, 0x89, 0x0f, 0x66, 0x90], &LOOP[10..]].concat(), 0);
        assert_eq!(step(&by_pointer, LoopId::new(0), &by_pointer.instructions[1].operands[0]), None);
    }

    // 0: mov rax,[rsp+8] | 5: add rax,8; cmp rax,rsi; jne 5 | lea rdi,[rsp+8]; call rbx | test al,al; jne 0 | ret
    const LENT: &[u8] = &[
        0x48, 0x8b, 0x44, 0x24, 0x08, 0x48, 0x83, 0xc0, 0x08, 0x48, 0x39, 0xf0, 0x75, 0xf7, 0x48, 0x8d, 0x7c, 0x24,
        0x08, 0xff, 0xd3, 0x84, 0xc0, 0x75, 0xe7, 0xc3,
    ];

    #[test]
    fn what_a_call_has_the_address_of_may_be_another_value_behind_it() {
        let of = |code: &[u8]| {
            let function = Function::decode(code, 0);
            let outer = function.loops.position(|natural| natural.parent.is_none()).unwrap();
            step(&function, outer, &function.instructions[0].operands[0])
        };
        assert_eq!(of(LENT), None);
        let other = [&LENT[..18], &[0x10], &LENT[19..]].concat();
        assert_eq!(of(&other), Some(0), "of the next slot");
        let no_call = [&LENT[..19], &[0x66, 0x90], &LENT[21..]].concat();
        assert_eq!(of(&no_call), Some(0), "nobody writes there");
    }
}
