//! Which share of the lines touched comes from memory, by size of the cache before it.

use serde::{Deserialize, Serialize};

use crate::error::{Flaw, fraction};

/// A point of a miss-ratio curve: a last-level cache that all objects of the program share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissPoint {
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Share of the object's touched lines that comes from memory, 0 to 1, where touches are independent of each other.
    pub share: f64,
}

/// Share of touched lines that a cache of so many bytes lets through; between points straight over the logarithm of the
/// size, beyond them as at the nearest. `None` where the curve has no points.
pub fn share_let_through(curve: &[MissPoint], cache_bytes: u64) -> Option<f64> {
    let after = curve.partition_point(|point| point.cache_bytes < cache_bytes);
    let (Some(low), Some(high)) = (curve.get(after.saturating_sub(1)), curve.get(after).or(curve.last())) else {
        return None;
    };
    if high.cache_bytes <= low.cache_bytes {
        return Some(high.share);
    }
    let log = |bytes: u64| (bytes.max(1) as f64).log2();
    let part = (log(cache_bytes) - log(low.cache_bytes)) / (log(high.cache_bytes) - log(low.cache_bytes));
    let part = part.clamp(0.0, 1.0);
    Some(low.share * (1.0 - part) + high.share * part)
}

pub(crate) fn check(curve: &[MissPoint]) -> Result<(), Flaw> {
    for (index, point) in curve.iter().enumerate() {
        fraction("share", point.share).map_err(|flaw| flaw.within(&format!("miss_curve[{index}]")))?;
    }
    let ordered = curve.windows(2).all(|pair| pair[0].cache_bytes < pair[1].cache_bytes);
    if !ordered || curve.first().is_some_and(|point| point.cache_bytes == 0) {
        let problem = "its sizes do not rise from more than 0";
        return Err(Flaw::new("miss_curve", problem, "order its points by `cache_bytes`, each once"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curve(shares: &[f64]) -> Vec<MissPoint> {
        shares.iter().zip(20..).map(|(share, power)| MissPoint { cache_bytes: 1 << power, share: *share }).collect()
    }

    proptest! {
        #[test]
        fn a_curve_goes_through_its_points_and_stays_between_them(
            shares in prop::collection::vec(0.0f64..1.0, 1..9), at in 0usize..9, bytes in 1u64..1 << 40
        ) {
            let curve = curve(&shares);
            let point = curve[at % curve.len()];
            prop_assert_eq!(share_let_through(&curve, point.cache_bytes), Some(point.share));
            let share = share_let_through(&curve, bytes).unwrap_or(f64::NAN);
            let (low, high) = (shares.iter().copied().fold(1.0, f64::min), shares.iter().copied().fold(0.0, f64::max));
            prop_assert!((low - 1e-12..=high + 1e-12).contains(&share));
        }
    }

    #[test]
    fn no_points_say_nothing() {
        assert_eq!(share_let_through(&[], 1 << 20), None);
    }
}
