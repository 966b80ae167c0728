//! Visits of a workload, page by page: what the exact evaluator is fed with.
//!
//! Seeded: the same seed gives the same visits. Sweeps go on where they stopped; random visits are
//! drawn without a table, so nothing here takes memory by the page.

use crate::layout::Layout;
use crate::workload::{Spread, Stream};

/// Visits in a row that belong to one stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Visits {
    /// Pages.
    pub(crate) pages: Vec<u32>,
}

/// `xoshiro256++` by Blackman and Vigna (public domain), seeded by `splitmix64`.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self { state: [next(), next(), next(), next()] }
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
        // The high half of the product is below the limit.
        u64::try_from((u128::from(self.next()) * u128::from(limit)) >> 64).unwrap_or(0)
    }

    /// Evenly from 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / 9_007_199_254_740_992.0
    }
}

/// Draws the visits of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Drawer {
    /// First page and pages of the part.
    first: u64,
    pages: u64,
    kind: Kind,
    /// Where a sweep goes on.
    cursor: u64,
    /// Visits that were asked for but are not whole yet.
    owed: f64,
}

#[derive(Debug, Clone)]
enum Kind {
    Sweep,
    Uniform,
    /// Exponent, and the integral of the density up to the last rank.
    Zipf {
        theta: f64,
        scattered: bool,
    },
    /// Sums of the shares.
    Bins(Vec<f64>),
}

impl Drawer {
    pub(crate) fn new(layout: &Layout, region: usize, stream: &Stream) -> Self {
        let placed = &layout.regions[region];
        let at = |share: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the region")]
            let page = (placed.pages as f64 * share).round() as u64;
            page.min(placed.pages)
        };
        let (from, to) = (at(stream.part[0]), at(stream.part[1]));
        let kind = match &stream.spread {
            Spread::Sweep => Kind::Sweep,
            Spread::Uniform => Kind::Uniform,
            Spread::Zipf(theta) => Kind::Zipf { theta: *theta, scattered: false },
            Spread::Scattered(theta) => Kind::Zipf { theta: *theta, scattered: true },
            Spread::Bins(shares) => Kind::Bins(sums(shares)),
        };
        let first = placed.start + from.min(placed.pages - 1);
        Self { first, pages: to.saturating_sub(from).max(1), kind, cursor: 0, owed: 0.0 }
    }

    /// Replaces what is in `out` by the next `count` visits; the fraction is owed.
    pub(crate) fn draw(&mut self, count: f64, random: &mut Random, out: &mut Vec<u32>) {
        self.owed += count;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a window's visits")]
        let whole = self.owed as usize;
        self.owed -= whole as f64;
        out.clear();
        for _ in 0..whole {
            let page = self.first + self.offset(random);
            #[expect(clippy::cast_possible_truncation, reason = "regions end below 2^31 pages")]
            out.push(page as u32);
        }
    }

    fn offset(&mut self, random: &mut Random) -> u64 {
        match &self.kind {
            Kind::Sweep => {
                let at = self.cursor;
                self.cursor = if at + 1 == self.pages { 0 } else { at + 1 };
                at
            }
            Kind::Uniform => random.below(self.pages),
            Kind::Zipf { theta, scattered } => {
                let rank = zipf_rank(random.unit(), *theta, self.pages);
                if *scattered { scatter(rank, self.pages) } else { rank }
            }
            Kind::Bins(sums) => {
                let unit = random.unit();
                let bin = sums.partition_point(|sum| *sum <= unit).min(sums.len() - 1) as u64;
                let (bins, pages) = (sums.len() as u64, self.pages);
                let (from, to) = (bin * pages / bins, ((bin + 1) * pages / bins).max(bin * pages / bins + 1));
                scatter((from + random.below(to - from)).min(pages - 1), pages)
            }
        }
    }
}

fn sums(shares: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |share: &f64| {
        sum += share;
        sum
    };
    shares.iter().map(add).collect()
}

/// Rank by inversion of the continuous law `∫ x^-θ dx` from 1 to n + 1: its density over a rank is
/// within a few percent of the discrete law's, and it needs no table.
fn zipf_rank(unit: f64, theta: f64, pages: u64) -> u64 {
    let last = pages as f64 + 1.0;
    let x = if (theta - 1.0).abs() < 1e-9 {
        last.powf(unit)
    } else {
        let power = 1.0 - theta;
        (1.0 + unit * (last.powf(power) - 1.0)).powf(1.0 / power)
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to pages + 1")]
    let rank = x as u64;
    rank.clamp(1, pages) - 1
}

/// One page for each rank, spread over the addresses: multiplication by an odd constant modulo the next power
/// of two, again until it falls inside.
pub(crate) fn scatter(rank: u64, pages: u64) -> u64 {
    let mask = pages.next_power_of_two() - 1;
    let mut at = rank;
    loop {
        at = at.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15) & mask;
        at ^= at >> 7 & mask;
        if at < pages {
            return at;
        }
    }
}

/// Share of visits that the first `upto` of `pages` ranks take.
pub(crate) fn zipf_share(theta: f64, upto: f64, pages: f64) -> f64 {
    let integral = |x: f64| {
        if (theta - 1.0).abs() < 1e-9 { (x + 1.0).ln() } else { ((x + 1.0).powf(1.0 - theta) - 1.0) / (1.0 - theta) }
    };
    integral(upto) / integral(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn scattering_is_one_to_one() {
        for pages in [1, 2, 100, 1000, 4097] {
            let seen: BTreeSet<u64> = (0..pages).map(|rank| scatter(rank, pages)).collect();
            assert_eq!(seen.len() as u64, pages);
        }
    }

    #[test]
    fn zipf_ranks_follow_their_law() {
        let (mut random, pages, draws) = (Random::new(1), 10_000u64, 200_000);
        for theta in [0.5, 0.99, 1.0, 1.2] {
            let low = (0..draws).filter(|_| zipf_rank(random.unit(), theta, pages) < 1000).count();
            let share = zipf_share(theta, 1000.0, pages as f64);
            assert!((low as f64 / f64::from(draws) - share).abs() < 0.01, "{theta}: {low} against {share}");
        }
    }
}
