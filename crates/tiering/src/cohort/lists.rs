//! The lists of kswapd, by runs of like pages. Pages that leave a node otherwise are crossed off when
//! their run is met.

use super::protections::Protection;
use super::scale::DUST;
use super::state::Cohort;
use crate::kernel::reclaim::{List, Lists, Run};
use crate::workload::sweep::Parted;

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
        self.enlist(node, list, run);
    }

    fn part(&mut self, run: Run) -> [Run; 2] {
        let before = run.cleared;
        let run = self.clear(run);
        if before.is_infinite() {
            return [run, Run { pages: 0.0, ..run }];
        }
        let Parted { share, visited, others } = self.parted(run.id as usize, run.swept, before, self.progress);
        let used = run.pages * share;
        [Run { pages: used, swept: visited, ..run }, Run { pages: run.pages - used, swept: others, ..run }]
    }

    fn clear(&mut self, run: Run) -> Run {
        Run { cleared: self.progress, ..run }
    }

    fn locked(&self, run: &Run) -> bool {
        self.host.layout.regions[self.cohorts.places[run.id as usize].region].locked
    }

    fn demote(&mut self, node: usize, run: Run, now_s: f64) -> f64 {
        let cohort = run.id as usize;
        let at = self.at(cohort, node);
        let room = |to: usize| (self.host.free[to] - self.host.nodes.list[to].marks.low).max(0.0);
        let target = self.host.nodes.list[node].demotion.filter(|to| room(*to) > 0.0);
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
        self.host.free[node] += pages;
        self.host.free[to] -= pages;
        self.sums[node] += self.rates[cohort].work * -pages;
        self.sums[to] += self.rates[cohort].work * pages;
        let region = self.cohorts.places[cohort].region;
        if self.host.protects_demoted(region) {
            self.protect_pages(cohort, to, Protection { since_s: now_s, from: self.progress, swept: run.swept, pages });
        }
        let shadowed = self.host.policy.shadowed(&self.host.ledger.counters);
        self.host.ledger.demoted(pages, node, to, shadowed);
        pages
    }

    fn free(&self, node: usize) -> f64 {
        self.host.visible(node)
    }
}
