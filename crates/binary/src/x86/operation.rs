//! What an x86-64 instruction does, as far as that is followed.

use iced_x86::{ConditionCode, Instruction as Code, Mnemonic, OpKind, Register};

use super::flow::condition;
use super::registers::gpr;
use crate::instruction::{Arithmetic, Compute, EffectiveAddress, Operation, Part, Place, Source};

pub(super) fn operation(code: &Code) -> Operation {
    known(code).unwrap_or(Operation::Other)
}

fn known(code: &Code) -> Option<Operation> {
    match code.mnemonic() {
        Mnemonic::Mov => Some(Operation::Move { to: place(code)?, from: source(code, 1) }),
        Mnemonic::Movzx => Some(Operation::Extend { to: target(code)?, from: source(code, 1), signed: false }),
        Mnemonic::Movsx | Mnemonic::Movsxd => {
            Some(Operation::Extend { to: target(code)?, from: source(code, 1), signed: true })
        }
        Mnemonic::Cdqe => {
            let from = Source::Register(part(Register::EAX)?);
            Some(Operation::Extend { to: part(Register::RAX)?, from, signed: true })
        }
        Mnemonic::Lea => Some(Operation::Address { to: target(code)?, address: address(code) }),
        Mnemonic::Sbb if itself(code) => Some(Operation::Borrow(target(code)?)),
        Mnemonic::Neg => Some(Operation::Negate(target(code)?)),
        Mnemonic::Not => Some(Operation::Complement(target(code)?)),
        Mnemonic::Push => Some(Operation::Push),
        Mnemonic::Pop => Some(Operation::Pop { to: gpr(code.op0_register()) }),
        Mnemonic::Cmpxchg => Some(Operation::CompareExchange { expected: gpr(Register::RAX)? }),
        Mnemonic::Pause => Some(Operation::Pause),
        _ if code.op_count() == 2 && code.condition_code() != ConditionCode::None => {
            Some(Operation::Select { to: target(code)?, from: source(code, 1), condition: condition(code)? })
        }
        _ => compute(code).map(Operation::Compute),
    }
}

/// Whether both operands are the same register.
fn itself(code: &Code) -> bool {
    code.op0_kind() == OpKind::Register
        && code.op1_kind() == OpKind::Register
        && code.op0_register() == code.op1_register()
}

fn compute(code: &Code) -> Option<Compute> {
    let (what, to) = match code.mnemonic() {
        Mnemonic::Inc | Mnemonic::Add => (Arithmetic::Add, place(code)?),
        Mnemonic::Dec | Mnemonic::Sub => (Arithmetic::Subtract, place(code)?),
        Mnemonic::Cmp => (Arithmetic::Subtract, Place::Nowhere),
        Mnemonic::Imul => (Arithmetic::Multiply, place(code)?),
        Mnemonic::And => (Arithmetic::And, place(code)?),
        Mnemonic::Test => (Arithmetic::And, Place::Nowhere),
        Mnemonic::Or => (Arithmetic::Or, place(code)?),
        Mnemonic::Xor => (Arithmetic::Xor, place(code)?),
        Mnemonic::Shl => (Arithmetic::ShiftLeft, place(code)?),
        Mnemonic::Shr => (Arithmetic::ShiftRight, place(code)?),
        Mnemonic::Sar => (Arithmetic::ShiftRightSigned, place(code)?),
        _ => return None,
    };
    let (left, right) = match (code.mnemonic(), code.op_count()) {
        (Mnemonic::Inc | Mnemonic::Dec, _) => (source(code, 0), Source::Constant(1)),
        (_, 2) => (source(code, 0), source(code, 1)),
        (Mnemonic::Imul, 3) => (source(code, 1), source(code, 2)),
        _ => return None,
    };
    Some(Compute { what, to, left, right, bytes: width(code) })
}

/// Bytes of the first operand.
fn width(code: &Code) -> u8 {
    let bytes = match code.op0_kind() {
        OpKind::Register => code.op0_register().size(),
        OpKind::Memory => code.memory_size().size(),
        _ => 8,
    };
    u8::try_from(bytes.clamp(1, 8)).unwrap_or(8)
}

/// The first operand, as what is written.
fn place(code: &Code) -> Option<Place> {
    match code.op0_kind() {
        OpKind::Register => part(code.op0_register()).map(Place::Register),
        OpKind::Memory => Some(Place::Memory),
        _ => None,
    }
}

fn target(code: &Code) -> Option<Part> {
    if code.op0_kind() == OpKind::Register { part(code.op0_register()) } else { None }
}

fn source(code: &Code, operand: u32) -> Source {
    match code.op_kind(operand) {
        OpKind::Register => part(code.op_register(operand)).map_or(Source::Unknown, Source::Register),
        OpKind::Memory => Source::Memory,
        _ => code.try_immediate(operand).map_or(Source::Unknown, Source::Constant),
    }
}

fn part(register: Register) -> Option<Part> {
    let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    Some(Part { register: gpr(register)?, bytes: u8::try_from(register.size()).unwrap_or(8), high })
}

fn address(code: &Code) -> EffectiveAddress {
    EffectiveAddress {
        base: gpr(code.memory_base()),
        index: gpr(code.memory_index()),
        scale: u64::from(code.memory_index_scale()),
        displacement: code.memory_displacement64(),
        relative: matches!(code.memory_base(), Register::RIP | Register::EIP),
    }
}
