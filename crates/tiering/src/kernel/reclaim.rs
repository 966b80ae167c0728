//! kswapd and its lists: which pages leave a node when it runs short.
//!
//! Source: Linux 6.12 `mm/vmscan.c` (`balance_pgdat`, `shrink_inactive_list`, `folio_check_references`,
//! `shrink_active_list`, `inactive_is_low`). The algorithm is written once, over [`Lists`]; the exact
//! evaluator keeps a list of pages, the cohort evaluator one of interchangeable runs. kswapd takes
//! time: it looks at so many pages a second, so a page that is in use is found to be.

use serde::{Deserialize, Serialize};

use crate::kernel::nodes::{Node, Watermarks};
use crate::workload::sweep::LastSweep;

/// Rounds without progress after which a node is hopeless (`MAX_RECLAIM_RETRIES`).
const HOPELESS: u32 = 16;
/// Priority that a run starts with (`DEF_PRIORITY`): a 4096th of the list is looked at first.
const FIRST_PRIORITY: i32 = 12;
/// Pages that are taken at once (`SWAP_CLUSTER_MAX`).
pub(crate) const BATCH: f64 = 32.0;
/// Pages of 4 KiB in a GiB.
const PAGES_IN_GIB: f64 = 262_144.0;

/// Which list of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Inactive,
    Active,
}

/// A run of interchangeable pages taken off a list; one page in the exact evaluator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    /// Page, or cohort.
    pub(crate) id: u32,
    /// Pages in it.
    pub(crate) pages: f64,
    /// `PG_referenced`: was found in use once before.
    pub(crate) referenced: bool,
    /// How far the program was when its accessed bits were last cleared.
    pub(crate) cleared: f64,
    /// When a sweep last passed by it.
    pub(crate) swept: LastSweep,
}

/// A node's lists, whatever stands on them.
///
/// # Contract
/// - [`Lists::take`] takes from the tail (oldest) and never more than asked for.
/// - [`Lists::put`] puts at the head.
/// - [`Lists::part`] loses none of the pages.
pub(crate) trait Lists {
    fn length(&self, node: usize, list: List) -> f64;
    fn take(&mut self, node: usize, list: List, most: f64) -> Option<Run>;
    fn put(&mut self, node: usize, list: List, run: Run);
    /// The pages of a run that were visited since its bits were cleared, and the others; clears their bits.
    fn part(&mut self, run: Run) -> [Run; 2];
    /// The run with its bits cleared.
    fn clear(&mut self, run: Run) -> Run;
    /// Whether the run is locked in memory.
    fn locked(&self, run: &Run) -> bool;
    /// Moves all of a run, which nobody has used since its bits were cleared, to its node's demotion target; returns
    /// the pages that found room.
    fn demote(&mut self, node: usize, run: Run, now_s: f64) -> f64;
    fn free(&self, node: usize) -> f64;
}

/// Multi-generational LRU or the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LruKind {
    /// Active and inactive list.
    #[default]
    TwoLists,
    /// `lru_gen`: what is found in use goes to the youngest generation, and nothing is ever "active".
    /// Generations are taken as one clock.
    MultiGen,
}

/// What a policy asks of kswapd.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReclaimRule {
    /// `demotion_enabled`: pages may leave for a lower tier.
    pub demotion: bool,
    /// Free pages, as a share of the node, at which kswapd stops, and how many it takes in a pass (TPP's
    /// `WMARK_DEMOTE`); the promotion and the high watermark where it is 0.
    pub target_share: f64,
    /// Woken by any shortage, not only by failed promotions (TPP's allocation hook).
    pub proactive: bool,
    /// Seconds after which a hopeless node is tried again; never where it is infinite.
    pub retry_s: f64,
}

impl ReclaimRule {
    /// kswapd as it is without tiering: nothing to reclaim from memory without swap.
    pub const OFF: Self = Self { demotion: false, target_share: 0.0, proactive: false, retry_s: f64::INFINITY };
    /// `demotion_enabled=1`.
    pub const DEMOTE: Self = Self { demotion: true, target_share: 0.0, proactive: false, retry_s: f64::INFINITY };
}

impl ReclaimRule {
    /// What kswapd works for on a node. TPP clamps its mark between twice the high one and the whole zone.
    pub(crate) fn goal(&self, node: &Node) -> Goal {
        let Watermarks { high, promo, .. } = node.marks;
        if self.target_share <= 0.0 {
            return Goal { target: promo, high };
        }
        let demote = (self.target_share * node.pages).max(2.0 * high).min(node.pages);
        Goal { target: demote, high: demote }
    }
}

