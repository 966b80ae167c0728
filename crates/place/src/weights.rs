//! Integer weights: the fractions that a kernel can really make.
//!
//! A weighted interleave deals pages out in rounds of `Σw`. Placements keep `Σw ≤ 32`: rounds stay
//! short against any object worth placing, and a fraction is met to 1/64 or better, which is less
//! than what a prediction can tell apart. The kernel's own automatic weights use 32 as well
//! (`mm/mempolicy.c`, `weightiness`, Linux 6.16).

use tierloom_model::{Action, Machine, MemoryKind};

/// Most pages in a round of a weighted interleave.
pub(crate) const MAX_ROUND: u32 = 32;

/// Weights with a round of at most [`MAX_ROUND`] that come closest to a row of fractions.
///
/// Closest means the least largest difference; of equally close ones the shortest round.
pub(crate) fn nearest(row: &[f64]) -> Vec<u32> {
    let mut best = (f64::INFINITY, Vec::new());
    for round in 1..=MAX_ROUND {
        let weights = apportion(row, round);
        let error = distance(row, &weights, round);
        if error < best.0 - 1e-12 {
            best = (error, weights);
        }
        if best.0 < 1e-12 {
            break;
        }
    }
    best.1
}

/// Deals `round` pages out in proportion to a row, largest remainder first.
fn apportion(row: &[f64], round: u32) -> Vec<u32> {
    let exact: Vec<f64> = row.iter().map(|fraction| fraction * f64::from(round)).collect();
    let mut weights: Vec<u32> = exact.iter().map(|pages| whole(*pages)).collect();
    let mut order: Vec<usize> = (0..row.len()).collect();
    let remainder = |node: usize| exact[node] - exact[node].floor();
    order.sort_by(|a, b| remainder(*b).total_cmp(&remainder(*a)));
    let missing = round.saturating_sub(weights.iter().sum());
    for node in order.into_iter().cycle().take(missing as usize) {
        weights[node] += 1;
    }
    weights
}

fn whole(pages: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 32")]
    let whole = pages.floor() as u32;
    whole
}

fn distance(row: &[f64], weights: &[u32], round: u32) -> f64 {
    let share = |weight: &u32| f64::from(*weight) / f64::from(round);
    row.iter().zip(weights).map(|(fraction, weight)| (fraction - share(weight)).abs()).fold(0.0, f64::max)
}

/// The same proportions in the smallest whole numbers.
pub(crate) fn reduce(weights: &[u32]) -> Vec<u32> {
    let divisor = weights.iter().fold(0, |a, b| gcd(a, *b)).max(1);
    weights.iter().map(|weight| weight / divisor).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What to ask of the kernel for weights by memory.
///
/// Whole objects: on DRAM of any sort and HBM *prefer*, because when somebody else took the room, a spill costs
/// time and a bind costs the program; on slower memory *bind*, because a spill would silently take
/// the fast memory that the placement keeps for other objects.
pub(crate) fn action(machine: &Machine, weights: &[u32]) -> Action {
    let reduced = reduce(weights);
    let used: Vec<usize> = (0..reduced.len()).filter(|node| reduced[*node] > 0).collect();
    let name = |node: &usize| machine.memories[*node].name.clone();
    match used.as_slice() {
        [] => Action::FirstTouch,
        [only] if is_dram_like(machine.memories[*only].kind) => Action::Prefer(name(only)),
        [only] => Action::Bind(vec![name(only)]),
        several if several.iter().all(|node| reduced[*node] == 1) => {
            Action::Interleave(several.iter().map(name).collect())
        }
        several => Action::Weighted(several.iter().map(|node| (name(node), reduced[*node])).collect()),
    }
}

fn is_dram_like(kind: MemoryKind) -> bool {
    matches!(kind, MemoryKind::Dram | MemoryKind::Lpddr | MemoryKind::Hbm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn simple_fractions_are_met_with_the_shortest_round() {
        assert_eq!(nearest(&[1.0, 0.0]), [1, 0]);
        assert_eq!(nearest(&[0.5, 0.5]), [1, 1]);
        assert_eq!(nearest(&[1.0 / 3.0; 3]), [1, 1, 1]);
        assert_eq!(nearest(&[0.75, 0.25]), [3, 1]);
        assert_eq!(nearest(&[0.8, 0.2]), [4, 1]);
    }

    proptest! {
        #[test]
        fn weights_are_close_and_rounds_are_short(raw in prop::collection::vec(0.0f64..1.0, 1..5)) {
            let sum: f64 = raw.iter().sum();
            prop_assume!(sum > 1e-6);
            let row: Vec<f64> = raw.iter().map(|part| part / sum).collect();
            let weights = nearest(&row);
            let round: u32 = weights.iter().sum();
            prop_assert!((1..=MAX_ROUND).contains(&round));
            prop_assert!(distance(&row, &weights, round) <= 1.0 / f64::from(MAX_ROUND));
        }
    }
}
