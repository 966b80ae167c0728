//! When the program changed what it works on: phases, from what its samples waited for over time.
//!
//! The samples in time order are a sequence of classes (an object, or a reason to be no object's). A
//! phase is a stretch with one mix of classes. The cuts are the ones that a maximum-likelihood
//! multinomial model with Schwarz's penalty chooses, found exactly by dynamic programming over bins
//! (Yao, *Estimating the number of change-points via Schwarz' criterion*, Statistics & Probability
//! Letters 6, 1988). Then phases that differ little are joined: samples of one iteration resemble
//! each other more than the model thinks, and a placement of their own would gain nothing.

use std::collections::BTreeMap;

use crate::attribution::{AttributedSample, Attribution};

/// Stretches of equal sample counts between which a phase may begin. Resolution against time.
const BINS: usize = 128;
/// Samples that a bin needs for its mix to mean something. Assumed.
const FEWEST_PER_BIN: usize = 20;
/// Shortest phase, in bins: a twentieth of the run is about what moving data for it can repay. Assumed.
const SHORTEST: usize = BINS / 20;
/// Classes with fewer samples than this share count as one. Assumed.
const SLIVER: f64 = 0.01;
/// Neighbours whose mixes differ by less (total variation distance) are one phase. Assumed.
const SAME_MIX: f64 = 0.2;

/// Positions of the first sample of each phase; the first one is 0. Samples are in time order.
pub(crate) fn beginnings(seen: &[AttributedSample]) -> Vec<usize> {
    let bins = (seen.len() / FEWEST_PER_BIN).min(BINS);
    if bins < 2 * SHORTEST {
        return vec![0];
    }
    let edge = |bin: usize| bin * seen.len() / bins;
    let mixes = Mixes::new(&classes(seen), bins, edge);
    joined(&mixes, cuts(&mixes, bins)).into_iter().map(edge).collect()
}

/// What each sample waited for, as small numbers; rare classes share the last one.
fn classes(seen: &[AttributedSample]) -> Vec<usize> {
    let key = |seen: &AttributedSample| match seen.verdict {
        Attribution::Object { object, .. } => (0, object.index()),
        Attribution::Rest(rest) => (1, rest as usize),
    };
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for seen in seen {
        *counts.entry(key(seen)).or_default() += 1;
    }
    let least = SLIVER * seen.len() as f64;
    let common: Vec<_> = counts.iter().filter(|(_, count)| **count as f64 >= least).map(|(key, _)| *key).collect();
    seen.iter().map(|seen| common.binary_search(&key(seen)).unwrap_or(common.len())).collect()
}

/// Counts of every class up to every bin.
struct Mixes {
    upto: Vec<Vec<f64>>,
}

impl Mixes {
    fn new(classes: &[usize], bins: usize, edge: impl Fn(usize) -> usize) -> Self {
        let kinds = classes.iter().max().map_or(1, |most| most + 1);
        let mut upto = vec![vec![0.0; kinds]];
        for bin in 0..bins {
            let mut next = upto[bin].clone();
            for class in &classes[edge(bin)..edge(bin + 1)] {
                next[*class] += 1.0;
            }
            upto.push(next);
        }
        Self { upto }
    }

    fn counts(&self, from: usize, to: usize) -> impl Iterator<Item = f64> {
        self.upto[to].iter().zip(&self.upto[from]).map(|(to, from)| to - from)
    }

    /// Negative logarithm of the likelihood of the stretch under its own mix, plus the penalty of one
    /// more mix: half a logarithm of all samples for each of its free parameters and the cut.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let total: f64 = self.counts(from, to).sum();
        let surprise: f64 =
            self.counts(from, to).filter(|count| *count > 0.0).map(|count| -count * (count / total).ln()).sum();
        let all: f64 = self.counts(0, self.upto.len() - 1).sum();
        surprise + 0.5 * self.upto[0].len() as f64 * all.ln()
    }

    /// Total variation distance of two stretches, 0 to 1.
    fn distance(&self, from: usize, cut: usize, to: usize) -> f64 {
        let (left, right): (f64, f64) = (self.counts(from, cut).sum(), self.counts(cut, to).sum());
        let apart = self.counts(from, cut).zip(self.counts(cut, to)).map(|(l, r)| (l / left - r / right).abs());
        0.5 * apart.sum::<f64>()
    }
}

/// First bins of the stretches that cost least.
fn cuts(mixes: &Mixes, bins: usize) -> Vec<usize> {
    let mut best = vec![(f64::INFINITY, 0); bins + 1];
    best[0].0 = 0.0;
    for to in SHORTEST..=bins {
        for from in 0..=to - SHORTEST {
            let cost = best[from].0 + mixes.cost(from, to);
            if cost < best[to].0 {
                best[to] = (cost, from);
            }
        }
    }
    let mut firsts = Vec::new();
    let mut to = bins;
    while to > 0 {
        to = best[to].1;
        firsts.push(to);
    }
    firsts.reverse();
    firsts
}

/// Joins the neighbours that differ least until all differ enough.
fn joined(mixes: &Mixes, mut firsts: Vec<usize>) -> Vec<usize> {
    let bins = mixes.upto.len() - 1;
    loop {
        let end = |at: usize, firsts: &[usize]| firsts.get(at).copied().unwrap_or(bins);
        let apart = |at: usize| mixes.distance(firsts[at - 1], firsts[at], end(at + 1, &firsts));
        let least = (1..firsts.len()).map(|at| (apart(at), at)).min_by(|a, b| a.0.total_cmp(&b.0));
        match least {
            Some((distance, at)) if distance < SAME_MIX => firsts.remove(at),
            _ => return firsts,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn firsts(classes: &[usize], bins: usize) -> Vec<usize> {
        let mixes = Mixes::new(classes, bins, |bin| bin * classes.len() / bins);
        joined(&mixes, cuts(&mixes, bins))
    }

    /// Classes with shares as given, shuffled evenly: the same mix in every stretch.
    fn mix(length: usize, period: &[usize]) -> Vec<usize> {
        (0..length).map(|at| period[at % period.len()]).collect()
    }

    #[test]
    fn a_change_is_found_where_it_is() {
        let mut classes = mix(1600, &[0, 0, 1]);
        classes.extend(mix(960, &[2, 1, 2, 2]));
        assert_eq!(firsts(&classes, 128), [0, 80]);
    }

    #[test]
    fn three_phases_of_which_two_are_alike_stay_three() {
        let classes = [mix(800, &[0, 0, 1]), mix(800, &[1]), mix(960, &[0, 0, 1])].concat();
        assert_eq!(firsts(&classes, 128), [0, 40, 80]);
    }

    #[test]
    fn an_iterative_program_is_one_phase() {
        let iteration = [mix(9, &[0]), mix(11, &[1]), mix(5, &[2])].concat();
        assert_eq!(firsts(&mix(2560, &iteration), 128), [0]);
    }

    proptest! {
        /// Every sample belongs to one phase, no phase is shorter than allowed, and chance is no phase.
        #[test]
        fn noise_has_few_phases(seed in any::<u64>(), kinds in 1_usize..6) {
            let mut state = seed | 1;
            let mut number = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 33) as usize
            };
            let classes: Vec<usize> = (0..2560).map(|_| number() % kinds).collect();
            prop_assert_eq!(firsts(&classes, 128), [0]);
        }
    }
}
