//! `autonuma`: NUMA balancing as it is on machines without tiers (`numa_balancing=1`).
//!
//! Source: Linux 6.12 `should_numa_migrate_memory`. A page moves to the node of the thread that
//! faults on it. The two-pass filter lets a page pass when the last fault came from the same node,
//! and groups of threads compare their faults by node. Threads run on one socket here, so every last fault
//! came from the same node and a node without their CPUs has no CPU faults: both filters pass every
//! page. What holds migration back is room: nothing is ever demoted to make any.

use super::contract::{Fault, Policy, Room, ScanRule, Verdict};
use super::knobs::{Knob, scan_knobs, set_scan_knob};
use crate::kernel::counters::Counters;
use crate::kernel::scanner::ScanKnobs;

/// `numa_balancing=1`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AutoNuma {
    scan: ScanKnobs,
}

impl Policy for AutoNuma {
    fn name(&self) -> &'static str {
        "autonuma"
    }

    fn about(&self) -> &'static str {
        "hint faults move pages to the node of the thread, while it has room (numa_balancing=1)"
    }

    fn knobs(&self) -> Vec<Knob> {
        scan_knobs(&self.scan)
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        set_scan_knob(&mut self.scan, name, value)
    }

    fn scan(&self) -> Option<ScanRule> {
        Some(ScanRule { knobs: self.scan, slow_only: false, protect_demoted: false, counts_slow: true })
    }

    fn on_fault(&mut self, fault: &Fault, _room: &Room, _counters: &mut Counters) -> Verdict {
        Verdict { promote: if fault.local { 0.0 } else { fault.pages }, ..Verdict::default() }
    }
}
