//! Which way branches went ahead of halted threads: counted, whatever they ask for.

use std::collections::BTreeMap;

use crate::attribution::lookaheads::SeenAhead;
use crate::frequency::branches::{BranchTable, Jumps};
use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::FunctionId;

/// Fewer executions than this tell nothing.
const FEWEST: f64 = 10.0;
/// How far a share of either way is off at least, as a part of it: threads are halted at moments of time, and what is slow is
/// met more often. Assumed.
const UNEVEN: f64 = 0.03;
/// Of a single moment nothing says how far others lie from it: so many times what chance alone would do. Assumed.
const ALONE: f64 = 3.0;

/// All branches that were met.
pub(crate) fn seen_ahead(ahead: &[SeenAhead]) -> BranchTable {
    let mut found: BTreeMap<(FunctionId, BlockId), Vec<(f64, f64)>> = BTreeMap::new();
    for branch in ahead.iter().flat_map(|seen| &seen.branches) {
        found.entry(branch.at).or_default().push((branch.taken, branch.taken + branch.passed));
    }
    found.into_iter().filter_map(|(at, moments)| Some((at, jumps(&moments)?))).collect()
}

/// Of moments, each with how often it was taken and met: one tells of itself alone, however often it met it (ratio estimator;
/// Cochran, *Sampling Techniques*, 2.11).
fn jumps(moments: &[(f64, f64)]) -> Option<Jumps> {
    let (taken, count) = moments.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    if count < FEWEST {
        return None;
    }
    let by_chance = Jumps::of(taken, count);
    let share = by_chance.share;
    let number = moments.len() as f64;
    let squares: f64 = moments.iter().map(|(taken, count)| (taken - share * count).powi(2)).sum();
    let between =
        if number > 1.0 { (number / (number - 1.0) * squares).sqrt() / count } else { ALONE * by_chance.deviation };
    let uneven = UNEVEN * share.min(1.0 - share);
    Some(Jumps { share, deviation: by_chance.deviation.max(between).hypot(uneven) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_that_differ_leave_more_in_doubt_than_one_long_one_by_chance() {
        let alike = jumps(&[(10.0, 100.0); 20]).unwrap();
        let apart = jumps(&[[(0.0, 100.0); 10], [(20.0, 100.0); 10]].concat()).unwrap();
        assert!((alike.share - 0.1).abs() < 1e-3 && (apart.share - 0.1).abs() < 1e-3);
        assert!(apart.deviation > 2.0 * alike.deviation, "{alike:?} {apart:?}");
        assert!(alike.deviation < 0.01, "{alike:?}");
        assert_eq!(jumps(&[(1.0, 2.0)]), None);
    }
}
