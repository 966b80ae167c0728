//! Which samples keep what they found on the stack.

/// Of so many samples one keeps what it found on the stack: as many bytes as a third of a sample. Assumed.
const STACK_TOPS_ONE_IN: u64 = 8;

/// Whether what a sample of this time found on the stack is kept. One of several is enough, for what loops keep there most
/// samples of a loop show alike; by the lower bits of its time, mixed, so that no rhythm of the program matters.
pub(super) fn keeps_stack(time_ns: u64) -> bool {
    // The multiplier of SplitMix64's first step (Steele, Lea, Flood, 2014).
    (time_ns.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32).is_multiple_of(STACK_TOPS_ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_eight_is_kept_at_any_rate() {
        for period_ns in [1_003_009, 100_270, 1_000_000, 4096] {
            let kept = (0..8000).filter(|sample| keeps_stack(1_790_000_000_000 + sample * period_ns)).count();
            assert!((800..1200).contains(&kept), "{kept} every {period_ns} ns");
        }
    }
}
