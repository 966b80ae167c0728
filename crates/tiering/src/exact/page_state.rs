//! What the kernel and the policy do with pages, one by one.

use super::pages::{GROUP, PROTECTED, node_of};
use super::state::Exact;
use crate::engine::host::Host;
use crate::engine::layout::Placed;
use crate::engine::page_state::PageState;
use crate::error::Result;
use crate::policy::{Group, Move};

impl<'a> PageState<'a> for Exact<'a> {
    fn host(&mut self) -> &mut Host<'a> {
        &mut self.host
    }

    fn touch_part(&mut self, region: usize, from: u64, to: u64) -> Result<()> {
        let Placed { start, pages, .. } = self.host.layout.regions[region];
        for index in from..to {
            self.touch(region, start + index).ok_or_else(|| self.host.full(region, (pages - index) as f64))?;
        }
        Ok(())
    }

    fn protect(&mut self, region: usize, from: u64, to: u64) -> f64 {
        let Some(rule) = self.host.scan else { return 0.0 };
        let start = self.host.layout.regions[region].start;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ms of a run, pages in range")]
        let (now_ms, first, last) = ((self.host.now_s * 1e3) as u32, (start + from) as usize, (start + to) as usize);
        let mut eligible = [false; 8];
        for (node, flag) in eligible.iter_mut().enumerate().take(self.host.nodes.len()) {
            *flag = self.host.may_protect(&rule, node);
        }
        let mut updated = 0.0;
        for page in first..last {
            let flags = self.pages.flags[page];
            if flags & PROTECTED == 0 && eligible[node_of(flags)] {
                self.pages.flags[page] = flags | PROTECTED;
                self.pages.stamp[page] = now_ms;
                updated += 1.0;
            }
        }
        updated
    }

    fn groups(&mut self, since_s: f64) -> Vec<Group> {
        let groups = (0..self.touched.len()).map(|group| self.group(group, since_s)).collect();
        self.touched.iter_mut().for_each(|count| *count = 0);
        groups
    }

    fn migrate(&mut self, Move { group, from, to, pages }: Move) {
        let first = group * GROUP;
        let mut left = pages.round();
        for page in first..(first + GROUP).min(self.pages.flags.len()) {
            if left < 1.0 || self.host.free[to] < 1.0 {
                break;
            }
            if self.pages.node(page) == from {
                self.relocate(page, from, to);
                self.host.ledger.moved(1.0, from, to, self.host.policy);
                left -= 1.0;
            }
        }
    }
}

impl Exact<'_> {
    fn group(&self, group: usize, since_s: f64) -> Group {
        let first = group * GROUP;
        let last = (first + GROUP).min(self.pages.flags.len());
        let mut pages = vec![0.0; self.host.nodes.len()];
        for flags in &self.pages.flags[first..last] {
            if let Some(count) = pages.get_mut(node_of(*flags)) {
                *count += 1.0;
            }
        }
        let all = pages.iter().sum::<f64>().max(1.0);
        let rate = f64::from(self.touched[group]) / all / since_s;
        Group { region: self.region_of(first as u64), pages, reads: rate, writes: 0.0, visits: rate }
    }
}
