//! `tiering`: memory tiering of the mainline kernel (`numa_balancing=2`), and `tiering-0.8` with that
//! tree's knobs.
//!
//! Source: Linux 6.12 `should_numa_migrate_memory`, `numa_promotion_adjust_threshold`,
//! `numa_promotion_rate_limit`. A slow page is hot when it is used within the threshold after the
//! scanner protected it. The threshold follows the number of candidates; while the fast node is far from
//! full everything moves. Room is made by kswapd, woken by promotions that find none.
//!
//! The sources of Tiering-0.8 are not published in a place that could be read; its knobs and their
//! recommended values are, in the scripts of the MEMTIS artefact. What they do is taken from their
//! names: `scan_demoted` and `demoted_threshold` protect demoted pages again at once and lower the
//! threshold when those are used again, `promote_watermark` is room that kswapd keeps for promotions.

use super::contract::{Fault, Policy, Room, ScanRule, Verdict};
use super::knobs::{Knob, knob, scan_knobs, set_scan_knob};
use crate::kernel::counters::Counters;
use crate::kernel::nodes::TierRule;
use crate::kernel::reclaim::ReclaimRule;
use crate::kernel::scanner::ScanKnobs;

/// Pages of 4 KiB in a MiB.
const PAGES_IN_MIB: f64 = 256.0;
/// Steps between no threshold and twice the default (`NUMA_MIGRATION_ADJUST_STEPS`).
const STEPS: f64 = 16.0;
const KERNEL: &str = "Linux 6.12 kernel/sched/fair.c";
const MEMTIS: &str = "scripts of the MEMTIS artefact (SOSP'23)";

/// Threshold and rate limit of one node (`pgdat->nbp_*`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hotness {
    threshold_ms: f64,
    adjusted_s: f64,
    adjusted_candidates: f64,
    window_s: f64,
    window_candidates: f64,
    demoted_again: f64,
}

/// Knobs and state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mode2 {
    scan: ScanKnobs,
    hot_threshold_ms: f64,
    rate_limit_mb_s: f64,
    demotion: bool,
    /// Tiering-0.8 only.
    old: bool,
    promote_watermark_mb: f64,
    demoted_threshold: f64,
    state: Hotness,
}

impl Default for Mode2 {
    fn default() -> Self {
        Self {
            scan: ScanKnobs::default(),
            hot_threshold_ms: 1000.0,
            rate_limit_mb_s: 65_536.0,
            demotion: true,
            old: false,
            promote_watermark_mb: 0.0,
            demoted_threshold: 0.0,
            state: Hotness::default(),
        }
    }
}

impl Mode2 {
    /// The knobs of the Tiering-0.8 tree.
    pub(super) fn tiering_08() -> Self {
        Self {
            rate_limit_mb_s: 30.0,
            old: true,
            promote_watermark_mb: 10.0,
            demoted_threshold: 16.0,
            ..Self::default()
        }
    }

    /// With another rate limit and no demotion.
    pub(super) fn promoting(rate_limit_mb_s: f64) -> Self {
        Self { rate_limit_mb_s, demotion: false, ..Self::default() }
    }

    fn rate_limit_pages(&self) -> f64 {
        self.rate_limit_mb_s * PAGES_IN_MIB
    }

    /// Once a longest scan period: more candidates than the limit lets through make it harder.
    fn adjust(&mut self, now_s: f64, candidates: f64) {
        let period_s = self.scan.scan_period_max_ms * 1e-3;
        let state = &mut self.state;
        if now_s - state.adjusted_s <= period_s {
            return;
        }
        let wanted = self.rate_limit_mb_s * PAGES_IN_MIB * period_s;
        let seen = candidates - state.adjusted_candidates;
        let step = 2.0 * self.hot_threshold_ms / STEPS;
        let now_ms = if state.threshold_ms > 0.0 { state.threshold_ms } else { self.hot_threshold_ms };
        let again = self.old && state.demoted_again >= self.demoted_threshold / 100.0 * seen && seen > 0.0;
        state.threshold_ms = if seen > 1.1 * wanted || again {
            (now_ms - step).max(step)
        } else if seen < 0.9 * wanted {
            (now_ms + step).min(2.0 * self.hot_threshold_ms)
        } else {
            now_ms
        };
        (state.adjusted_s, state.adjusted_candidates, state.demoted_again) = (now_s, candidates, 0.0);
    }

    /// Candidates that the limit lets through in this second.
    fn let_through(&mut self, now_s: f64, pages: f64, counters: &mut Counters) -> f64 {
        let limit = self.rate_limit_pages();
        counters.pgpromote_candidate += pages;
        if now_s - self.state.window_s > 1.0 {
            (self.state.window_s, self.state.window_candidates) = (now_s, counters.pgpromote_candidate - pages);
        }
        let over = counters.pgpromote_candidate - self.state.window_candidates - limit;
        (pages - over.max(0.0)).max(0.0)
    }
}

