//! Two objects at once, over all the ways to share them out.
//!
//! A walk in single moves and exchanges can end where several memories and links are full together
//! and only a change of two objects' whole rows leads on. With a handful of objects all such
//! changes can be looked at.

use super::descent::{GAIN, improved};
use super::lattice::Lattice;
use super::rows::Rows;
use super::start::splits;

/// Up to this many objects all pairs are looked at.
const MOST_OBJECTS: usize = 8;
/// Pieces that both objects are cut into, from fine to coarse.
const PIECES: [u32; 3] = [8, 4, 2];
/// Ways to share out two objects that are looked at.
const MOST_WAYS: usize = 2500;
/// Times that all pairs are gone through while that still helps.
const MOST_ROUNDS: usize = 3;

/// Walks on from the best change of any two objects, until none helps.
pub(super) fn paired(mut lattice: Lattice<'_>) -> Lattice<'_> {
    let context = lattice.context;
    let objects = context.profile.objects.len();
    let choices = PIECES.map(|pieces| splits(pieces, &context.nodes, context.capacity.len()));
    let choices = choices.into_iter().find(|choices| choices.len().pow(2) <= MOST_WAYS);
    let Some(choices) = choices.filter(|_| objects <= MOST_OBJECTS) else { return lattice };
    for _ in 0..MOST_ROUNDS {
        let before_s = lattice.time_s();
        for one in 0..objects {
            for other in one + 1..objects {
                let better = best_rows(&lattice, &choices, one, other);
                let walked = better.and_then(|rows| Lattice::near(context, &rows)).map(improved);
                if let Some(found) = walked.filter(|found| found.time_s() < lattice.time_s()) {
                    lattice = found;
                }
            }
        }
        if lattice.time_s() >= before_s * (1.0 - GAIN) {
            break;
        }
    }
    lattice
}

/// The fastest way to share out two objects, others as they are; `None` where none is faster.
fn best_rows(lattice: &Lattice<'_>, choices: &[Vec<f64>], one: usize, other: usize) -> Option<Rows> {
    let context = lattice.context;
    let mut rows = lattice.rows();
    let taken = |rows: &Rows, node: usize| {
        rows.row(one)[node] * context.size(one) + rows.row(other)[node] * context.size(other)
    };
    let room: Vec<f64> =
        (0..context.capacity.len()).map(|node| lattice.free_bytes(node) + taken(&rows, node)).collect();
    let (mut least_s, mut best) = (lattice.time_s() * (1.0 - GAIN), None);
    for first in choices {
        rows.row_mut(one).copy_from_slice(first);
        for second in choices {
            rows.row_mut(other).copy_from_slice(second);
            if room.iter().enumerate().any(|(node, bytes)| taken(&rows, node) > *bytes) {
                continue;
            }
            let time_s = context.predictor.time_s(&context.predictor.demand(rows.iter()));
            if time_s < least_s {
                (least_s, best) = (time_s, Some(rows.clone()));
            }
        }
    }
    best
}