/// What kswapd did in a stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Reclaimed {
    pub(crate) demoted: f64,
    pub(crate) failed: f64,
}

/// Time that kswapd gets, and what it needs for a page, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    pub(crate) seconds: f64,
    pub(crate) look_s: f64,
    pub(crate) move_s: f64,
}

impl Pace {
    /// Time to free so many pages that nobody uses, s.
    pub(crate) fn for_pages(&self, pages: f64) -> f64 {
        pages.max(BATCH) * (self.look_s + self.move_s)
    }
}

/// What a pass of kswapd is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Goal {
    /// Free pages at which it goes to sleep.
    pub(crate) target: f64,
    /// The high watermark, or TPP's own: a pass frees no more than so many pages (`kswapd_shrink_node`).
    pub(crate) high: f64,
}

/// One pass over a part of the lists (`kswapd_shrink_node`).
#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    /// Pages left to look at, looked at, and freed.
    left: f64,
    looked: f64,
    freed: f64,
}

/// One node's kswapd.
#[derive(Debug, Clone)]
pub(crate) struct Kswapd {
    awake: bool,
    priority: i32,
    pass: Option<Pass>,
    /// Pages that left in the passes of this run that are over.
    run: f64,
    failures: u32,
    gave_up_s: f64,
    /// Time left, or overdrawn.
    time_s: f64,
}

impl Pass {
    /// Most pages to look at before anything else is decided: however many of them turn out to be idle, they neither
    /// free more than the pass may nor take more time than there is, but for a batch. Pages of one run fare alike,
    /// so that many at once come out as they would a batch at a time.
    fn at_once(&self, goal: Goal, pace: Pace, left_s: f64) -> f64 {
        let wanted = (goal.most() - self.freed).max(BATCH);
        let affordable = (left_s / (pace.look_s + pace.move_s)).max(BATCH);
        wanted.min(affordable).min(self.left)
    }
}

impl Goal {
    /// `nr_to_reclaim`.
    fn most(&self) -> f64 {
        self.high.max(BATCH)
    }
}

impl Kswapd {
    pub(crate) fn new() -> Self {
        Self { awake: false, priority: FIRST_PRIORITY, pass: None, run: 0.0, failures: 0, gave_up_s: 0.0, time_s: 0.0 }
    }

    /// `wakeup_kswapd`: does nothing where the node is hopeless.
    pub(crate) fn wake(&mut self, rule: &ReclaimRule, now_s: f64) {
        if self.failures >= HOPELESS && now_s - self.gave_up_s >= rule.retry_s {
            self.failures = 0;
        }
        if rule.demotion && self.failures < HOPELESS && !self.awake {
            let Self { failures, gave_up_s, time_s, .. } = *self;
            *self = Self { awake: true, failures, gave_up_s, time_s, ..Self::new() };
        }
    }

    /// Works for so many seconds, until enough pages are free; what it overdraws it owes.
    pub(crate) fn work(
        &mut self,
        lists: &mut impl Lists,
        node: usize,
        goal: Goal,
        lru: LruKind,
        pace: Pace,
        now_s: f64,
    ) -> Reclaimed {
        let mut sum = Reclaimed::default();
        self.time_s = if self.awake { self.time_s + pace.seconds } else { self.time_s.min(0.0) };
        while self.awake && self.time_s > 0.0 {
            let Some(mut pass) = self.pass.or_else(|| self.next_pass(lists, node, goal, lru, now_s)) else { break };
            if let Some(run) = lists.take(node, List::Inactive, pass.at_once(goal, pace, self.time_s)) {
                let (demoted, failed) = shrink(lists, node, run, lru, now_s);
                self.time_s -= run.pages * pace.look_s + demoted * pace.move_s;
                pass.left -= run.pages;
                pass.looked += run.pages;
                pass.freed += demoted;
                sum.demoted += demoted;
                sum.failed += failed;
                self.failures = if demoted > 0.0 { 0 } else { self.failures };
                age(lists, node, lru, run.pages.max(1.0));
            } else {
                pass.left = 0.0;
                self.time_s -= BATCH * pace.look_s;
            }
            self.pass = Some(pass);
            if pass.left <= 0.0 || pass.freed >= goal.most() {
                self.finish(pass, goal);
            }
        }
        sum
    }

