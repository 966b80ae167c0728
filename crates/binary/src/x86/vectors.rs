//! Vector registers of x86-64 instructions, and how wide the elements are that they compute with.

use std::sync::LazyLock;

use iced_x86::{Instruction as Code, Mnemonic, Register};

use crate::instruction::{VectorRegister, Vectors};

pub(super) fn vectors(code: &Code) -> Vectors {
    let registers = [0, 1, 2, 3].map(|operand| vector(code.op_register(operand)));
    let any = registers.iter().any(Option::is_some);
    Vectors { registers, element: if any { ELEMENTS[code.mnemonic() as usize] } else { None } }
}

/// By mnemonic: what [`element`] says.
static ELEMENTS: LazyLock<Vec<Option<u32>>> = LazyLock::new(|| Mnemonic::values().map(element).collect());

fn vector(register: Register) -> Option<VectorRegister> {
    register.is_vector_register().then_some(VectorRegister(register as u8))
}

/// Width of the elements that a packed arithmetic instruction works on.
fn element(mnemonic: Mnemonic) -> Option<u32> {
    let name = format!("{mnemonic:?}");
    let arithmetic = name.trim_start_matches('V');
    let is = |prefixes: &[&str], suffix: &str| {
        prefixes.iter().any(|p| arithmetic.starts_with(p)) && arithmetic.ends_with(suffix)
    };
    if let Some(width) = widened(arithmetic) {
        return Some(width);
    }
    if is(&["Add", "Sub", "Mul", "Div", "Sqrt", "Max", "Min", "Fmadd", "Fnmadd", "Fmsub", "Fnmsub"], "pd") {
        Some(8)
    } else if is(&["Add", "Sub", "Mul", "Div", "Sqrt", "Max", "Min", "Fmadd", "Fnmadd", "Fmsub", "Fnmsub"], "ps") {
        Some(4)
    } else if is(&["Padd", "Psub", "Pcmpeq", "Pcmpgt", "Pmin", "Pmax", "Psll", "Psrl", "Pmull", "Pmulu"], "q") {
        Some(8)
    } else if is(&["Padd", "Psub", "Pcmpeq", "Pcmpgt", "Pmin", "Pmax", "Psll", "Psrl", "Psra", "Pmull"], "d") {
        Some(4)
    } else {
        None
    }
}

/// Width of the elements that a conversion starts from.
fn widened(mnemonic: &str) -> Option<u32> {
    const BY_SOURCE: [(&[&str], u32); 3] = [
        (&["Pmovzxdq", "Pmovsxdq", "Punpckldq", "Punpckhdq", "Cvtdq2pd", "Cvtps2pd", "Cvtdq2ps"], 4),
        (&["Pmovzxwd", "Pmovzxwq", "Pmovsxwd", "Pmovsxwq", "Punpcklwd", "Punpckhwd"], 2),
        (&["Pmovzxbw", "Pmovzxbd", "Pmovzxbq", "Pmovsxbw", "Pmovsxbd", "Pmovsxbq", "Punpcklbw", "Punpckhbw"], 1),
    ];
    BY_SOURCE.iter().find(|(names, _)| names.contains(&mnemonic)).map(|(_, width)| *width)
}
