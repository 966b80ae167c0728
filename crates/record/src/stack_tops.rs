//! Which samples keep what they found on the stack.

/// So many stacks that all are kept up to there, and that are kept at all: 260 MB of memory.
const ALL: usize = 400_000;
const MOST: usize = 500_000;
/// Of so many samples one keeps its stack beyond [`ALL`]: enough for what loops keep there, which most samples of a loop show
/// alike. Assumed.
const LATER_ONE_IN: u64 = 8;

/// Whether a sample of this time keeps its stack, after so many that did; later ones by the lower bits of the time, mixed, so
/// that no rhythm of the program matters.
pub(super) fn keeps_stack(kept: usize, time_ns: u64) -> bool {
    // The multiplier of SplitMix64's first step (Steele, Lea, Flood, 2014).
    let chosen = || (time_ns.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32).is_multiple_of(LATER_ONE_IN);
    kept < ALL || kept < MOST && chosen()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_run_one_in_eight_is_kept_at_any_rate() {
        for period_ns in [1_003_009, 100_270, 1_000_000, 4096] {
            let times = (0..8000).map(|sample| 1_790_000_000_000 + sample * period_ns);
            let kept = |before: usize| times.clone().filter(|time_ns| keeps_stack(before, *time_ns)).count();
            assert_eq!((kept(0), kept(ALL - 1), kept(MOST)), (8000, 8000, 0));
            assert!((800..1200).contains(&kept(ALL)), "{} every {period_ns} ns", kept(ALL));
        }
    }
}
