//! The lists of kswapd, page by page.

use super::Exact;
use super::pages::{self, DEMOTED, IDLE, PROTECTED};
use crate::reclaim::{List, Lists, Run};

impl Lists for Exact<'_> {
    fn length(&self, node: usize, list: List) -> f64 {
        self.pages.length(node, list)
    }

    fn take(&mut self, node: usize, list: List, _most: f64) -> Option<Run> {
        self.pages.take(node, list)
    }

    fn put(&mut self, node: usize, list: List, run: Run) {
        let page = run.id as usize;
        self.pages.flags[page] &= !pages::REFERENCED;
        self.pages.flags[page] |= if run.referenced { pages::REFERENCED } else { 0 };
        self.pages.link(run.id, node, list);
    }

    fn part(&mut self, run: Run) -> [Run; 2] {
        let none = Run { pages: 0.0, ..run };
        let is_idle = self.pages.flags[run.id as usize] & IDLE != 0;
        let run = self.clear(run);
        if is_idle { [none, run] } else { [run, none] }
    }

    fn clear(&mut self, run: Run) -> Run {
        self.pages.flags[run.id as usize] |= IDLE;
        run
    }

    fn locked(&self, run: &Run) -> bool {
        self.layout.regions[self.region_of(u64::from(run.id))].locked
    }

    fn demote(&mut self, node: usize, run: Run, now_s: f64) -> f64 {
        let page = run.id as usize;
        let target = self.nodes.list[node].demotion.filter(|to| self.free[*to] > self.nodes.list[*to].marks.low);
        let Some(to) = target else {
            self.pages.link(run.id, node, List::Inactive);
            return 0.0;
        };
        self.relocate(page, node, to);
        self.pages.flags[page] |= DEMOTED;
        let region = self.region_of(page as u64);
        if self.scan.is_some_and(|scan| scan.protect_demoted) && self.layout.regions[region].policy.migrates_on_fault()
        {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ms of a run")]
            let now_ms = (now_s * 1e3) as u32;
            self.pages.flags[page] |= PROTECTED;
            self.pages.stamp[page] = now_ms;
        }
        let shadowed = self.policy.shadowed(&self.ledger.counters);
        self.ledger.demoted(1.0, node, to, shadowed);
        1.0
    }

    fn free(&self, node: usize) -> f64 {
        self.visible(node)
    }
}
