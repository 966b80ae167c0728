//! From bytes to instructions: each one is understood once, here.

use iced_x86::{Decoder, DecoderOptions, Instruction as Code, InstructionInfoFactory, Mnemonic};

use super::flow::flow;
use super::memory::{operands, thread_local, writes};
use super::operation::operation;
use super::registers::{CALLEE_SAVED, STACK_POINTER, gpr};
use super::vectors::vectors;
use crate::instruction::{Instruction, Operation, Outline, Place, RegisterSet, Setting, Source};

/// All instructions of the bytes that start at a virtual address.
pub fn decode(code: &[u8], start: u64) -> Vec<Instruction> {
    let mut factory = InstructionInfoFactory::new();
    decoder(code, start).into_iter().map(|code| instruction(&code, &mut factory)).collect()
}

/// As [`decode`], without what it takes long to find out.
pub fn outlines(code: &[u8], start: u64) -> impl Iterator<Item = Outline> {
    decoder(code, start).into_iter().map(|code| outline(&code))
}

fn decoder(code: &[u8], start: u64) -> Decoder<'_> {
    Decoder::with_ip(64, code, start, DecoderOptions::NONE)
}

fn instruction(code: &Code, factory: &mut InstructionInfoFactory) -> Instruction {
    let info = factory.info(code);
    let used = info.used_registers().iter().filter(|used| writes(used.access()));
    let written: RegisterSet = used.filter_map(|used| gpr(used.register())).collect();
    let operands = operands(code, info.used_memory());
    let flow = flow(code);
    Instruction {
        address: code.ip(),
        flow,
        operation: operation(code),
        sets_flags: code.rflags_modified() != 0,
        uses_stack: matches!(code.mnemonic(), Mnemonic::Push | Mnemonic::Pop | Mnemonic::Ret | Mnemonic::Leave),
        written,
        clobbered: if flow.is_call() { changed_by_calls() } else { written },
        sources: sources(code, operands.iter().all(|operand| operand.registers().is_empty()), written),
        operands,
        thread_local: thread_local(code, info.used_memory()),
        vectors: vectors(code),
        work: work(code.mnemonic()),
    }
}

fn changed_by_calls() -> RegisterSet {
    CALLEE_SAVED.others().without(RegisterSet::of(&[STACK_POINTER]))
}

/// Registers that are named, and those of an address that is not that of an operand in memory.
fn sources(code: &Code, without_address: bool, written: RegisterSet) -> RegisterSet {
    let mut named: RegisterSet = (0..code.op_count()).filter_map(|operand| gpr(code.op_register(operand))).collect();
    if without_address {
        [code.memory_base(), code.memory_index()].into_iter().filter_map(gpr).for_each(|part| named.insert(part));
    }
    // A plain move or load does not keep what was in the target.
    let overwrites = matches!(code.mnemonic(), Mnemonic::Mov | Mnemonic::Movsxd);
    if overwrites { named.without(written) } else { named }
}

/// Divisions and roots block their unit for about 5 cycles, while others retire at 4 a cycle (Fog, *Instruction
/// tables*: Zen 2 to 4, Ice Lake).
fn work(mnemonic: Mnemonic) -> f64 {
    use Mnemonic::{
        Div, Divpd, Divps, Divsd, Divss, Idiv, Sqrtpd, Sqrtps, Sqrtsd, Sqrtss, Vdivpd, Vdivps, Vdivsd, Vdivss, Vsqrtpd,
        Vsqrtps, Vsqrtsd, Vsqrtss,
    };
    match mnemonic {
        Div | Idiv | Divpd | Divps | Divsd | Divss | Sqrtpd | Sqrtps | Sqrtsd | Sqrtss | Vdivpd | Vdivps | Vdivsd
        | Vdivss | Vsqrtpd | Vsqrtps | Vsqrtsd | Vsqrtss => 20.0,
        _ => 1.0,
    }
}

fn outline(code: &Code) -> Outline {
    let first = if code.op_count() > 0 { gpr(code.op0_register()) } else { None };
    let setting = first.and_then(|first| Some((first, setting(&operation(code))?)));
    Outline { address: code.ip(), flow: flow(code), setting }
}

