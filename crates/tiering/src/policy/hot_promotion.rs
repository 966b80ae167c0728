//! `hot-promotion`: hot page selection alone, as the `ByteDance` study ran it on interleaved memory.
//!
//! Source: the "hot page selection with hint page fault latency" series (Linux 6.1), with its rate limit in
//! effect; demotion stays off, so pages move while the fast node has room. To let interleaved
//! pages move they have to be placed page by page (`--placement interleave-migratable`).

use super::contract::{Policy, idle};
use super::mode2::Mode2;
use crate::kernel::nodes::Nodes;

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

    fn base(&self) -> Option<&dyn Policy> {
        Some(&self.inner)
    }

    fn base_mut(&mut self) -> Option<&mut dyn Policy> {
        Some(&mut self.inner)
    }

    fn idle_on(&self, nodes: &Nodes) -> Option<String> {
        idle(self, nodes)
    }
}
