//! Flags that a comparison sets, and how wide it is.

use iced_x86::{Instruction, OpKind};

/// Bits of the first operand.
pub fn width(code: &Instruction) -> u32 {
    let bytes = match code.op0_kind() {
        OpKind::Register => code.op0_register().size(),
        OpKind::Memory => code.memory_size().size(),
        _ => 8,
    };
    u32::try_from(8 * bytes.clamp(1, 8)).unwrap_or(64)
}

/// Sign-extended from a width.
pub fn truncated(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

pub(crate) fn low_bits(value: u64, bits: u32) -> u64 {
    (value << (64 - bits)) >> (64 - bits)
}

/// RFLAGS after left - right (Intel SDM vol. 1, 3.4.3.1).
pub fn flags_of(left: u64, right: u64, bits: u32) -> u64 {
    let (left, right) = (left << (64 - bits), right << (64 - bits));
    let result = left.wrapping_sub(right);
    let overflow = left.cast_signed().overflowing_sub(right.cast_signed()).1;
    let parity = (result >> (64 - bits) & 0xff).count_ones().is_multiple_of(2);
    u64::from(left < right)
        | u64::from(parity) << 2
        | u64::from(result == 0) << 6
        | u64::from(result.cast_signed() < 0) << 7
        | u64::from(overflow) << 11
}
