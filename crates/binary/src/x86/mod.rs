//! The instructions of x86-64 processors: what each reads, writes and does.

pub mod flags;
pub mod instruction;
pub mod state;

/// Registers of a thread that are followed, in the order of [`register`].
pub const REGISTERS: usize = 18;

/// Positions of the registers: the order of the kernel's
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
