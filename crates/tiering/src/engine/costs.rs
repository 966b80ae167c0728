//! What one event costs on the processor, each with where the number comes from.
//!
//! `tierloom simulate --calibrate` measures them on the machine at hand; these are for machines that
//! nobody has measured.

use serde::{Deserialize, Serialize};
use tierloom_model::{Figure, Kind};

/// Costs of kernel events, ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A hint fault that leaves the page where it is; the thread waits.
    pub hint_fault_ns: Figure<f64>,
    /// Protecting one page table entry; the scanning thread waits.
    pub protect_ns: Figure<f64>,
    /// Looking at one entry that is left alone.
    pub skip_ns: Figure<f64>,
    /// Moving one page in the fault, copy included; the thread waits.
    pub promote_ns: Figure<f64>,
    /// Moving one page in the background, copy included; kswapd's or the policy's thread.
    pub demote_ns: Figure<f64>,
    /// Interrupting all CPUs of the process to flush their TLBs; every thread waits.
    pub shootdown_ns: Figure<f64>,
    /// kswapd looking at one page.
    pub reclaim_ns: Figure<f64>,
    /// Handling one hardware sample (PEBS, IBS) in the background.
    pub sample_ns: Figure<f64>,
}

impl Default for Costs {
    fn default() -> Self {
        let assumed = |value: f64, how: &str| Figure::new(value, Kind::Assumed, "bare-metal", how);
        Self {
            hint_fault_ns: assumed(1000.0, "page faults without I/O take 0.5 to 1.5 µs on server processors"),
            protect_ns: assumed(25.0, "10 to 40 ns an entry when a whole range is protected at once"),
            skip_ns: assumed(10.0, "the page's node is read from its struct page, a line of its own"),
            promote_ns: Figure::new(
                12_000.0,
                Kind::Published,
                "soar-alto",
                "mean synchronous promotion of 4 KiB, OSDI'25",
            ),
            demote_ns: assumed(2000.0, "1 µs of copying at 4 GB/s and as much for the rest; batched since 6.3"),
            shootdown_ns: assumed(3000.0, "2 to 5 µs for a set of CPUs"),
            reclaim_ns: assumed(150.0, "one reverse-map walk of a page mapped once"),
            sample_ns: assumed(250.0, "draining and accounting one record of a sampling buffer"),
        }
    }
}
