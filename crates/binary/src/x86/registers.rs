//! Registers of x86-64: how calls use them, and where samples have them.

use iced_x86::Register;

use crate::instruction::{GENERAL, Gpr, RegisterSet};

/// The stack pointer; general-purpose registers are numbered as in the encoding (AX CX DX BX SP BP SI DI R8…R15).
pub const STACK_POINTER: Gpr = Gpr::new(4);
/// Counts how often a string instruction is repeated.
pub(super) const COUNTER: Gpr = Gpr::new(1);
/// Registers that a call leaves as they were (System V ABI for x86-64, table 3.4).
pub const CALLEE_SAVED: RegisterSet =
    RegisterSet::of(&[Gpr::new(3), Gpr::new(5), Gpr::new(12), Gpr::new(13), Gpr::new(14), Gpr::new(15)]);
/// Registers of the first arguments of a call, in order (System V ABI for x86-64, 3.2.3).
pub const ARGUMENTS: [Gpr; 6] = [Gpr::new(7), Gpr::new(6), Gpr::new(2), Gpr::new(1), Gpr::new(8), Gpr::new(9)];

/// Numbers that DWARF has for registers, each other's inverse (System V ABI for x86-64, figure 3.36): AX DX CX BX SI DI BP SP R8…
const BY_DWARF: [u8; GENERAL] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
/// DWARF's number of the return address (figure 3.36).
pub const RETURN_ADDRESS: u16 = 16;

/// General-purpose register that DWARF means by a number.
pub fn numbered_by_dwarf(number: u16) -> Option<Gpr> {
    BY_DWARF.get(usize::from(number)).map(|number| Gpr::new(*number))
}

/// DWARF's number of a general-purpose register.
pub fn in_dwarf(register: Gpr) -> u16 {
    let position = BY_DWARF.iter().position(|number| Gpr::new(*number) == register);
    position.and_then(|position| u16::try_from(position).ok()).unwrap_or(RETURN_ADDRESS)
}

/// Registers of a thread that are followed, in the order of [`register`].
pub const REGISTERS: usize = 18;

/// Positions of the registers in a sample: the order of the kernel's
/// `arch/x86/include/uapi/asm/perf_regs.h` without the segment registers.
#[allow(missing_docs)]
pub mod register {
    pub const AX: usize = 0;
    pub const BX: usize = 1;
    pub const CX: usize = 2;
    pub const DX: usize = 3;
    pub const SI: usize = 4;
    pub const DI: usize = 5;
    pub const BP: usize = 6;
    pub const SP: usize = 7;
    pub const IP: usize = 8;
    pub const FLAGS: usize = 9;
    /// `R8 + n` is register `8 + n`, up to R15.
    pub const R8: usize = 10;
}

/// Position in a sample of each general-purpose register.
pub const IN_SAMPLE: [usize; GENERAL] = {
    use register::{AX, BP, BX, CX, DI, DX, R8, SI, SP};
    [AX, CX, DX, BX, SP, BP, SI, DI, R8, R8 + 1, R8 + 2, R8 + 3, R8 + 4, R8 + 5, R8 + 6, R8 + 7]
};

/// Number of a general-purpose register of any width.
pub(super) fn gpr(register: Register) -> Option<Gpr> {
    let number = u8::try_from(register.full_register().number()).ok()?;
    register.is_gpr().then(|| Gpr::new(number))
}
