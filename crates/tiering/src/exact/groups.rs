//! What policies that sample see: misses by group of pages, and the moves that they order.

use super::Exact;
use super::pages::node_of;
use crate::policy::{Group, View};

/// Pages per group: 2 MiB.
pub(super) const GROUP: usize = 512;

impl Exact<'_> {
    /// Shows the policy what was sampled and does what it says.
    pub(super) fn look(&mut self) {
        let since_s = self.now_s - self.last_look_s;
        self.last_look_s = self.now_s;
        let groups: Vec<Group> = (0..self.touched.len()).map(|group| self.group(group, since_s)).collect();
        self.touched.iter_mut().for_each(|count| *count = 0);
        let view = View {
            now_s: self.now_s,
            since_s,
            groups: &groups,
            nodes: self.nodes,
            free: &self.free,
            latency_ns: &self.settled.latency_ns,
        };
        for step in self.policy.look(&view) {
            self.move_group(step.group, step.from, step.to, step.pages);
        }
    }

    fn group(&self, group: usize, since_s: f64) -> Group {
        let first = group * GROUP;
        let last = (first + GROUP).min(self.pages.flags.len());
        let mut pages = vec![0.0; self.nodes.len()];
        for flags in &self.pages.flags[first..last] {
            if let Some(count) = pages.get_mut(node_of(*flags)) {
                *count += 1.0;
            }
        }
        let all = pages.iter().sum::<f64>().max(1.0);
        let rate = f64::from(self.touched[group]) / all / since_s;
        Group { region: self.region_of(first as u64), pages, reads: rate, writes: 0.0, visits: rate }
    }

    fn move_group(&mut self, group: usize, from: usize, to: usize, pages: f64) {
        let first = group * GROUP;
        let mut left = pages.round();
        for page in first..(first + GROUP).min(self.pages.flags.len()) {
            if left < 1.0 || self.free[to] < 1.0 {
                break;
            }
            if self.pages.node(page) == from {
                self.relocate(page, from, to);
                self.ledger.moved(1.0, from, to, self.policy);
                left -= 1.0;
            }
        }
    }
}
