//! `nomad`: Nomad (OSDI'24): TPP whose promotions do not stop the program, and keep a shadow.
//!
//! A page is copied while it stays mapped, in the background; a write meanwhile aborts the copy. Each
//! try costs two TLB shootdowns. The old copy is kept as a shadow, so demoting a page that was not written
//! since copies nothing. Which pages were written is taken from the counters' own history: half of
//! the demotions (assumed) find their shadow.

use super::contract::Policy;
use super::knobs::Knob;
use super::tpp::Tpp;
use crate::kernel::counters::Counters;

/// Share of demoted pages whose shadow is still good; assumed.
const SHADOWED: f64 = 0.5;

/// TPP's scan and reclaim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nomad {
    inner: Tpp,
}

impl Default for Nomad {
    fn default() -> Self {
        Self { inner: Tpp { refault: false, ..Tpp::default() } }
    }
}

impl Policy for Nomad {
    fn name(&self) -> &'static str {
        "nomad"
    }

    fn about(&self) -> &'static str {
        "TPP with copies in the background and shadows of promoted pages (Nomad, OSDI'24)"
    }

    fn base(&self) -> Option<&dyn Policy> {
        Some(&self.inner)
    }

    fn base_mut(&mut self) -> Option<&mut dyn Policy> {
        Some(&mut self.inner)
    }

    fn knobs(&self) -> Vec<Knob> {
        self.inner.knobs().into_iter().filter(|knob| knob.name != "refault").collect()
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        name != "refault" && self.inner.set(name, value)
    }

    fn waits_for_copy(&self) -> bool {
        false
    }

    fn shadowed(&self, counters: &Counters) -> f64 {
        // Only pages that were promoted before can have a shadow.
        SHADOWED * (counters.pgpromote_success / counters.pgdemote_kswapd.max(1.0)).min(1.0)
    }

    fn shootdowns(&self) -> f64 {
        2.0
    }

    fn limits(&self) -> Option<&'static str> {
        Some("copies never abort, and half of the demoted pages that were promoted find their shadow (assumed)")
    }
}
