//! Percentiles over repeated windows, and which of them is the figure.
//!
//! Whatever else a machine does while it is measured adds latency and takes bandwidth, never the
//! other way round. So the figure is not the mean but the quiet tenth: the 10th percentile of
//! latency, the 90th of bandwidth. One lucky window does not decide, as it would with the best, and
//! the spread is told beside it.

use serde::Serialize;

/// Order statistics of one quantity over repeated windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// Windows.
    pub count: usize,
    /// Least.
    pub min: f64,
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Greatest.
    pub max: f64,
}

impl Percentiles {
    /// Of at least one value; the percentiles between two values are interpolated.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| quantile(&values, share);
        Self { count: values.len(), min: at(0.0), p10: at(0.1), p50: at(0.5), p90: at(0.9), max: at(1.0) }
    }

    /// Width from the 10th to the 90th percentile as a share of the median.
    pub fn spread(&self) -> f64 {
        (self.p90 - self.p10) / self.p50
    }

    /// For a figure's `how`: what was taken, and the rest of the distribution.
    pub fn words(&self, unit: &str) -> String {
        let Self { count, min, p10, p50, p90, max } = self;
        format!(
            "{count} windows: min {min:.2}, 10 % {p10:.2}, median {p50:.2}, 90 % {p90:.2}, max {max:.2} {unit}; spread {:.0} %",
            100.0 * self.spread()
        )
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len().saturating_sub(1)) as f64;
    let (below, above) = (place.floor(), place.ceil());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the length of a slice")]
    let value = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    value(below) + (value(above) - value(below)) * (place - below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_eleven_values_are_those_values() {
        let all = Percentiles::of((0..=10).rev().map(f64::from).collect());
        assert_eq!((all.min, all.p10, all.p50, all.p90, all.max), (0.0, 1.0, 5.0, 9.0, 10.0));
        assert!((all.spread() - 1.6).abs() < 1e-12);
    }

    #[test]
    fn one_value_is_every_percentile() {
        let one = Percentiles::of(vec![3.5]);
        assert_eq!((one.count, one.min, one.p50, one.max, one.spread()), (1, 3.5, 3.5, 3.5, 0.0));
    }
}
