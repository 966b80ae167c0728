//! What the recorder wants: blocks from which size on, and times in which clock. Hooks and entries read it at every
//! call, so it lies where they find it without asking anybody.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tierloom_wire::Region;

/// Smallest block that is ever recorded, bytes.
pub(crate) const GRANULE: u64 = 32 << 10;

/// Smallest block that is recorded, bytes: nothing before the file is mapped.
pub(crate) static MIN_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Times are ticks. It lies on the page of the next library's functions, which every call reads.
#[unsafe(link_section = ".data")]
static TICKS: AtomicBool = AtomicBool::new(false);

/// Smallest block that is recorded, bytes.
#[inline]
pub(crate) fn min_bytes() -> usize {
    MIN_BYTES.load(Ordering::Relaxed)
}

/// Whether times are ticks of the time-stamp counter.
#[inline]
pub(crate) fn in_ticks() -> bool {
    TICKS.load(Ordering::Relaxed)
}

/// Takes over the clock that the recorder wants; before the first record.
pub(crate) fn take_clock(region: &Region) {
    TICKS.store(region.wants_ticks(), Ordering::Relaxed);
}

/// Takes over from which size blocks are recorded: from now on they are.
pub(crate) fn take_size(region: &Region) {
    let min_bytes = region.settings().min_bytes.max(GRANULE);
    MIN_BYTES.store(usize::try_from(min_bytes).unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// No block is recorded from now on.
pub(crate) fn record_none() {
    MIN_BYTES.store(usize::MAX, Ordering::Relaxed);
}
