//! When windows come, and how long they last: so that they cost a known share of a thread's time.

use std::ops::Range;

/// How long a window lasts, ns: some times the millisecond after the halt in which caches are cold, and no more: many tell
/// more of a run than few that are long. With 3 to 4 ms shares of the referee's programs were off by a fifth less than with
/// 4 to 8 ms at the same cost.
pub(super) const WINDOW_NS: Range<u64> = 3_000_000..4_000_000;
/// A window is so much of the time that has passed. Assumed.
const ONE_IN: u64 = 50;
/// What halts take of a thread's time in a window, ns: four of some 50 us (measured on Linux 6.18 in a virtual machine).
const HALTS_NS: u64 = 200_000;
/// Of the time in copies that count this part is lost: 2 to 15 % of it (measured on the programs of docs/accuracy.md).
const LOST_ONE_IN: u64 = 10;
/// What windows may take of a thread's time is so much of it: in the first second, in which everything is new, up to the
/// tenth, and from then on. Assumed.
const COST_ONE_IN: [(u64, u64); 3] = [(1_000_000_000, 20), (10_000_000_000, 50), (u64::MAX, 100)];

/// After an attempt that found no thread that computes, or no copy, the next one comes so soon, ns. Assumed.
pub(crate) const AGAIN_NS: u64 = 1_000_000;

/// How long a window lasts when so much time has passed, ns.
pub(crate) fn window_ns(passed_ns: u64) -> u64 {
    (passed_ns / ONE_IN).clamp(WINDOW_NS.start, WINDOW_NS.end)
}

/// The mean time from one window to the next when so much time has passed, ns.
pub(crate) fn between_windows_ns(passed_ns: u64) -> u64 {
    let one_in = COST_ONE_IN.iter().find(|(until_ns, _)| passed_ns < *until_ns).map_or(1, |(_, one_in)| *one_in);
    (HALTS_NS + LOG_NS / 2 + window_ns(passed_ns) / LOST_ONE_IN) * one_in
}

/// How long addresses are written down before counting begins, ns: tens of thousands of them. Assumed.
pub(super) const LOG_NS: u64 = 150_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_take_a_small_share_of_the_time() {
        for passed_ns in [0, 100_000_000, 2_000_000_000, 60_000_000_000] {
            let (window_ns, between_ns) = (window_ns(passed_ns), between_windows_ns(passed_ns));
            assert!(WINDOW_NS.contains(&window_ns) || window_ns == WINDOW_NS.end);
            assert!(between_ns > 2 * (LOG_NS + window_ns), "{passed_ns}");
        }
        assert!(between_windows_ns(60_000_000_000) > 4 * between_windows_ns(0));
    }
}