impl Policy for Mode2 {
    fn name(&self) -> &'static str {
        if self.old { "tiering-0.8" } else { "tiering" }
    }

    fn about(&self) -> &'static str {
        if self.old {
            "the Tiering-0.8 tree: mode 2 with a low rate limit, room for promotions and demoted pages watched"
        } else {
            "slow pages used soon after a scan move up, kswapd moves idle ones down (numa_balancing=2)"
        }
    }

    fn knobs(&self) -> Vec<Knob> {
        let mut all = scan_knobs(&self.scan);
        if self.old {
            all.push(knob("hot_threshold_ms", self.hot_threshold_ms, MEMTIS));
            all.push(knob("numa_balancing_rate_limit_mbps", self.rate_limit_mb_s, MEMTIS));
            all.push(knob("numa_balancing_promote_watermark_mb", self.promote_watermark_mb, MEMTIS));
            all.push(knob("numa_balancing_demoted_threshold", self.demoted_threshold, MEMTIS));
        } else {
            all.push(knob("hot_threshold_ms", self.hot_threshold_ms, KERNEL));
            all.push(knob("numa_balancing_promote_rate_limit_MBps", self.rate_limit_mb_s, KERNEL));
        }
        all.push(knob(
            "demotion_enabled",
            f64::from(u8::from(self.demotion)),
            "needed by mode 2; the kernel's default is 0",
        ));
        all
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        match name {
            "hot_threshold_ms" => self.hot_threshold_ms = value,
            "numa_balancing_promote_rate_limit_MBps" | "numa_balancing_rate_limit_mbps" => self.rate_limit_mb_s = value,
            "numa_balancing_promote_watermark_mb" if self.old => self.promote_watermark_mb = value,
            "numa_balancing_demoted_threshold" if self.old => self.demoted_threshold = value,
            "demotion_enabled" => self.demotion = value != 0.0,
            _ => return set_scan_knob(&mut self.scan, name, value),
        }
        true
    }

    fn tiers(&self) -> TierRule {
        if self.old { TierRule::Cpuless } else { TierRule::Hmat }
    }

    fn scan(&self) -> Option<ScanRule> {
        Some(ScanRule { knobs: self.scan, slow_only: true, protect_demoted: self.old, counts_slow: false })
    }

    fn reclaim(&self) -> ReclaimRule {
        ReclaimRule { demotion: self.demotion, proactive: self.old && self.demotion, ..ReclaimRule::DEMOTE }
    }

    fn wakes_kswapd(&self) -> bool {
        self.demotion
    }

    fn on_fault(&mut self, fault: &Fault, room: &Room, counters: &mut Counters) -> Verdict {
        if !fault.slow {
            return Verdict { promote: if fault.local { 0.0 } else { fault.pages }, ..Verdict::default() };
        }
        if room.free > room.plenty {
            self.state.threshold_ms = 0.0;
            return Verdict { promote: fault.pages, ..Verdict::default() };
        }
        self.adjust(fault.now_s, counters.pgpromote_candidate);
        let threshold_ms = if self.state.threshold_ms > 0.0 { self.state.threshold_ms } else { self.hot_threshold_ms };
        if fault.latency_ms >= threshold_ms {
            return Verdict::default();
        }
        self.state.demoted_again += fault.demoted;
        Verdict { promote: self.let_through(fault.now_s, fault.pages, counters), ..Verdict::default() }
    }

    fn limits(&self) -> Option<&'static str> {
        self.old.then_some("Tiering-0.8 by its knobs and their names: its source could not be read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::nodes::Watermarks;

    fn room(free: f64) -> Room {
        Room { free, marks: Watermarks::of(1000.0, 1e6), plenty: 3e5, cost_of_miss_ns: 100.0 }
    }

    fn fault(now_s: f64, latency_ms: f64, pages: f64) -> Fault {
        Fault { now_s, latency_ms, pages, active: 0.0, demoted: 0.0, slow: true, local: false, threads: 1.0 }
    }

    #[test]
    fn pages_used_within_the_threshold_are_hot() {
        let (mut policy, mut counters) = (Mode2::default(), Counters::default());
        assert!(policy.on_fault(&fault(1.0, 999.0, 5.0), &room(0.0), &mut counters).promote > 4.9);
        assert!(policy.on_fault(&fault(1.0, 1000.0, 5.0), &room(0.0), &mut counters).promote < 1e-9);
        assert!((counters.pgpromote_candidate - 5.0).abs() < 1e-9);
    }

    #[test]
    fn everything_moves_while_the_fast_node_fills_and_no_candidate_is_counted() {
        let (mut policy, mut counters) = (Mode2::default(), Counters::default());
        assert!(policy.on_fault(&fault(1.0, 5000.0, 5.0), &room(4e5), &mut counters).promote > 4.9);
        assert!(counters.pgpromote_candidate < 1e-9);
    }

    #[test]
    fn the_rate_limit_holds_in_each_second() {
        let (mut policy, mut counters) = (Mode2::default(), Counters::default());
        assert!(policy.set("numa_balancing_promote_rate_limit_MBps", 1.0));
        let mut moved = 0.0;
        for tenth in 0..50 {
            moved +=
                policy.on_fault(&fault(2.0 + f64::from(tenth) * 0.1, 1.0, 100.0), &room(0.0), &mut counters).promote;
        }
        assert!((4.0 * 256.0..=6.0 * 256.0).contains(&moved), "{moved} in 5 s at 256 a second");
    }

    #[test]
    fn without_a_limit_in_effect_the_threshold_climbs_to_twice_the_default() {
        let (mut policy, mut counters) = (Mode2::default(), Counters::default());
        for minute in 1..30 {
            policy.on_fault(&fault(61.0 * f64::from(minute), 1.0, 1.0), &room(0.0), &mut counters);
        }
        assert!((policy.state.threshold_ms - 2000.0).abs() < 1e-9);
    }
}
