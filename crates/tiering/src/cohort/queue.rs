//! One list of kswapd's, by runs of like pages.

use std::collections::VecDeque;

use super::scale::STEP_S;
use crate::kernel::reclaim::Run;

/// One list of one node, the oldest run first. Runs have numbers, in the order in which they came.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    runs: VecDeque<Run>,
    /// Number of the oldest run.
    oldest: u64,
    /// By cohort: the number of its youngest run, and when that came, s.
    youngest: Vec<(u64, f64)>,
}

impl Queue {
    pub(super) fn new(cohorts: usize) -> Self {
        Self { runs: VecDeque::new(), oldest: 0, youngest: vec![(0, f64::NEG_INFINITY); cohorts] }
    }

    /// Puts a run at the head; `since_s` is when, s.
    pub(super) fn append(&mut self, run: Run, since_s: f64) {
        self.youngest[run.id as usize] = (self.oldest + self.runs.len() as u64, since_s);
        self.runs.push_back(run);
    }

    /// Puts a run at the head, or to its cohort's youngest where that is like it and came within a step: a
    /// step's order is not known any closer, and many small runs would take long to go through. `near` is a step's
    /// progress.
    pub(super) fn put(&mut self, run: Run, now_s: f64, near: f64) {
        let (number, since_s) = self.youngest[run.id as usize];
        let place = number.checked_sub(self.oldest).filter(|_| now_s - since_s < STEP_S);
        match place.and_then(|place| self.runs.get_mut(usize::try_from(place).ok()?)) {
            Some(youngest) if is_like(youngest, &run, near) => {
                youngest.swept = youngest.swept.joined(youngest.pages, &run.swept, run.pages);
                youngest.pages += run.pages;
            }
            _ => self.append(run, now_s),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Run> {
        let run = self.runs.pop_front()?;
        self.oldest += 1;
        Some(run)
    }

    /// Puts back what is left of the run that was the oldest.
    pub(super) fn restore(&mut self, run: Run) {
        self.runs.push_front(run);
        self.oldest -= 1;
    }
}

/// Whether runs are of one cohort and one state.
fn is_like(one: &Run, other: &Run, near: f64) -> bool {
    let never = one.cleared.is_infinite() && other.cleared.is_infinite();
    let close = never || (one.cleared - other.cleared).abs() < near;
    one.id == other.id && one.referenced == other.referenced && close && one.swept.is_like(&other.swept, near)
}
