//! Memory operands of x86-64 instructions.

use iced_x86::{Instruction as Code, MemorySize, Mnemonic, OpAccess, OpKind, Register, UsedMemory};

use super::registers::{COUNTER, STACK_POINTER, gpr};
use crate::instruction::{Element, Operand, ThreadLocal};

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
    if !explicit && !string || is_thread_local(code) {
        return Vec::new();
    }
    // Relative to the instruction, an address is known, and listed without a base.
    let base = if code.is_ip_rel_memory_operand() { Register::None } else { code.memory_base() };
    let data = used.iter().filter(|memory| string || memory.base() == base || !explicit);
    let mut found: Vec<Operand> = Vec::new();
    for memory in data {
        // Push, pop and call add their stack slot to the list: it is based on RSP and not explicit.
        if gpr(memory.base()) == Some(STACK_POINTER) && code.memory_base() != Register::RSP {
            continue;
        }
        let operand = operand(code, memory);
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

fn is_thread_local(code: &Code) -> bool {
    matches!(code.segment_prefix(), Register::FS | Register::GS)
}

/// What of the thread's own storage an instruction reads or writes.
pub(super) fn thread_local(code: &Code, used: &[UsedMemory]) -> Option<ThreadLocal> {
    if matches!(code.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) || is_prefetch(code) || !is_thread_local(code) {
        return None;
    }
    let own = used.iter().filter(|memory| matches!(memory.segment(), Register::FS | Register::GS));
    own.map(|memory| ThreadLocal {
        read: reads(memory.access()),
        write: writes(memory.access()),
        bytes: u32::try_from(memory.memory_size().size()).unwrap_or(8),
    })
    .reduce(|one, other| ThreadLocal {
        read: one.read || other.read,
        write: one.write || other.write,
        bytes: one.bytes.max(other.bytes),
    })
}

fn operand(code: &Code, memory: &UsedMemory) -> Operand {
    // Of a repeated instruction nobody knows how much it touches in all; this is of one time.
    let size = if repeated(code) { code.memory_size() } else { memory.memory_size() };
    let gather = code.is_vsib();
    let lane = u32::try_from(size.element_size().max(1)).unwrap_or(8);
    let (bytes, element) = if gather {
        (lane * lanes(code), Element::Bytes(lane))
    } else {
        (u32::try_from(size.size()).unwrap_or(8), element(code, size))
    };
    Operand {
        base: gpr(memory.base()),
        index: gpr(memory.index()),
        scale: u64::from(memory.scale()),
        displacement: memory.displacement(),
        read: reads(memory.access()),
        write: writes(memory.access()),
        bytes,
        element,
        gather,
        repeats: repeated(code).then_some(COUNTER),
    }
}

/// Whether it is a string instruction that does the same again until its counter is used up, or something is found.
fn repeated(code: &Code) -> bool {
    code.is_string_instruction() && (code.has_rep_prefix() || code.has_repne_prefix())
}

/// Whether it is a repeated string instruction that fills or copies: it serves any element type, as a plain vector move does.
fn fills_or_copies(code: &Code) -> bool {
    use Mnemonic::{Movsb, Movsd, Movsq, Movsw, Stosb, Stosd, Stosq, Stosw};
    repeated(code) && matches!(code.mnemonic(), Movsb | Movsd | Movsq | Movsw | Stosb | Stosd | Stosq | Stosw)
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
    ) || fills_or_copies(code);
    let double = matches!(code.mnemonic(), Movapd | Movupd | Movntpd | Vmovapd | Vmovupd | Vmovntpd);
    match (plain, double) {
        (true, _) => Element::Any,
        (_, true) => Element::Bytes(8),
        _ => Element::Bytes(u32::try_from(size.element_size().max(1)).unwrap_or(8)),
    }
}

#[cfg(test)]
mod tests {
    use crate::arch::decode;
    use crate::instruction::Element;

    #[test]
    fn an_operand_relative_to_its_instruction_has_an_address() {
        // vmovsd xmm7, [rip + 0x21bf8] at 0x6edf0, 8 bytes long
        let operand = decode(&[0xc5, 0xfb, 0x10, 0x3d, 0xf8, 0x1b, 0x02, 0x00], 0x6edf0)[0].operands[0];
        assert_eq!((operand.base, operand.displacement), (None, 0x909f0));
        assert!(operand.read && !operand.write && operand.bytes == 8);
        // inc dword [rip + 0x10]
        let operand = decode(&[0xff, 0x05, 0x10, 0, 0, 0], 0x1000)[0].operands[0];
        assert_eq!((operand.displacement, operand.read, operand.write), (0x1016, true, true));
    }

    #[test]
    fn thread_local_storage_is_no_operand_and_told_apart() {
        // mov rax,fs:[0x28]; add dword fs:[rax*4-0x40],1; mov rax,[rdi]; nop dword cs:[rax+rax]
        let code = [
            0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0x64, 0x83, 0x04, 0x85, 0xc0, 0xff, 0xff, 0xff, 0x01, 0x48,
            0x8b, 0x07, 0x2e, 0x0f, 0x1f, 0x04, 0x00,
        ];
        let decoded = decode(&code, 0);
        let own: Vec<_> =
            decoded.iter().map(|one| one.thread_local.map(|own| (own.read, own.write, own.bytes))).collect();
        assert_eq!(own, [Some((true, false, 8)), Some((true, true, 4)), None, None]);
        assert_eq!(decoded.iter().map(|one| one.operands.len()).collect::<Vec<_>>(), [0, 0, 1, 0]);
    }

    #[test]
    fn a_repeated_fill_or_copy_serves_any_element_type() {
        let element = |code: &[u8]| decode(code, 0x1000)[0].operands[0].element;
        assert_eq!(element(&[0xf3, 0xaa]), Element::Any, "rep stosb");
        assert_eq!(element(&[0xf3, 0xa4]), Element::Any, "rep movsb");
        assert_eq!(element(&[0xaa]), Element::Bytes(1), "stosb: one byte");
        assert_eq!(element(&[0xf2, 0xae]), Element::Bytes(1), "repne scasb looks at bytes");
    }

    #[test]
    fn calls_and_jumps_through_the_linkage_table_read_it() {
        // call [rip + 0x10]
        assert_eq!(decode(&[0xff, 0x15, 0x10, 0, 0, 0], 0x1000)[0].operands.len(), 1);
    }
}
