//! Reads that wait beside each other in a core that retires in order.
//!
//! Such a core looks no further than a window ahead of the oldest read that has not retired. Where the window holds `k`
//! reads of one latency `L`, each takes `L/k`. Where latencies differ, slow reads hold up the fast ones behind them:
//! read `i` retires at `r(i) = max(r(i-1), r(i-k) + L(i))`. A way back through that recurrence which waits only for
//! reads of some latency `l` or more steps over `k` reads for each, and over those that stand before the next of them,
//! `1/P - 1` in the mean, so that no read takes less than
//!
//! ```text
//! E[L | L >= l] / (k + 1/P(L >= l) - 1)
//! ```
//!
//! The largest over all `l` is taken for its time; the lowest `l` gives the mean latency over `k`. For one read at a time
//! it is the mean. Against a real core (`tests/window.rs`) it is 3 % too high to 22 % too low, where the mean latency over
//! `k` is up to 65 % too low.
//!
//! Which reads stand in one window is not known of two objects of a phase: they are taken to be mixed, as in one loop.

use smallvec::SmallVec;

use crate::work::Work;

/// Seconds that reads beside each other are held up by slower ones, beyond what each waits for itself: of the works of
/// one team by memory, and the latency of its random reads there, ns.
///
/// ```
/// use tierloom_contention::{Work, held_up_s};
///
/// // Eight at a time, half of them of 100 ns and half of 400: nearly all wait as long as the slow ones.
/// let half = Work { beside: 1e-9 / 8.0, alone: 1e-9, ..Work::default() };
/// let each_for_itself_s = (100.0 + 400.0) * 1e-9 / 8.0;
/// let all_s = each_for_itself_s + held_up_s([(half, 100.0), (half, 400.0)].into_iter());
/// assert!((all_s - 2.0 * 400.0 * 1e-9 / 9.0).abs() < 1e-18);
/// ```
pub fn held_up_s(parts: impl Iterator<Item = (Work, f64)>) -> f64 {
    let mut parts: SmallVec<[(Work, f64); 8]> = parts.filter(|(work, _)| work.has_beside()).collect();
    if parts.len() < 2 {
        return 0.0;
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all = parts.iter().fold(Work::default(), |sum, (work, _)| sum + *work);
    let by_itself_s: f64 = parts.iter().map(|(work, ns)| work.beside * ns).sum();
    let window = all.alone / all.beside;
    // The fastest memory is left out: with it this is what each waits for itself.
    let slow = parts[..parts.len() - 1].iter().scan((0.0, 0.0), |(alone, waited_s), (work, ns)| {
        *alone += work.alone;
        *waited_s += work.alone * ns;
        Some(all.alone * (*waited_s / *alone) / (window + all.alone / *alone - 1.0))
    });
    (slow.fold(0.0, f64::max) - by_itself_s).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const READS: usize = 20_000;

    /// Time of a read by the recurrence, ns: latencies by chance, `slow` of them the longer one.
    fn retired_ns(window: usize, slow: f64, ns: [f64; 2]) -> f64 {
        let (mut state, mut retired) = (0x2545_f491_4f6c_dd1d_u64, vec![0.0; window + READS]);
        for read in window..window + READS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let chance = f64::from((state >> 40) as u32) / f64::from(1_u32 << 24);
            let waits = if chance < slow { ns[1] } else { ns[0] };
            retired[read] = f64::max(retired[read - 1], retired[read - window] + waits);
        }
        retired[window + READS - 1] / READS as f64
    }

    /// Time of a read by the law, ns.
    fn law_ns(window: usize, slow: f64, ns: [f64; 2]) -> f64 {
        let part = |share: f64| Work { beside: share / window as f64, alone: share, ..Work::default() };
        let parts = [(part(1.0 - slow), ns[0]), (part(slow), ns[1])];
        parts.iter().map(|(work, ns)| work.beside * ns).sum::<f64>() + held_up_s(parts.into_iter())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_law_is_a_bound_of_the_recurrence_and_close_to_it(window in 1_usize..24, slow in 0.05..0.95, far in 1.0..5.0) {
            let ns = [100.0, 100.0 * far];
            let (law, exact) = (law_ns(window, slow, ns), retired_ns(window, slow, ns));
            prop_assert!(law <= exact * 1.03, "{} of {}", law, exact);
            prop_assert!(law >= exact * 0.75, "{} of {}", law, exact);
        }

        #[test]
        fn nobody_is_held_up_where_all_wait_alike(window in 1.0..24.0, share in 0.01..0.99, ns in 50.0..500.0) {
            let part = |share: f64| Work { beside: share / window, alone: share, ..Work::default() };
            let parts = [(part(share), ns), (part(1.0 - share), ns)];
            prop_assert!(held_up_s(parts.into_iter()) <= 1e-12 * ns);
        }

        #[test]
        fn one_read_at_a_time_waits_for_itself(share in 0.01..0.99, far in 1.0..5.0) {
            let part = |share: f64| Work { beside: share, alone: share, ..Work::default() };
            let parts = [(part(share), 100.0), (part(1.0 - share), 100.0 * far)];
            prop_assert!(held_up_s(parts.into_iter()) <= 1e-9);
        }
    }
}
