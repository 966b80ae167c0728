//! The state of the pages, behind one trait, and what the kernel and the policy do with it.

use super::filling::{Step, Taken};
use super::host::Host;
use crate::error::Result;
use crate::kernel::reclaim::{Kswapd, Lists};
use crate::policy::{Group, Move, View};

/// What an evaluator keeps of the pages: a bit each, or expected counts of like ones.
///
/// # Contract
/// - Nothing but the evaluator changes its pages; the kernel's threads and the policy ask it to, here and through
///   [`Lists`].
/// - Pages that come and go are taken from and given back to [`Host::free`].
pub(crate) trait PageState<'a>: Lists + Sized {
    fn host(&mut self) -> &mut Host<'a>;

    /// First touch of some pages of a region, in order.
    fn touch_part(&mut self, region: usize, from: u64, to: u64) -> Result<()>;

    /// `change_prot_numa`; returns the pages that were not protected and are now.
    fn protect(&mut self, region: usize, from: u64, to: u64) -> f64;

    /// What a policy sees that samples, over so many seconds.
    fn groups(&mut self, since_s: f64) -> Vec<Group>;

    /// Moves pages for a policy that does not ask the kernel.
    fn migrate(&mut self, step: Move);

    /// Touches every page of every region once, as memory fills.
    fn touch_all(&mut self) -> Result<()> {
        let mut taken = Taken::default();
        for step in self.host().layout.filling.clone() {
            match step {
                Step::Touch(region, from, to) => self.touch_part(region, from, to)?,
                Step::Take(name, policy, pages) => {
                    let host = self.host();
                    taken.take((&name, &policy, pages), host.nodes, &mut host.free, &mut host.ledger.counters)?;
                }
                Step::Free(name) => taken.free(&name, &mut self.host().free),
            }
        }
        Ok(())
    }

    /// The scanner's turn, if it is due.
    fn scan(&mut self) {
        let Some(mut scanner) = self.host().scanner.take() else { return };
        let now_s = self.host().now_s;
        if let Some(thread) = scanner.due(now_s) {
            let walked = scanner.walk(now_s, |region, from, to| self.protect(region, from, to));
            let cost_s = self.host().ledger.scan(walked);
            scanner.scanned(thread, cost_s);
        }
        self.host().scanner = Some(scanner);
    }

    /// Gives one node's kswapd so much time, at a time.
    fn reclaim(&mut self, node: usize, seconds: f64, now_s: f64) {
        let host = self.host();
        if !host.keeps_list(node) {
            return;
        }
        let goal = host.rule.goal(&host.nodes.list[node]);
        if host.rule.proactive && host.visible(node) < goal.target {
            host.kswapd[node].wake(&host.rule, now_s);
        }
        let (pace, lru) = (host.ledger.reclaim_pace(seconds), host.lru);
        let mut kswapd = std::mem::replace(&mut host.kswapd[node], Kswapd::new());
        let done = kswapd.work(self, node, goal, lru, pace, now_s);
        let host = self.host();
        host.kswapd[node] = kswapd;
        host.ledger.failed(done.failed);
    }

    /// Shows the policy what was sampled, if it looks now, and does what it says.
    fn look(&mut self) {
        let host = self.host();
        let since_s = host.now_s - host.last_look_s;
        if host.policy.period_s().is_none_or(|period_s| since_s < period_s) {
            return;
        }
        host.last_look_s = host.now_s;
        let groups = self.groups(since_s);
        let host = self.host();
        let view = View {
            now_s: host.now_s,
            since_s,
            groups: &groups,
            nodes: host.nodes,
            free: &host.free,
            latency_ns: &host.settled.latency_ns,
        };
        for step in host.policy.look(&view) {
            self.migrate(step);
        }
    }
}
