//! The one source of chance: what is drawn from it is the same for the same seed.

use tierloom_model::hash::SplitMix;

/// `xoshiro256++` by Blackman and Vigna (public domain), seeded by `splitmix64`.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seeds = SplitMix::new(seed);
        Self { state: [(); 4].map(|()| seeds.draw()) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let shifted = b << 17;
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ shifted, d.rotate_left(45)];
        result
    }

    /// Evenly from 0 to below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.split(limit).0
    }

    /// The same and an even 64-bit number that does not hang on it, as long as the limit is far below 2^64.
    pub(crate) fn split(&mut self, limit: u64) -> (u64, u64) {
        // The high half of the product is below the limit.
        let product = u128::from(self.next()) * u128::from(limit);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let halves = ((product >> 64) as u64, product as u64);
        halves
    }
}
