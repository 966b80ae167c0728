//! What a policy is asked and what it answers; each implementation is one file beside this one.

use super::heat::{Move, View};
use super::knobs::Knob;
use crate::kernel::counters::Counters;
use crate::kernel::nodes::{Nodes, TierRule, Watermarks};
use crate::kernel::reclaim::ReclaimRule;
use crate::kernel::scanner::ScanKnobs;

/// Which pages the scanner protects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScanRule {
    /// The scanner's own knobs.
    pub knobs: ScanKnobs,
    /// Skips pages of the top tier (`numa_balancing` without bit 0).
    pub slow_only: bool,
    /// A page is protected again as soon as it has been demoted (TPP patch 1).
    pub protect_demoted: bool,
    /// Faults on slow pages count towards the scan period as any others: `task_numa_fault` returns early in mode 2,
    /// whose slow pages hold a time instead of who faulted last, and does not in TPP.
    pub counts_slow: bool,
}

/// Pages of one kind that fault at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// s from the start.
    pub now_s: f64,
    /// Time since the scanner protected them, ms.
    pub latency_ms: f64,
    /// Pages; 1 in the exact evaluator.
    pub pages: f64,
    /// Of those, on the active list (`PG_active`).
    pub active: f64,
    /// Of those, demoted before.
    pub demoted: f64,
    /// They are below the top tier.
    pub slow: bool,
    /// They are on the node of the thread.
    pub local: bool,
    /// Threads of the program.
    pub threads: f64,
}

/// The node that pages would be promoted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Free pages.
    pub free: f64,
    /// Its watermarks.
    pub marks: Watermarks,
    /// Free pages above which it counts as not yet filled.
    pub plenty: f64,
    /// Latency of memory per miss in flight, ns: how much a miss costs (AOL).
    pub cost_of_miss_ns: f64,
}

/// What becomes of pages that faulted; what is not promoted stays, with its entry restored.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Verdict {
    /// Pages to move to the thread's node.
    pub promote: f64,
    /// Pages that become active.
    pub activate: f64,
    /// Further faults of the same accesses, because the entry was not restored.
    pub repeats: f64,
}

/// Decides which pages move while the program runs.
///
/// # Contract
/// - A policy sees what its original sees: hint faults, or samples of misses by group; never the
///   workload.
/// - It answers for any number of like pages at once: the exact evaluator asks for one, the cohort
///   evaluator for a fraction of a run.
/// - The same questions in the same order give the same answers.
pub trait Policy {
    /// Name as on the command line.
    fn name(&self) -> &str;

    /// What it does, in one line.
    fn about(&self) -> &str;

    /// The policy that it stands on, whose knobs, tiers, scanner, kswapd and decisions are its own by default.
    fn base(&self) -> Option<&dyn Policy> {
        None
    }

    /// The same, to change it.
    fn base_mut(&mut self) -> Option<&mut dyn Policy> {
        None
    }

    /// Its knobs; [`Policy::set`] changes them.
    fn knobs(&self) -> Vec<Knob> {
        self.base().map_or_else(Vec::new, Policy::knobs)
    }

    /// Sets a knob; false where it has none of this name.
    fn set(&mut self, name: &str, value: f64) -> bool {
        self.base_mut().is_some_and(|base| base.set(name, value))
    }

    /// How its kernel sorts nodes into tiers; as the current one does by default.
    fn tiers(&self) -> TierRule {
        self.base().map_or(TierRule::Hmat, Policy::tiers)
    }

    /// Told the nodes before the run.
    fn meet(&mut self, nodes: &Nodes) {
        if let Some(base) = self.base_mut() {
            base.meet(nodes);
        }
    }

    /// What the NUMA scanner does; nothing by default.
    fn scan(&self) -> Option<ScanRule> {
        self.base().and_then(Policy::scan)
    }

    /// What kswapd does; nothing by default.
    fn reclaim(&self) -> ReclaimRule {
        self.base().map_or(ReclaimRule::OFF, Policy::reclaim)
    }

    /// Whether a promotion that finds no room wakes kswapd.
    fn wakes_kswapd(&self) -> bool {
        self.base().is_some_and(Policy::wakes_kswapd)
    }

    /// Whether the thread that faults waits for the copy.
    fn waits_for_copy(&self) -> bool {
        true
    }

    /// Share of demotions that copy nothing because a shadow is still there.
    fn shadowed(&self, _counters: &Counters) -> f64 {
        0.0
    }

    /// TLB shootdowns that one migrated page costs.
    fn shootdowns(&self) -> f64 {
        0.0
    }

    /// What becomes of pages that have just faulted.
    fn on_fault(&mut self, fault: &Fault, room: &Room, counters: &mut Counters) -> Verdict {
        self.base_mut().map_or_else(Verdict::default, |base| base.on_fault(fault, room, counters))
    }

    /// How often it looks at samples, s; never by default.
    fn period_s(&self) -> Option<f64> {
        None
    }

    /// Misses per hardware sample; 0 where it takes none.
    fn sample_period(&self) -> f64 {
        0.0
    }

    /// Pages to move, from what was sampled since the last look.
    fn look(&mut self, _view: &View<'_>) -> Vec<Move> {
        Vec::new()
    }

    /// What a reader has to know about what is left out.
    fn limits(&self) -> Option<&str> {
        None
    }

    /// What it does not do on these nodes, and why, if so.
    fn idle_on(&self, nodes: &Nodes) -> Option<String> {
        self.base().map_or_else(|| idle(self, nodes), |base| base.idle_on(nodes))
    }
}

/// What keeps any policy of the kernel's from moving pages on these nodes.
pub(crate) fn idle<P: Policy + ?Sized>(policy: &P, nodes: &Nodes) -> Option<String> {
    let (demotes, slow, near) = (policy.reclaim().demotion, nodes.slow(), &nodes.list[0]);
    let needs = demotes || policy.scan().is_some_and(|scan| scan.slow_only);
    if needs && slow.is_empty() {
        let names: Vec<&str> = nodes.list.iter().map(|node| node.name.as_str()).collect();
        return Some(format!("{} are all one tier, so `{}` finds nothing to move", names.join(", "), policy.name()));
    }
    (demotes && near.top && near.demotion.is_none()).then(|| {
        let (near, slow) = (&near.name, slow.join(", "));
        format!("nothing is demoted from `{near}`: up to Linux 6.0, {slow} is for a node of a lower number alone")
    })
}
