//! Memory operands of x86-64 instructions.

use iced_x86::{Instruction as Code, MemorySize, Mnemonic, OpAccess, OpKind, Register, UsedMemory};

use super::registers::{STACK_POINTER, gpr};
use crate::instruction::{Element, Operand};

pub(super) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::ReadWrite | OpAccess::CondRead | OpAccess::ReadCondWrite)
}

fn is_prefetch(code: &Code) -> bool {
    use Mnemonic::{Prefetch, Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw, Prefetchwt1};
    let mnemonic = code.mnemonic();
    matches!(mnemonic, Prefetch | Prefetchnta | Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchw | Prefetchwt1)
}

/// Where the program's data lie that an instruction reads or writes.
pub(super) fn operands(code: &Code, used: &[UsedMemory]) -> Vec<Operand> {
    if matches!(code.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) || is_prefetch(code) {
        return Vec::new();
    }
    let explicit = (0..code.op_count()).any(|k| code.op_kind(k) == OpKind::Memory);
    let string = code.is_string_instruction();
    if !explicit && !string || thread_local(code) {
        return Vec::new();
    }
    let data = used.iter().filter(|memory| string || memory.base() == code.memory_base() || !explicit);
    let mut found: Vec<Operand> = Vec::new();
    for memory in data {
        // Push, pop and call add their stack slot to the list: it is based on RSP and not explicit.
        if gpr(memory.base()) == Some(STACK_POINTER) && code.memory_base() != Register::RSP {
            continue;
        }
        let operand = operand(code, memory, string);
        match found.iter_mut().find(|known| (known.base, known.index) == (operand.base, operand.index)) {
            Some(known) => {
                known.read |= operand.read;
                known.write |= operand.write;
                known.bytes = known.bytes.max(operand.bytes);
            }
            None => found.push(operand),
        }
    }
    found
}

fn thread_local(code: &Code) -> bool {
    matches!(code.segment_prefix(), Register::FS | Register::GS)
}

fn operand(code: &Code, memory: &UsedMemory, string: bool) -> Operand {
    let size = memory.memory_size();
    let gather = code.is_vsib();
    let relative = matches!(memory.base(), Register::RIP | Register::EIP);
    let lane = u32::try_from(size.element_size().max(1)).unwrap_or(8);
    let (bytes, element) = if gather {
        (lane * lanes(code), Element::Bytes(lane))
    } else {
        (u32::try_from(size.size()).unwrap_or(8), element(code, size))
    };
    Operand {
        base: if relative { None } else { gpr(memory.base()) },
        index: gpr(memory.index()),
        scale: u64::from(memory.scale()),
        displacement: memory.displacement(),
        read: reads(memory.access()),
        write: writes(memory.access()),
        bytes,
        element,
        gather,
        string,
    }
}

/// Lanes of a gather or scatter: as many as fit both the data and the indices.
fn lanes(code: &Code) -> u32 {
    let lane = u32::try_from(code.memory_size().element_size().max(1)).unwrap_or(8);
    let data = (0..code.op_count()).filter(|&k| code.op_kind(k) == OpKind::Register).map(|k| code.op_register(k));
    let width = data.filter(|r| r.is_vector_register()).map(Register::size).min().unwrap_or(16);
    let index_lane = if code.is_vsib64() { 8 } else { 4 };
    let by_index = u32::try_from(code.memory_index().size()).unwrap_or(16) / index_lane;
    (u32::try_from(width).unwrap_or(16) / lane).min(by_index).max(1)
}

fn element(code: &Code, size: MemorySize) -> Element {
    use Mnemonic::{
        Lddqu, Movapd, Movaps, Movdqa, Movdqu, Movntdq, Movntpd, Movntps, Movupd, Movups, Pxor, Vmovapd, Vmovaps,
        Vmovdqa, Vmovdqu, Vmovntdq, Vmovntpd, Vmovntps, Vmovupd, Vmovups,
    };
    let plain = matches!(
        code.mnemonic(),
        Movups
            | Movaps
            | Movdqa
            | Movdqu
            | Movntdq
            | Movntps
            | Lddqu
            | Pxor
            | Vmovups
            | Vmovaps
            | Vmovdqa
            | Vmovdqu
            | Vmovntdq
            | Vmovntps
    );
    let double = matches!(code.mnemonic(), Movapd | Movupd | Movntpd | Vmovapd | Vmovupd | Vmovntpd);
    match (plain, double) {
        (true, _) => Element::Any,
        (_, true) => Element::Bytes(8),
        _ => Element::Bytes(u32::try_from(size.element_size().max(1)).unwrap_or(8)),
    }
}
