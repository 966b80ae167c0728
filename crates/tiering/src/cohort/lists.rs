//! The lists of kswapd, by runs of like pages. Pages that leave a node otherwise are crossed off when
//! their run is met.

use super::{Cohort, DUST, STEP_S};
use crate::reclaim::{List, Lists, Run};

impl Lists for Cohort<'_> {
    fn length(&self, node: usize, list: List) -> f64 {
        self.lengths[node][usize::from(list == List::Active)]
    }

    fn take(&mut self, node: usize, list: List, most: f64) -> Option<Run> {
        let slot = usize::from(list == List::Active);
        loop {
            let mut run = self.lists[node][slot].pop_front()?;
            let at = self.at(run.id as usize, node);
            let gone = self.cells[at].gone.min(run.pages);
            self.cells[at].gone -= gone;
            run.pages -= gone;
            if run.pages <= DUST {
                continue;
            }
            if run.pages > most {
                self.lists[node][slot].push_front(Run { pages: run.pages - most, ..run });
                run.pages = most;
            }
            self.lengths[node][slot] = (self.lengths[node][slot] - run.pages).max(0.0);
            return Some(run);
        }
    }

    fn put(&mut self, node: usize, list: List, run: Run) {
        let slot = usize::from(list == List::Active);
        self.lengths[node][slot] += run.pages;
        let near = |last: &Run| {
            let never = last.cleared_s.is_infinite() && run.cleared_s.is_infinite();
            let close = never || (last.cleared_s - run.cleared_s).abs() < STEP_S;
            last.id == run.id && last.referenced == run.referenced && close
        };
        match self.lists[node][slot].back_mut() {
            Some(last) if near(last) => last.pages += run.pages,
            _ => self.lists[node][slot].push_back(run),
        }
    }

    fn used(&mut self, run: &Run, now_s: f64) -> f64 {
        if run.cleared_s.is_infinite() {
            return run.pages;
        }
        run.pages * self.visited(run.id as usize, 0.0, (now_s - run.cleared_s).max(0.0))
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
            self.put(node, List::Inactive, Run { pages: run.pages - pages, ..run });
        }
        let Some(to) = target.filter(|_| pages > 0.0) else { return 0.0 };
        // The run is off its list already.
        self.leave(at, pages);
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
            let share = pages / self.cells[below].pages;
            self.protect_cell(cohort, to, share, now_s);
        }
        let shadowed = self.policy.shadowed(&self.ledger.counters);
        self.ledger.demoted(pages, node, to, shadowed);
        pages
    }

    fn free(&self, node: usize) -> f64 {
        self.visible(node)
    }
}
