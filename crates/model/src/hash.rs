//! Hashes of numbers: the one multiplication and the one mixer that every room uses.
//!
//! Nothing here is a secret or a checksum: it spreads keys over tables and seeds sequences, the same on every machine.

/// 2^64 divided by the golden ratio, and odd: the multiplier of Fibonacci hashing, the step of `SplitMix64`.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads numbers that lie close over all bits; the top ones are the best mixed (Fibonacci hashing, Knuth, TAOCP 3, 6.4).
pub const fn scatter(number: u64) -> u64 {
    number.wrapping_mul(GOLDEN)
}

/// Each bit of the answer hangs on every bit of the number, and no two numbers share one (the finaliser of
/// `SplitMix64`, Steele, Lea and Flood 2014).
pub const fn mixed(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number at a position of a seeded sequence that nobody has to walk through.
pub const fn nth(seed: u64, position: u64) -> u64 {
    mixed(seed ^ scatter(position.wrapping_add(1)))
}

/// A seeded sequence of uniform 64-bit numbers (`SplitMix64`); it repeats itself after 2^64.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The sequence of one seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Its next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first numbers of seed 1234567 as Vigna's `splitmix64.c` prints them.
        let mut sequence = SplitMix::new(1_234_567);
        let drawn = [(); 3].map(|()| sequence.draw());
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_in_a_row_spread_over_a_table() {
        let taken: std::collections::BTreeSet<u64> = (0..256).map(|number| scatter(number) >> 56).collect();
        assert!(taken.len() > 200, "{} of 256 places", taken.len());
    }
}
