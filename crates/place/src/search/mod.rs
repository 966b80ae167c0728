//! Local search over placements that a kernel can make.
//!
//! The time is not convex in the placement: what waits (criticality) and what loads a memory
//! (bytes) differ from object to object, so giving the unloaded memory to the latency-critical
//! object and the loaded one to the stream is one valley, the other way round another. The search
//! therefore starts from several placements ([`start`]) and walks downhill from the best of them,
//! in moves of shrinking size: part of one object to another memory, with others making room where
//! it is full, and two objects against each other. Candidates are ordered by the prices of work
//! ([`tierloom_predict::Prices`]); the first that really is faster is taken. With a handful of
//! objects, changes of two whole rows at once follow ([`pairs`]). Everything happens in a fixed
//! order, so the result is the same every time.

mod lattice;
mod moves;
mod pairs;
mod start;

pub(crate) use lattice::Lattice;
pub(crate) use start::{Coarse, closed_form};

use crate::context::Context;
use moves::Neighbourhood;

/// Fractions by object and memory.
pub(crate) type Rows = Vec<Vec<f64>>;

/// Relative gain below which a placement does not count as faster: a thousandth of a percent.
const GAIN: f64 = 1e-5;
/// Up to this many objects the search looks at every candidate and every step size.
const FEW_OBJECTS: usize = 8;
/// Pages of a 32-page round that are moved at once, from large to small.
const STEPS: [u32; 6] = [32, 16, 8, 4, 2, 1];
/// The same for many objects, where the shares of single ones matter less.
const STEPS_OF_MANY: [u32; 3] = [32, 8, 2];
/// Sweeps over the candidates at one step size.
const MOST_SWEEPS: usize = 8;
/// Times that the step sizes are gone through while that still helps.
const MOST_ROUNDS: usize = 4;
/// Candidates in a row that do not help before a sweep over many objects ends.
const MOST_MISSES: usize = 24;

/// The best placement that is found from the `refined` fastest of some starts.
pub(crate) fn best<'c>(context: &'c Context<'c>, starts: Vec<Rows>, refined: usize) -> Option<Lattice<'c>> {
    let time_s = |rows: &Rows| context.predictor.time_s(&context.predictor.demand(rows));
    let mut timed: Vec<(f64, Rows)> = starts.into_iter().map(|rows| (time_s(&rows), rows)).collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    timed.dedup_by(|later, earlier| later.0 <= earlier.0 * (1.0 + GAIN));
    let refined = timed.into_iter().filter_map(|(_, rows)| Lattice::near(context, &rows)).take(refined).map(improved);
    refined.reduce(|best, other| if other.time_s() < best.time_s() { other } else { best })
}

/// The same, and on from there in changes of two objects at once; for one search, not for many.
pub(crate) fn best_at_length<'c>(context: &'c Context<'c>, starts: Vec<Rows>, refined: usize) -> Option<Lattice<'c>> {
    best(context, starts, refined).map(pairs::paired)
}

/// Walks downhill until no move helps.
fn improved(mut lattice: Lattice<'_>) -> Lattice<'_> {
    let few = lattice.context.profile.objects.len() <= FEW_OBJECTS;
    let steps: &[u32] = if few { &STEPS } else { &STEPS_OF_MANY };
    for _ in 0..MOST_ROUNDS {
        let before_s = lattice.time_s();
        for step in steps {
            let mut sweeps = 0..MOST_SWEEPS;
            while sweeps.next().is_some() && sweep(&mut lattice, *step, few) {}
        }
        if lattice.time_s() >= before_s * (1.0 - GAIN) {
            break;
        }
    }
    lattice
}

/// Tries the candidates of one step size once; says whether any helped.
fn sweep(lattice: &mut Lattice<'_>, step: u32, few: bool) -> bool {
    let neighbourhood = Neighbourhood::of(lattice, step, few);
    let (mut helped, mut misses) = (false, 0);
    for candidate in neighbourhood.candidates(lattice) {
        let Some(moves) = neighbourhood.moves(lattice, &candidate) else { continue };
        if lattice.time_with_s(&moves) < lattice.time_s() * (1.0 - GAIN) {
            lattice.apply(&moves);
            (helped, misses) = (true, 0);
        } else {
            misses += 1;
        }
        if misses > MOST_MISSES && !few {
            break;
        }
    }
    helped
}
