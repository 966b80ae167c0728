//! `hot-promotion`: hot page selection alone, as the `ByteDance` study ran it on interleaved memory.
//!
//! Source: the "hot page selection with hint page fault latency" series (Linux 6.1), with its rate limit in
//! effect; demotion stays off, so pages move while the fast node has room. To let interleaved
//! pages move they have to be placed page by page (`--placement interleave-migratable`).

use super::mode2::Mode2;
use super::{Fault, Knob, Policy, Room, ScanRule, Verdict};
use crate::counters::Counters;

/// MB/s: a tenth of what the study's CXL cards write, as the kernel's documentation advises.
const RATE_LIMIT_MB_S: f64 = 4700.0;

/// Mode 2 without demotion.
#[derive(Debug, Clone, Copy)]
pub(super) struct HotPromotion {
    inner: Mode2,
}

impl Default for HotPromotion {
    fn default() -> Self {
        Self { inner: Mode2::promoting(RATE_LIMIT_MB_S) }
    }
}

impl Policy for HotPromotion {
    fn name(&self) -> &'static str {
        "hot-promotion"
    }

    fn about(&self) -> &'static str {
        "hot page selection with a rate limit and no demotion (Linux 6.1, ByteDance study)"
    }

    fn knobs(&self) -> Vec<Knob> {
        self.inner.knobs()
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        self.inner.set(name, value)
    }

    fn scan(&self) -> Option<ScanRule> {
        self.inner.scan()
    }

    fn on_fault(&mut self, fault: &Fault, room: &Room, counters: &mut Counters) -> Verdict {
        self.inner.on_fault(fault, room, counters)
    }
}
