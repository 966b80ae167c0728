//! Ranks, each drawn as often as its share of the visits says, without a table by the page.
//!
//! Ranks are joined to cells. The alias method (Walker, 1977; Vose, 1991) draws a cell by its share, an even draw a rank
//! in it, which stands or is drawn again (von Neumann's rejection). A cell of a Zipf law holds a 32nd as many ranks as there
//! are before it, so its rarest is nearly as frequent as its first: only what falls between the two takes a power.

use super::random::Random;
use crate::workload::zipf::{mass, zipf_share};

/// Ranks before a cell for each rank in it.
const NARROW: u64 = 32;
/// One, as random numbers count parts.
const ONE: f64 = 18_446_744_073_709_551_616.0;

/// What ranks are drawn from.
#[derive(Debug, Clone)]
pub(crate) struct Ranks {
    cells: Vec<Cell>,
    /// Exponent of the law within a cell.
    theta: f64,
}

/// Ranks next to each other.
#[derive(Debug, Clone, Copy)]
struct Cell {
    first: u64,
    ranks: u64,
    /// Part of its draws that are its own; the rest are another's.
    own: u64,
    other: u32,
    /// Rarest rank's share of the first one's: a draw below it stands.
    sure: u64,
}

impl Ranks {
    /// Of a Zipf law: rank `r`, from 0, in proportion to `∫ x^-θ dx` from `r + 1` to `r + 2`, which is within a few percent
    /// of the discrete law's and has a closed form.
    pub(crate) fn zipf(theta: f64, pages: u64) -> Self {
        let (mut cells, mut shares, mut first) = (Vec::new(), Vec::new(), 0);
        while first < pages {
            let end = (first + (first / NARROW).max(1)).min(pages);
            let sure = mass(theta, end - 1) / mass(theta, first);
            cells.push(Cell { first, ranks: end - first, own: u64::MAX, other: 0, sure: parts(sure) });
            shares.push(zipf_share(theta, end as f64, pages as f64) - zipf_share(theta, first as f64, pages as f64));
            first = end;
        }
        Self::of(cells, &shares, theta)
    }

    /// Of equal parts of the pages with these shares, even within each.
    pub(crate) fn bins(shares: &[f64], pages: u64) -> Self {
        let bins = shares.len() as u64;
        let cell = |bin: u64| {
            let first = (bin * pages / bins).min(pages - 1);
            let end = ((bin + 1) * pages / bins).max(first + 1);
            Cell { first, ranks: end - first, own: u64::MAX, other: 0, sure: u64::MAX }
        };
        Self::of((0..bins).map(cell).collect(), shares, 0.0)
    }

    /// Builds the alias table: what a cell lacks of an even share is drawn for one that has more.
    fn of(mut cells: Vec<Cell>, shares: &[f64], theta: f64) -> Self {
        let even = shares.iter().sum::<f64>() / cells.len() as f64;
        cells.iter_mut().zip(0..).for_each(|(cell, index)| cell.other = index);
        let mut left: Vec<f64> = shares.iter().map(|share| share / even).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..cells.len()).partition(|cell| left[*cell] < 1.0);
        while let (Some(cell), Some(giver)) = (poor.pop(), rich.last().copied()) {
            cells[cell].own = parts(left[cell]);
            cells[cell].other = u32::try_from(giver).unwrap_or(0);
            left[giver] -= 1.0 - left[cell];
            if left[giver] < 1.0 {
                rich.pop();
                poor.push(giver);
            }
        }
        Self { cells, theta }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let (index, coin) = random.split(self.cells.len() as u64);
        #[expect(clippy::cast_possible_truncation, reason = "below the number of cells")]
        let drawn = &self.cells[index as usize];
        let cell = if coin < drawn.own { drawn } else { &self.cells[drawn.other as usize] };
        loop {
            let (offset, coin) = random.split(cell.ranks);
            if coin <= cell.sure || coin < self.stands(cell.first, cell.first + offset) {
                return cell.first + offset;
            }
        }
    }

    /// A rank's share of the first one's of its cell.
    #[cold]
    fn stands(&self, first: u64, rank: u64) -> u64 {
        parts(mass(self.theta, rank) / mass(self.theta, first))
    }
}

/// A share of one in the parts of a random number.
fn parts(share: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most one, and the cast saturates")]
    let parts = (share * ONE) as u64;
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::zipf::integral;

    const DRAWS: u32 = 1_000_000;

    /// Pearson's statistic less its mean, in its standard deviations; groups have 100 draws or more.
    fn misfit(ranks: &Ranks, pages: u64, share: impl Fn(u64) -> f64) -> f64 {
        let (mut random, mut drawn) = (Random::new(7), vec![0u32; usize::try_from(pages).unwrap_or(0)]);
        for _ in 0..DRAWS {
            drawn[usize::try_from(ranks.draw(&mut random)).unwrap_or(usize::MAX)] += 1;
        }
        let (mut sum, mut groups, mut seen, mut expected) = (0.0, 0.0, 0.0, 0.0);
        for (rank, count) in (0..pages).zip(&drawn) {
            seen += f64::from(*count);
            expected += share(rank) * f64::from(DRAWS);
            if expected >= 100.0 {
                sum += (seen - expected) * (seen - expected) / expected;
                (groups, seen, expected) = (groups + 1.0, 0.0, 0.0);
            }
        }
        (sum - groups) / f64::sqrt(2.0 * groups)
    }

    fn zipf(theta: f64, pages: u64) -> impl Fn(u64) -> f64 {
        move |rank| mass(theta, rank) / integral(theta, pages as f64)
    }

    #[test]
    fn zipf_ranks_follow_their_law() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.2, 3.0] {
            for pages in [1, 2, 50, 10_000, 100_000] {
                let misfit = misfit(&Ranks::zipf(theta, pages), pages, zipf(theta, pages));
                assert!(misfit.abs() < 4.0, "{theta}, {pages} pages: {misfit}");
            }
        }
        let other = misfit(&Ranks::zipf(0.99, 10_000), 10_000, zipf(0.98, 10_000));
        assert!(other > 6.0, "a law that is close by is told apart: {other}");
    }

    #[test]
    fn bins_follow_their_shares() {
        let shares = [0.5, 0.0, 0.3, 0.2];
        for pages in [4, 10, 1001] {
            let ranks = Ranks::bins(&shares, pages);
            let share = |rank: u64| {
                let bin = (0..4).find(|bin| rank < (bin + 1) * pages / 4).unwrap_or(3);
                let index = usize::try_from(bin).unwrap_or(0);
                shares[index] / ((bin + 1) * pages / 4 - bin * pages / 4) as f64
            };
            assert!(misfit(&ranks, pages, share).abs() < 4.0, "{pages} pages");
        }
        let few = Ranks::bins(&[0.4, 0.3, 0.3], 1);
        assert_eq!(few.draw(&mut Random::new(1)), 0);
    }
}
