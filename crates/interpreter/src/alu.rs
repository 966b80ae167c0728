//! Arithmetic of so many bits, and the flags that it sets. Source: Intel SDM vol. 1, 3.4.3.1. What an instruction leaves
//! undefined, and the flag of decimal digits, are unknown.

use crate::bits::{low, narrowed, sign_extended};

pub(crate) const CARRY: u64 = 1;
pub(crate) const PARITY: u64 = 1 << 2;
pub(crate) const DIGIT_CARRY: u64 = 1 << 4;
pub(crate) const ZERO: u64 = 1 << 6;
pub(crate) const SIGN: u64 = 1 << 7;
pub(crate) const OVERFLOW: u64 = 1 << 11;
/// All flags that arithmetic sets.
pub(crate) const ALL: u64 = CARRY | PARITY | DIGIT_CARRY | ZERO | SIGN | OVERFLOW;

/// A result, the flags that it sets, and which of them are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) value: u64,
    pub(crate) flags: u64,
    pub(crate) known: u64,
}

/// These flags, where something holds.
pub(crate) fn flag(mask: u64, holds: bool) -> u64 {
    if holds { mask } else { 0 }
}

/// Flags that tell of the result alone.
fn of_result(value: u64, bits: u32) -> u64 {
    flag(PARITY, (value & 0xff).count_ones().is_multiple_of(2))
        | flag(ZERO, value & low(bits) == 0)
        | flag(SIGN, value >> (bits - 1) & 1 == 1)
}

pub(crate) fn add(left: u64, right: u64, carry: u64, bits: u32) -> Outcome {
    let (left, right) = (left & low(bits), right & low(bits));
    let sum = u128::from(left) + u128::from(right) + u128::from(carry);
    let value = left.wrapping_add(right).wrapping_add(carry) & low(bits);
    let overflow = ((left ^ value) & (right ^ value)) >> (bits - 1) & 1 == 1;
    let flags = of_result(value, bits) | flag(CARRY, sum >> bits != 0) | flag(OVERFLOW, overflow);
    Outcome { value, flags, known: ALL & !DIGIT_CARRY }
}

pub(crate) fn subtract(left: u64, right: u64, borrow: u64, bits: u32) -> Outcome {
    let (left, right) = (left & low(bits), right & low(bits));
    let value = left.wrapping_sub(right).wrapping_sub(borrow) & low(bits);
    let overflow = ((left ^ right) & (left ^ value)) >> (bits - 1) & 1 == 1;
    let below = u128::from(right) + u128::from(borrow) > u128::from(left);
    let flags = of_result(value, bits) | flag(CARRY, below) | flag(OVERFLOW, overflow);
    Outcome { value, flags, known: ALL & !DIGIT_CARRY }
}

/// Of a result that bits were mixed to.
pub(crate) fn logic(value: u64, bits: u32) -> Outcome {
    let value = value & low(bits);
    Outcome { value, flags: of_result(value, bits), known: ALL & !DIGIT_CARRY }
}

/// How a value is shifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shift {
    Left,
    Right,
    RightSigned,
}

/// `None` where nothing is shifted and no flag changes.
pub(crate) fn shift(how: Shift, value: u64, count: u64, bits: u32) -> Option<Outcome> {
    let value = value & low(bits);
    let count = u32::try_from(count & if bits == 64 { 63 } else { 31 }).unwrap_or(0);
    if count == 0 {
        return None;
    }
    let wide = u128::from(value);
    let signed = i128::from(sign_extended(value, bits));
    let (result, carry) = match how {
        Shift::Left => (wide << count, wide << count >> bits & 1),
        Shift::Right => (wide >> count, wide >> (count - 1) & 1),
        Shift::RightSigned => ((signed >> count).cast_unsigned(), (signed >> (count - 1)).cast_unsigned() & 1),
    };
    let value = narrowed(result, bits);
    // The carry of more bits than there are is undefined, but of a shift that keeps the sign.
    let carry_known = if count <= bits || how == Shift::RightSigned { CARRY } else { 0 };
    let flags = of_result(value, bits) | flag(CARRY, carry == 1);
    Some(Outcome { value, flags, known: PARITY | ZERO | SIGN | carry_known })
}

/// A rotation to the left; it sets no flag that is followed but carry.
pub(crate) fn rotate_left(value: u64, count: u64, bits: u32) -> Option<Outcome> {
    let value = value & low(bits);
    let masked = u32::try_from(count & if bits == 64 { 63 } else { 31 }).unwrap_or(0);
    if masked == 0 {
        return None;
    }
    let by = masked % bits;
    let value = if by == 0 { value } else { (value << by | value >> (bits - by)) & low(bits) };
    Some(Outcome { value, flags: flag(CARRY, value & 1 == 1), known: CARRY })
}

/// Likewise to the right.
pub(crate) fn rotate_right(value: u64, count: u64, bits: u32) -> Option<Outcome> {
    let masked = u32::try_from(count & if bits == 64 { 63 } else { 31 }).unwrap_or(0);
    if masked == 0 {
        return None;
    }
    let by = u64::from(bits - masked % bits) % u64::from(bits);
    // Nothing is left of a rotation by nothing, which still tells its carry.
    let value = if by == 0 { value & low(bits) } else { rotate_left(value, by, bits)?.value };
    Some(Outcome { value, flags: flag(CARRY, value >> (bits - 1) & 1 == 1), known: CARRY })
}

/// A signed product, whose carry and overflow tell that it did not fit; the upper half besides.
pub(crate) fn multiply_signed(left: u64, right: u64, bits: u32) -> (Outcome, u64) {
    let product = i128::from(sign_extended(left, bits)) * i128::from(sign_extended(right, bits));
    let value = narrowed(product.cast_unsigned(), bits);
    let fits = i128::from(sign_extended(value, bits)) == product;
    let upper = narrowed((product >> bits).cast_unsigned(), bits);
    let flags = flag(CARRY | OVERFLOW, !fits);
    (Outcome { value, flags, known: CARRY | OVERFLOW }, upper)
}

/// Likewise without signs.
pub(crate) fn multiply(left: u64, right: u64, bits: u32) -> (Outcome, u64) {
    let product = u128::from(left & low(bits)) * u128::from(right & low(bits));
    let value = narrowed(product, bits);
    let upper = narrowed(product >> bits, bits);
    (Outcome { value, flags: flag(CARRY | OVERFLOW, upper != 0), known: CARRY | OVERFLOW }, upper)
}
