//! Which samples keep what they found on the stack.

/// So many stacks are kept before they become half as dense, and again: no more than eight times as many, 270 MB of memory,
/// with the most samples that are kept.
const DENSE: usize = 1 << 16;
/// Stacks are kept of all samples within some 134 ms or of none, so that neighbours show what was counted between them. At a
/// hundred samples a second that is a dozen of each thread. Assumed.
const TOGETHER: u32 = 27;

/// Whether a sample of this time keeps its stack, after so many that did. Which stretches of time are chosen is mixed, so that
/// no rhythm of the program matters.
pub(super) fn keeps_stack(kept: usize, time_ns: u64) -> bool {
    let halved = (kept / DENSE).min(63);
    // The multiplier of SplitMix64's first step (Steele, Lea, Flood, 2014).
    let mixed = (time_ns >> TOGETHER).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
    mixed.is_multiple_of(1 << halved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_run_ever_fewer_are_kept_and_neighbours_together() {
        for period_ns in [1_003_009, 100_270, 1_000_000, 4096] {
            let times = || (0..2_000_000).map(|sample| 1_790_000_000_000 + sample * period_ns);
            assert!(times().all(|time_ns| keeps_stack(DENSE - 1, time_ns)));
            let kept = |before: usize| times().filter(move |time_ns| keeps_stack(before, *time_ns));
            let later = kept(2 * DENSE).count();
            let stretches = (2_000_000 * period_ns) >> TOGETHER;
            if stretches > 1000 {
                assert!((400_000..600_000).contains(&later), "{later} every {period_ns} ns");
                let beside = kept(2 * DENSE).filter(|time_ns| keeps_stack(2 * DENSE, time_ns + period_ns)).count();
                assert!(10 * beside > 9 * later, "{beside} of {later} have a neighbour");
            }
        }
    }

    #[test]
    fn however_long_it_runs_some_are_kept_and_not_too_many() {
        let mut kept = 0;
        for sample in 0..8_000_000_u64 {
            kept += usize::from(keeps_stack(kept, 1_790_000_000_000 + sample * 1_003_009));
        }
        assert!((6 * DENSE..9 * DENSE).contains(&kept), "{kept}");
    }
}
