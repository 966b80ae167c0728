//! How far a share of samples may be off: Wilson's score interval.
//!
//! E. B. Wilson, *Probable inference, the law of succession, and statistical inference* (1927).

use tierloom_model::Share;

/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// Share of `part` among `whole` samples with its 95 % interval; all of 0 to 1 without samples.
pub(crate) fn share(part: f64, whole: f64) -> Share {
    if whole <= 0.0 {
        return Share { share: 0.0, low: 0.0, high: 1.0 };
    }
    let (share, square) = ((part / whole).clamp(0.0, 1.0), Z * Z);
    let middle = (share + square / (2.0 * whole)) / (1.0 + square / whole);
    let half = Z / (1.0 + square / whole) * (share * (1.0 - share) / whole + square / (4.0 * whole * whole)).sqrt();
    Share { share, low: (middle - half).clamp(0.0, share), high: (middle + half).clamp(share, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_published_value() {
        // 10 of 20: 0.299 to 0.701 (Newcombe 1998, method 3).
        let half = share(10.0, 20.0);
        assert!((half.low - 0.2993).abs() < 1e-3 && (half.high - 0.7007).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_share_and_shrinks(whole in 1u32..100_000, fraction in 0.0f64..=1.0) {
            let whole = f64::from(whole);
            let part = (whole * fraction).floor();
            let one = share(part, whole);
            prop_assert!(0.0 <= one.low && one.low <= one.share && one.share <= one.high && one.high <= 1.0);
            let more = share(part * 10.0, whole * 10.0);
            prop_assert!(more.high - more.low <= one.high - one.low + 1e-12);
        }
    }
}
