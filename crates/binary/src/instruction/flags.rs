//! Flags that a comparison sets.

/// Condition flags, as bits where the RFLAGS of x86-64 have them: samples show them so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub u64);

impl Flags {
    /// Those of left - right, computed with so many bits (Intel SDM vol. 1, 3.4.3.1).
    pub fn of_difference(left: u64, right: u64, bits: u32) -> Self {
        let (left, right) = (left << (64 - bits), right << (64 - bits));
        let result = left.wrapping_sub(right);
        let overflow = left.cast_signed().overflowing_sub(right.cast_signed()).1;
        let parity = (result >> (64 - bits) & 0xff).count_ones().is_multiple_of(2);
        Self(
            u64::from(left < right)
                | u64::from(parity) << 2
                | u64::from(result == 0) << 6
                | u64::from(result.cast_signed() < 0) << 7
                | u64::from(overflow) << 11,
        )
    }

    /// An unsigned difference was below zero.
    pub fn carry(self) -> bool {
        self.bit(0)
    }

    /// The lowest byte has an even number of ones.
    pub fn parity(self) -> bool {
        self.bit(2)
    }

    /// The result was zero.
    pub fn zero(self) -> bool {
        self.bit(6)
    }

    /// The result was negative.
    pub fn sign(self) -> bool {
        self.bit(7)
    }

    /// A signed result did not fit.
    pub fn overflow(self) -> bool {
        self.bit(11)
    }

    fn bit(self, position: u32) -> bool {
        self.0 >> position & 1 == 1
    }
}

/// The lowest bits, sign-extended.
pub fn sign_extended(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

pub(crate) fn low_bits(value: u64, bits: u32) -> u64 {
    (value << (64 - bits)) >> (64 - bits)
}
