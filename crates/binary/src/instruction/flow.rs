//! Where control goes from an instruction, and what conditional jumps ask of the flags.

use super::flags::Flags;

/// Where control goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To an address.
    Jump(u64),
    /// To an address, or to the next instruction.
    Branch {
        /// The address.
        target: u64,
        /// When it goes there; `None` where more than flags decides.
        condition: Option<Condition>,
    },
    /// To an address that is not in the instruction.
    IndirectJump,
    /// To an address, and back to the next instruction.
    Call(u64),
    /// To an address that is not in the instruction, and back to the next one.
    IndirectCall {
        /// Where in the module the address lies, if that is fixed.
        slot: Option<u64>,
    },
    /// To where the function was called.
    Return,
    /// To the kernel, or to nowhere.
    Stop,
    /// It is not told.
    Unclear,
}

impl Flow {
    /// The address that a jump, conditional or not, names.
    pub fn jump_target(self) -> Option<u64> {
        match self {
            Self::Jump(target) | Self::Branch { target, .. } => Some(target),
            _ => None,
        }
    }

    /// Whether the next instruction may run next, or after what is called.
    pub fn falls_through(self) -> bool {
        matches!(self, Self::Next | Self::Branch { .. } | Self::Call(_) | Self::IndirectCall { .. })
    }

    /// Whether it is a call, direct or not.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call(_) | Self::IndirectCall { .. })
    }

    /// Whether it is a jump that flags alone decide.
    pub fn asks_flags(self) -> bool {
        matches!(self, Self::Branch { condition: Some(_), .. })
    }

    /// Whether a jump is taken under these flags; `None` where flags do not decide.
    pub fn is_taken(self, flags: Flags) -> Option<bool> {
        match self {
            Self::Branch { condition, .. } => condition.map(|condition| condition.holds(flags)),
            _ => None,
        }
    }
}

/// What a conditional jump asks of a comparison of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Condition {
    Overflow,
    NoOverflow,
    /// Unsigned, as `Above`.
    Below,
    AboveOrEqual,
    Equal,
    NotEqual,
    BelowOrEqual,
    Above,
    Negative,
    NotNegative,
    EvenParity,
    OddParity,
    /// Signed, as `Greater`.
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Greater,
}

impl Condition {
    /// Whether it holds under these flags.
    pub fn holds(self, flags: Flags) -> bool {
        let (carry, zero, sign, overflow) = (flags.carry(), flags.zero(), flags.sign(), flags.overflow());
        match self {
            Self::Overflow => overflow,
            Self::NoOverflow => !overflow,
            Self::Below => carry,
            Self::AboveOrEqual => !carry,
            Self::Equal => zero,
            Self::NotEqual => !zero,
            Self::BelowOrEqual => carry || zero,
            Self::Above => !(carry || zero),
            Self::Negative => sign,
            Self::NotNegative => !sign,
            Self::EvenParity => flags.parity(),
            Self::OddParity => !flags.parity(),
            Self::Less => sign != overflow,
            Self::GreaterOrEqual => sign == overflow,
            Self::LessOrEqual => zero || sign != overflow,
            Self::Greater => !zero && sign == overflow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_say_how_two_numbers_compare() {
        for (left, right) in [(0u64, 0), (1, 2), (2, 1), (u64::MAX, 1), (1, u64::MAX), (1 << 63, 1), (1, 1 << 63)] {
            let flags = Flags::of_difference(left, right, 64);
            let (signed, other) = (left.cast_signed(), right.cast_signed());
            let told = |condition: Condition| condition.holds(flags);
            assert_eq!((told(Condition::Below), told(Condition::AboveOrEqual)), (left < right, left >= right));
            assert_eq!((told(Condition::BelowOrEqual), told(Condition::Above)), (left <= right, left > right));
            assert_eq!((told(Condition::Equal), told(Condition::NotEqual)), (left == right, left != right));
            assert_eq!((told(Condition::Less), told(Condition::GreaterOrEqual)), (signed < other, signed >= other));
            assert_eq!((told(Condition::LessOrEqual), told(Condition::Greater)), (signed <= other, signed > other));
        }
    }
}
