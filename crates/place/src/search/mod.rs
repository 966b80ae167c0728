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

mod descent;
mod lattice;
mod moves;
mod pairs;
mod ranking;
mod rows;
mod start;

pub(crate) use lattice::Lattice;
pub(crate) use rows::Rows;
pub(crate) use start::{Coarse, closed_form};

use crate::context::Context;
use descent::{GAIN, improved};

/// The best placement that is found from the `refined` fastest of some starts.
pub(crate) fn best<'c>(context: &'c Context<'c>, starts: Vec<Rows>, refined: usize) -> Option<Lattice<'c>> {
    let time_s = |rows: &Rows| context.predictor.time_s(&context.predictor.demand(rows.iter()));
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
