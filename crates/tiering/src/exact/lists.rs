//! The lists of kswapd, page by page.

use super::pages::{self, DEMOTED, IDLE, PROTECTED};
use super::state::Exact;
use crate::kernel::reclaim::{List, Lists, Run};

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
        self.host.layout.regions[self.region_of(u64::from(run.id))].locked
    }

    fn demote(&mut self, node: usize, run: Run, now_s: f64) -> f64 {
        let page = run.id as usize;
        let target =
            self.host.nodes.list[node].demotion.filter(|to| self.host.free[*to] > self.host.nodes.list[*to].marks.low);
        let Some(to) = target else {
            self.pages.link(run.id, node, List::Inactive);
            return 0.0;
        };
        self.relocate(page, node, to);
        self.pages.flags[page] |= DEMOTED;
        let region = self.region_of(page as u64);
        if self.host.protects_demoted(region) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ms of a run")]
            let now_ms = (now_s * 1e3) as u32;
            self.pages.flags[page] |= PROTECTED;
            self.pages.stamp[page] = now_ms;
        }
        let shadowed = self.host.policy.shadowed(&self.host.ledger.counters);
        self.host.ledger.demoted(1.0, node, to, shadowed);
        1.0
    }

    fn free(&self, node: usize) -> f64 {
        self.host.visible(node)
    }
}
