//! The one hash of numbers on this side of the house: `tierloom_model::hash` over again, because the library that
//! goes into a foreign process brings nothing but this crate. A test holds the two together.

/// 2^64 divided by the golden ratio, and odd: the multiplier of Fibonacci hashing.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads numbers that lie close over all bits; the top ones are the best mixed (Fibonacci hashing, Knuth, TAOCP 3, 6.4).
#[inline]
pub const fn scatter(number: u64) -> u64 {
    number.wrapping_mul(GOLDEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_sides_of_the_house_hash_alike(number: u64) {
            prop_assert_eq!(super::scatter(number), tierloom_model::hash::scatter(number));
        }
    }

    #[test]
    fn both_sides_have_pages_of_one_size() {
        assert_eq!(crate::PAGE_BYTES, tierloom_model::units::PAGE_BYTES);
    }
}
