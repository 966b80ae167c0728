//! The cohort evaluator: expected states in closed form, for terabytes and hours.
//!
//! A cohort's pages are visited at one rate, so of `n` pages protected at one time, `n·(1-e^{-λt})` have
//! faulted after `t` (visits at random), or those that a sweep has come by since (`visits.rs`). The same kernel
//! code as the exact evaluator's scans, reclaims and decides; only the state is a count instead of a bit. Steps
//! are as long as the least time between two scans, or as the points of the series are apart where nothing moves.

mod cohorts;
mod drive;
mod faults;
mod lists;
mod page_state;
mod protections;
mod queue;
mod scale;
mod state;
mod step;
mod visits;

pub(crate) use cohorts::{Cohorts, Rate};
pub(crate) use drive::run;
pub(crate) use state::{Cohort, chunk_pages};
