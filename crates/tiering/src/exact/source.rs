//! Visits of a workload, page by page: what the exact evaluator is fed with.
//!
//! Seeded: the same seed gives the same visits. Sweeps go on where they stopped; nothing here takes memory by the page.

use tierloom_model::Pattern;

use super::random::Random;
use super::ranks::Ranks;
use crate::engine::layout::Layout;
use crate::workload::samples::Seen;
use crate::workload::{Spread, Stream};

/// Draws the visits of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Drawer {
    /// First page and pages of the part.
    first: u64,
    pages: u64,
    kind: Kind,
    /// Samples that say which pages, instead of the kind.
    trail: Option<Trail>,
    /// Where a sweep goes on.
    cursor: u64,
    /// Visits that were asked for but are not whole yet.
    owed: f64,
}

#[derive(Debug, Clone)]
enum Kind {
    Sweep,
    Uniform,
    Ranked { ranks: Ranks, scattered: bool },
}

/// Samples to go along.
#[derive(Debug, Clone)]
struct Trail {
    steps: Vec<Seen>,
    /// Those that are behind.
    passed: usize,
    /// Pages go on one after the other from a sample.
    swept: bool,
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
        let pages = to.saturating_sub(from).max(1);
        let kind = match &stream.spread {
            Spread::Sweep => Kind::Sweep,
            Spread::Uniform => Kind::Uniform,
            Spread::Zipf(theta) => Kind::Ranked { ranks: Ranks::zipf(*theta, pages), scattered: false },
            Spread::Scattered(theta) => Kind::Ranked { ranks: Ranks::zipf(*theta, pages), scattered: true },
            Spread::Bins(shares) => Kind::Ranked { ranks: Ranks::bins(shares, pages), scattered: true },
        };
        let first = placed.start + from.min(placed.pages - 1);
        Self { first, pages, kind, trail: None, cursor: 0, owed: 0.0 }
    }

    /// Visits along samples of the whole region.
    pub(crate) fn along(layout: &Layout, region: usize, stream: &Stream, steps: &[Seen]) -> Self {
        let (placed, swept) = (&layout.regions[region], matches!(stream.pattern, Pattern::Stream | Pattern::Strided));
        let trail = Some(Trail { steps: steps.to_vec(), passed: 0, swept });
        Self { first: placed.start, pages: placed.pages, kind: Kind::Uniform, trail, cursor: 0, owed: 0.0 }
    }

    /// Replaces what is in `out` by the codes (twice the page) of the next `count` visits, up to so much of the phase;
    /// the fraction is owed, and all of them where no sample says which.
    pub(crate) fn draw(&mut self, count: f64, upto: f64, random: &mut Random, out: &mut Vec<u32>) {
        self.owed += count;
        out.clear();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a window's visits")]
        let whole = self.owed as usize;
        let first = self.first;
        let mut push = |offset: u64| {
            #[expect(clippy::cast_possible_truncation, reason = "regions end below 2^31 pages")]
            out.push(((first + offset) as u32) << 1);
        };
        if let Some(trail) = &mut self.trail {
            if trail.visit(upto, whole, self.pages, random, push) {
                self.owed -= whole as f64;
            }
            return;
        }
        self.owed -= whole as f64;
        (0..whole).for_each(|_| push(self.offset(random)));
    }

    fn offset(&mut self, random: &mut Random) -> u64 {
        match &self.kind {
            Kind::Sweep => {
                let at = self.cursor;
                self.cursor = if at + 1 == self.pages { 0 } else { at + 1 };
                at
            }
            Kind::Uniform => random.below(self.pages),
            Kind::Ranked { ranks, scattered } => {
                let rank = ranks.draw(random);
                if *scattered { scatter(rank, self.pages) } else { rank }
            }
        }
    }
}

impl Trail {
    /// Spreads visits evenly over the samples up to a point; false where there are none.
    fn visit(&mut self, upto: f64, visits: usize, pages: u64, random: &mut Random, mut push: impl FnMut(u64)) -> bool {
        let behind = self.passed;
        self.passed += self.steps[behind..].partition_point(|step| step.done < upto);
        let steps = &self.steps[behind..self.passed];
        let width = pages.div_ceil(self.steps.len() as u64);
        for (index, step) in steps.iter().enumerate() {
            let upto = |index: usize| visits * index / steps.len();
            for nth in 0..(upto(index + 1) - upto(index)) as u64 {
                let aside = if self.swept { nth } else { pages - width / 2 + random.below(width) };
                push((step.page + aside) % pages);
            }
        }
        !steps.is_empty()
    }
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
}
