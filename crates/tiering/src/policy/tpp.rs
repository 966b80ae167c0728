//! `tpp`: Transparent Page Placement, the posted patches 1 to 5 (lore, November 2021; ASPLOS'23).
//!
//! Patch 2: top-tier pages are not scanned, every slow page may move. Patch 3 and 4: kswapd keeps
//! `demote_scale_factor` of the fast node free, is woken before allocations fail, and tries a hopeless node
//! again after 10 s. All of them take node 0 for the only node of the top tier (`node_is_toptier`): pages of any other
//! are scanned, and none is demoted from it. Patch 1: a demoted page is protected at once. Patch 5: a page that is not active
//! is only marked as used, and its entry is *not* restored: the same access faults again until
//! the page has become active, which takes two faults for each of the 15 places of a CPU's
//! activation batch. `refault=0` is the patch as it was meant.

use super::contract::{Fault, Policy, Room, ScanRule, Verdict, idle};
use super::knobs::{Knob, knob, scan_knobs, set_scan_knob};
use crate::kernel::counters::Counters;
use crate::kernel::nodes::{Nodes, TierRule};
use crate::kernel::reclaim::ReclaimRule;
use crate::kernel::scanner::ScanKnobs;

/// Pages in a CPU's activation batch (`PAGEVEC_SIZE`).
const BATCH: f64 = 15.0;
/// Faults for each place: the first marks the page, the second queues it (`mark_page_accessed`).
const FAULTS_PER_PLACE: f64 = 2.0;
/// s after which a hopeless node is tried again (patch 4).
const RETRY_S: f64 = 10.0;

/// Knobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tpp {
    pub(super) scan: ScanKnobs,
    pub(super) demote_scale_factor: f64,
    pub(super) refault: bool,
    pub(super) demotion: bool,
    /// Of the machine it meets: whether the threads' node is the one that `node_is_toptier` takes for the only fast one.
    pub(super) near_is_node0: bool,
}

impl Default for Tpp {
    fn default() -> Self {
        Self {
            scan: ScanKnobs::default(),
            demote_scale_factor: 200.0,
            refault: true,
            demotion: true,
            near_is_node0: true,
        }
    }
}

impl Policy for Tpp {
    fn name(&self) -> &'static str {
        "tpp"
    }

    fn about(&self) -> &'static str {
        "slow pages move up once they are active, kswapd keeps 2 % of fast memory free (TPP patches)"
    }

    fn knobs(&self) -> Vec<Knob> {
        let mut all = scan_knobs(&self.scan);
        all.push(knob("demote_scale_factor", self.demote_scale_factor, "TPP patch 3"));
        all.push(knob(
            "refault",
            f64::from(u8::from(self.refault)),
            "TPP patch 5: the entry is not restored on this path",
        ));
        all.push(knob(
            "demotion_enabled",
            f64::from(u8::from(self.demotion)),
            "TPP's kswapd asks it as any other does (can_demote); the kernel's default is 0",
        ));
        all
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        match name {
            "demote_scale_factor" => self.demote_scale_factor = value,
            "refault" => self.refault = value != 0.0,
            "demotion_enabled" => self.demotion = value != 0.0,
            _ => return set_scan_knob(&mut self.scan, name, value),
        }
        true
    }

    fn tiers(&self) -> TierRule {
        TierRule::Cpuless
    }

    fn meet(&mut self, nodes: &Nodes) {
        self.near_is_node0 = nodes.near_is_node0();
    }

    fn scan(&self) -> Option<ScanRule> {
        Some(ScanRule { knobs: self.scan, slow_only: self.near_is_node0, protect_demoted: true, counts_slow: true })
    }

    fn reclaim(&self) -> ReclaimRule {
        ReclaimRule {
            // Only a node of the top tier is checked (`check_toptier_balanced`), and failed promotions wake nobody.
            demotion: self.demotion && self.near_is_node0,
            target_share: self.demote_scale_factor / 10_000.0,
            proactive: true,
            retry_s: RETRY_S,
        }
    }

    fn wakes_kswapd(&self) -> bool {
        true
    }

    fn on_fault(&mut self, fault: &Fault, _room: &Room, counters: &mut Counters) -> Verdict {
        let idle = fault.pages - fault.active;
        if self.refault {
            counters.pgpromote_candidate += fault.pages;
            let repeats = idle * (FAULTS_PER_PLACE * BATCH);
            return Verdict { promote: fault.pages, activate: idle, repeats };
        }
        counters.pgpromote_candidate += fault.active;
        // Two faults, a scan apart each, make a page active: half of the idle ones are at the second.
        Verdict { promote: fault.active, activate: idle / FAULTS_PER_PLACE, repeats: 0.0 }
    }

    fn idle_on(&self, nodes: &Nodes) -> Option<String> {
        let near = &nodes.list[0];
        let said = format!("`{}` is node {}, and TPP's patches demote from node 0 alone", near.name, near.memory);
        if self.near_is_node0 { idle(self, nodes) } else { Some(said) }
    }
}
