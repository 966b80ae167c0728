//! What an instruction makes of general-purpose registers and of the word in memory that it names.
//!
//! Only what addresses, counters and branches are made of is told; everything else is [`Operation::Other`],
//! of which no more is known than which registers it writes.

use super::flags::sign_extended;
use super::flow::Condition;
use super::registers::{Gpr, Part};

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A register or a part of one.
    Register(Part),
    /// The instruction itself, extended to 64 bits as it says.
    Constant(u64),
    /// The memory operand.
    Memory,
    /// Something that is not followed.
    Unknown,
}

/// Where a result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A register or a part of one.
    Register(Part),
    /// The memory operand.
    Memory,
    /// Only flags are set.
    Nowhere,
}

/// Operations of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    /// The sign fills the upper bits.
    ShiftRightSigned,
}

/// Two numbers made into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compute {
    /// How.
    pub what: Arithmetic,
    /// Where the result goes; a comparison is a subtraction to nowhere.
    pub to: Place,
    /// The first number.
    pub left: Source,
    /// The second number.
    pub right: Source,
    /// Bytes that are computed with.
    pub bytes: u8,
}

impl Compute {
    /// The result. A count of shifts is taken as the processor takes it, modulo the width.
    pub fn result(&self, left: u64, right: u64) -> u64 {
        let count = u32::try_from(right & if self.bytes == 8 { 63 } else { 31 }).unwrap_or(0);
        match self.what {
            Arithmetic::Add => left.wrapping_add(right),
            Arithmetic::Subtract => left.wrapping_sub(right),
            Arithmetic::Multiply => left.wrapping_mul(right),
            Arithmetic::And => left & right,
            Arithmetic::Or => left | right,
            Arithmetic::Xor => left ^ right,
            Arithmetic::ShiftLeft => left << count,
            Arithmetic::ShiftRight => left >> count,
            Arithmetic::ShiftRightSigned => (sign_extended(left, self.bits()) >> count).cast_unsigned(),
        }
    }

    /// Whether it is zero whatever it is made of: a register taken from itself.
    pub fn is_zero(&self) -> bool {
        matches!(self.what, Arithmetic::Xor | Arithmetic::Subtract)
            && self.left == self.right
            && matches!(self.right, Source::Register(_))
    }

    /// Bits that are computed with.
    pub fn bits(&self) -> u32 {
        8 * u32::from(self.bytes)
    }
}

/// An address that is computed and not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveAddress {
    /// Register that is added.
    pub base: Option<Gpr>,
    /// Register that is added `scale` times.
    pub index: Option<Gpr>,
    /// 1, 2, 4 or 8.
    pub scale: u64,
    /// Constant that is added, modulo 2^64.
    pub displacement: u64,
    /// The constant is an address of the module, as its file has it.
    pub relative: bool,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Copies, as wide as both are.
    Move {
        /// Where to.
        to: Place,
        /// Where from.
        from: Source,
    },
    /// Copies from something narrower.
    Extend {
        /// Where to.
        to: Part,
        /// Where from.
        from: Source,
        /// The sign fills the rest, else zeros.
        signed: bool,
    },
    /// Computes an address.
    Address {
        /// Where to.
        to: Part,
        /// The address.
        address: EffectiveAddress,
    },
    /// Makes two numbers into one, or compares them.
    Compute(Compute),
    /// Copies where the last comparison came out so.
    Select {
        /// Where to.
        to: Part,
        /// Where from.
        from: Source,
        /// When.
        condition: Condition,
    },
    /// All ones where the last unsigned comparison came out below, else 0.
    Borrow(Part),
    /// Changes the sign.
    Negate(Part),
    /// Inverts all bits.
    Complement(Part),
    /// Stores a word below the stack pointer, which moves there.
    Push,
    /// Loads the word at the stack pointer, which moves on.
    Pop {
        /// The register that it goes to, if it is one.
        to: Option<Gpr>,
    },
    /// Stores where memory holds what is expected, and finds out what it holds instead.
    CompareExchange {
        /// What is expected, and then what was found.
        expected: Gpr,
    },
    /// Tells the processor that it waits for another thread.
    Pause,
    /// Anything else.
    Other,
}

impl Operation {
    /// What zeroing a register or a copy of a constant leaves behind.
    pub fn constant(&self) -> Option<u64> {
        match self {
            Self::Compute(compute) if compute.to != Place::Nowhere => compute.is_zero().then_some(0),
            Self::Move { from: Source::Constant(value), .. } => Some(*value),
            _ => None,
        }
    }
}