    /// Time that it did not need because it went to sleep, s.
    pub(crate) fn unspent_s(&mut self) -> f64 {
        if self.awake || self.time_s <= 0.0 { 0.0 } else { std::mem::take(&mut self.time_s) }
    }

    /// Ends a pass: the next one looks at twice as many pages, unless this one looked at enough and freed some.
    fn finish(&mut self, pass: Pass, goal: Goal) {
        self.pass = None;
        self.run += pass.freed;
        if pass.looked < goal.most() || pass.freed <= 0.0 {
            self.priority -= 1;
        }
    }

    /// The next pass of `balance_pgdat`; none where enough are free or the node is hopeless, and it sleeps.
    fn next_pass(&mut self, lists: &mut impl Lists, node: usize, goal: Goal, lru: LruKind, now_s: f64) -> Option<Pass> {
        if lists.free(node) >= goal.target {
            self.awake = false;
            return None;
        }
        if self.priority < 1 {
            self.failures += u32::from(self.run <= 0.0);
            if self.failures >= HOPELESS {
                (self.awake, self.gave_up_s) = (false, now_s);
                return None;
            }
            (self.priority, self.run) = (FIRST_PRIORITY, 0.0);
        }
        age(lists, node, lru, BATCH);
        let left = (lists.length(node, List::Inactive) / 2f64.powi(self.priority)).max(1.0);
        Some(Pass { left, ..Pass::default() })
    }
}

/// `folio_check_references` and what follows from it; returns pages demoted and pages that found no room.
fn shrink(lists: &mut impl Lists, node: usize, run: Run, lru: LruKind, now_s: f64) -> (f64, f64) {
    if lists.locked(&run) {
        lists.put(node, List::Active, run);
        return (0.0, 0.0);
    }
    let [used, idle] = lists.part(run);
    if used.pages > 0.0 {
        let (list, referenced) = match lru {
            LruKind::MultiGen => (List::Inactive, false),
            LruKind::TwoLists if run.referenced => (List::Active, false),
            LruKind::TwoLists => (List::Inactive, true),
        };
        lists.put(node, list, Run { referenced, ..used });
    }
    if idle.pages <= 0.0 {
        return (0.0, 0.0);
    }
    let moved = lists.demote(node, Run { referenced: false, ..idle }, now_s);
    (moved, idle.pages - moved)
}

/// `shrink_active_list`: anonymous pages leave the active list in use or not, while the inactive
/// list is short.
fn age(lists: &mut impl Lists, node: usize, lru: LruKind, pages: f64) {
    if lru == LruKind::MultiGen {
        return;
    }
    let (inactive, active) = (lists.length(node, List::Inactive), lists.length(node, List::Active));
    let gib = ((inactive + active) / PAGES_IN_GIB).floor();
    let ratio = if gib > 0.0 { (10.0 * gib).sqrt().floor() } else { 1.0 };
    if inactive * ratio >= active {
        return;
    }
    // Each page that leaves one list lengthens the other.
    let mut left = pages.min(((active - inactive * ratio) / (1.0 + ratio)).max(BATCH));
    while left > 0.0 {
        let Some(run) = lists.take(node, List::Active, left) else { break };
        left -= run.pages;
        let run = lists.clear(run);
        lists.put(node, List::Inactive, Run { referenced: false, ..run });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TPP patch 3: `clamp(managed * demote_scale_factor / 10000, 2 * high, managed)`.
    #[test]
    fn a_mark_of_its_own_is_at_least_twice_the_high_one() {
        let marks = Watermarks { min: 10.0, low: 20.0, high: 30.0, promo: 40.0 };
        let node = |pages| Node {
            name: "n".to_owned(),
            memory: 0,
            pages,
            marks,
            tier: 4,
            top: true,
            demotion: None,
            touched_by: 1.0,
            long_lists: true,
        };
        let tpp = ReclaimRule { target_share: 0.02, ..ReclaimRule::DEMOTE };
        assert_eq!(tpp.goal(&node(1e5)), Goal { target: 2000.0, high: 2000.0 });
        assert_eq!(tpp.goal(&node(1e3)), Goal { target: 60.0, high: 60.0 });
        assert_eq!(ReclaimRule::DEMOTE.goal(&node(1e5)), Goal { target: 40.0, high: 30.0 });
    }
}
