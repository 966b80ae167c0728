//! Numbers of fewer bits than a word.

/// So many low bits.
pub(crate) fn low(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The number that so many low bits are, with their sign.
pub(crate) fn sign_extended(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

/// So many low bits of a product.
pub(crate) fn narrowed(value: u128, bits: u32) -> u64 {
    u64::try_from(value & u128::from(low(bits))).unwrap_or(0)
}

/// Two values, where both are known.
pub(crate) fn both(left: Option<u64>, right: Option<u64>) -> Option<(u64, u64)> {
    left.zip(right)
}

/// Whether a number of so many bits is more than another one, with their signs.
pub(crate) fn greater(left: u64, right: u64, bits: u32) -> bool {
    sign_extended(left, bits) > sign_extended(right, bits)
}

/// An element of so many bits of a word, by its position.
pub(crate) fn element(word: u64, at: u32, bits: u32) -> u64 {
    word >> (bits * at) & low(bits)
}
