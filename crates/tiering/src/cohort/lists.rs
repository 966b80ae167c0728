//! The lists of kswapd, by runs of like pages. Pages that leave a node otherwise are crossed off when
//! their run is met.

use std::collections::VecDeque;

use super::protections::Protection;
use super::{Cohort, DUST, STEP_S};
use crate::reclaim::{List, Lists, Run};

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
    fn put(&mut self, run: Run, now_s: f64, near: f64) {
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

    fn pop(&mut self) -> Option<Run> {
        let run = self.runs.pop_front()?;
        self.oldest += 1;
        Some(run)
    }

    /// Puts back what is left of the run that was the oldest.
    fn restore(&mut self, run: Run) {
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

impl Lists for Cohort<'_> {
    fn length(&self, node: usize, list: List) -> f64 {
        self.lengths[node][usize::from(list == List::Active)]
    }

    fn take(&mut self, node: usize, list: List, most: f64) -> Option<Run> {
        let slot = usize::from(list == List::Active);
        loop {
            let mut run = self.lists[node][slot].pop()?;
            let at = self.at(run.id as usize, node);
            let gone = self.cells[at].gone.min(run.pages);
            self.cells[at].gone -= gone;
            run.pages -= gone;
            if run.pages <= DUST {
                continue;
            }
            if run.pages > most {
                self.lists[node][slot].restore(Run { pages: run.pages - most, ..run });
                run.pages = most;
            }
            self.lengths[node][slot] = (self.lengths[node][slot] - run.pages).max(0.0);
            return Some(run);
        }
    }

    fn put(&mut self, node: usize, list: List, run: Run) {
        let slot = usize::from(list == List::Active);
        self.lengths[node][slot] += run.pages;
        self.lists[node][slot].put(run, self.now_s, STEP_S * self.speed);
    }

    fn part(&mut self, run: Run) -> [Run; 2] {
        let before = run.cleared;
        let run = self.clear(run);
        if before.is_infinite() {
            return [run, Run { pages: 0.0, ..run }];
        }
        let (share, [visited, others]) = self.parted(run.id as usize, run.swept, before, self.progress);
        let used = run.pages * share;
        [Run { pages: used, swept: visited, ..run }, Run { pages: run.pages - used, swept: others, ..run }]
    }

    fn clear(&mut self, run: Run) -> Run {
        Run { cleared: self.progress, ..run }
    }

    fn locked(&self, run: &Run) -> bool {
        self.layout.regions[self.cohorts.places[run.id as usize].region].locked
    }

    fn demote(&mut self, node: usize, run: Run, now_s: f64) -> f64 {
        let cohort = run.id as usize;
        let at = self.at(cohort, node);
        let room = |to: usize| (self.free[to] - self.nodes.list[to].marks.low).max(0.0);
        let target = self.nodes.list[node].demotion.filter(|to| room(*to) > 0.0);
        let pages = target.map_or(0.0, |to| run.pages.min(room(to)).min(self.cells[at].pages));
        if pages < run.pages {
            self.put(node, List::Inactive, Run { pages: run.pages - pages, cleared: self.progress, ..run });
        }
        let Some(to) = target.filter(|_| pages > 0.0) else { return 0.0 };
        // The run is off its list already.
        self.leave(at, pages, 0.0);
        let below = self.at(cohort, to);
        self.cells[below].pages += pages;
        self.cells[below].demoted += pages;
        self.free[node] += pages;
        self.free[to] -= pages;
        self.sums[node] += self.rates[cohort].work * -pages;
        self.sums[to] += self.rates[cohort].work * pages;
        let region = self.cohorts.places[cohort].region;
        if self.scan.is_some_and(|scan| scan.protect_demoted) && self.layout.regions[region].policy.migrates_on_fault()
        {
            self.protect_pages(cohort, to, Protection { since_s: now_s, from: self.progress, swept: run.swept, pages });
        }
        let shadowed = self.policy.shadowed(&self.ledger.counters);
        self.ledger.demoted(pages, node, to, shadowed);
        pages
    }

    fn free(&self, node: usize) -> f64 {
        self.visible(node)
    }
}