fn setting(operation: &Operation) -> Option<Setting> {
    match operation {
        Operation::Compute(compute) if compute.to == Place::Nowhere => None,
        Operation::Address { address, .. } if address.relative => Some(Setting::Constant(address.displacement)),
        Operation::Move { from: Source::Constant(value), .. } => Some(Setting::Constant(*value)),
        Operation::Move { from: Source::Register(part), .. } => Some(Setting::Copy(part.register)),
        _ => Some(Setting::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{Element, Flags, Flow, Gpr};

    fn first(bytes: &[u8]) -> Instruction {
        decode(bytes, 0x1000).swap_remove(0)
    }

    #[test]
    fn a_load_has_one_operand_and_writes_its_target() {
        let load = first(&[0x48, 0x8b, 0x04, 0xca]); // mov rax, [rdx+rcx*8]
        let operand = load.operands[0];
        assert_eq!((operand.base, operand.index, operand.scale), (Some(Gpr::new(2)), Some(Gpr::new(1)), 8));
        assert_eq!((operand.read, operand.write, operand.bytes), (true, false, 8));
        assert_eq!((load.written, load.sources), (RegisterSet::of(&[Gpr::new(0)]), RegisterSet::default()));
    }

    #[test]
    fn a_read_modify_write_reads_and_writes_once() {
        let update = first(&[0x83, 0x04, 0x87, 0x01]); // add dword [rdi+rax*4], 1
        assert_eq!(update.operands.len(), 1);
        assert!(update.operands[0].read && update.operands[0].write);
    }

    #[test]
    fn a_repeated_string_instruction_names_its_counter() {
        let (copy, once) = (first(&[0xf3, 0x48, 0xa5]), first(&[0x48, 0xa5])); // rep movsq; movsq
        let ways: Vec<_> = copy.operands.iter().map(|one| (one.base, one.read, one.write, one.bytes)).collect();
        let (source, destination) = (Some(Gpr::new(6)), Some(Gpr::new(7)));
        assert!(ways.contains(&(source, true, false, 8)) && ways.contains(&(destination, false, true, 8)), "{ways:?}");
        assert!(copy.operands.iter().all(|one| one.repeats == Some(Gpr::new(1))));
        assert!(once.operands.iter().all(|one| one.repeats.is_none()));
    }

    #[test]
    fn stack_traffic_and_lea_are_no_operands() {
        for bytes in [&[0x55][..], &[0xe8, 0, 0, 0, 0], &[0xc3], &[0x48, 0x8d, 0x04, 0x17], &[0x0f, 0x18, 0x08]] {
            assert!(first(bytes).operands.is_empty(), "{bytes:x?}");
        }
        assert!(first(&[0x55]).uses_stack && first(&[0xc3]).uses_stack && !first(&[0x90]).uses_stack);
    }

    #[test]
    fn vector_moves_serve_any_element_and_arithmetic_names_it() {
        let codes = decode(&[0x0f, 0x10, 0x07, 0x66, 0x0f, 0x58, 0x07, 0x66, 0x0f, 0xfe, 0xc1], 0);
        assert_eq!(codes[0].operands[0].element, Element::Any); // movups xmm0, [rdi]
        assert_eq!(codes[1].operands[0].element, Element::Bytes(8)); // addpd xmm0, [rdi]
        assert_eq!([0, 1, 2].map(|at| codes[at].vectors.element), [None, Some(8), Some(4)]); // paddd xmm0, xmm1
        let loaded = codes[0].vectors.registers[0].unwrap();
        assert!(codes[1].vectors.name(loaded) && codes[2].vectors.name(loaded));
    }

    #[test]
    fn conditional_jumps_ask_flags_and_loop_instructions_more() {
        let zero = Flags(1 << 6);
        let equal = first(&[0x74, 0x10]).flow; // je 0x1012
        assert_eq!((equal.jump_target(), equal.is_taken(zero)), (Some(0x1012), Some(true)));
        assert_eq!(equal.is_taken(Flags::default()), Some(false));
        assert_eq!(first(&[0x90]).flow.is_taken(zero), None);
        let counted = first(&[0xe2, 0xfe]).flow; // loop 0x1000
        assert_eq!((counted, counted.is_taken(zero)), (Flow::Branch { target: 0x1000, condition: None }, None));
    }

    #[test]
    fn a_step_by_one_is_an_addition_and_a_comparison_a_difference_that_goes_nowhere() {
        let inc = first(&[0x48, 0xff, 0xc0]).operation; // inc rax
        assert_eq!(inc, first(&[0x48, 0x83, 0xc0, 1]).operation, "add rax, 1");
        let (cmp, sub) = (first(&[0x39, 0xd8]).operation, first(&[0x29, 0xd8]).operation);
        let (Operation::Compute(cmp), Operation::Compute(sub)) = (cmp, sub) else { panic!("{cmp:?} {sub:?}") };
        assert_eq!((cmp.to, crate::instruction::Compute { to: sub.to, ..cmp }), (Place::Nowhere, sub));
    }

    #[test]
    fn outlines_say_the_same_as_whole_instructions() {
        let bytes: Vec<u8> = (0u32..3000).map(|k| k.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
        let whole = decode(&bytes, 0x40_0000);
        let outlined: Vec<_> = outlines(&bytes, 0x40_0000).map(|one| (one.address, one.flow)).collect();
        assert_eq!(outlined, whole.iter().map(|one| (one.address, one.flow)).collect::<Vec<_>>());
    }
}
