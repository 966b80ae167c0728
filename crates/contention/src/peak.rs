//! Highest bandwidth by read fraction.

use tierloom_model::Peak;

/// Highest bandwidth at a read fraction (0 to 1 by bytes), GB/s.
///
/// Half duplex: reads and writes take turns on one bus, so the time per byte is the weighted mean
/// of both. Full duplex: the busier lane or the device behind them limits, with a soft corner.
pub fn peak_gb_s(peak: &Peak, read_fraction: f64) -> f64 {
    let r = read_fraction.clamp(0.0, 1.0);
    match *peak {
        Peak::Half { read_gb_s, write_gb_s } => 1.0 / (r / read_gb_s + (1.0 - r) / write_gb_s),
        Peak::Full { read_gb_s, write_gb_s, combined_gb_s, sharpness } => {
            let limits = [r / read_gb_s, (1.0 - r) / write_gb_s, 1.0 / combined_gb_s];
            1.0 / soft_max(limits, sharpness)
        }
    }
}

/// `(Σ x^q)^(1/q)`, taken relative to the largest term so that no power under- or overflows.
fn soft_max(terms: [f64; 3], q: f64) -> f64 {
    let largest = terms.into_iter().fold(0.0, f64::max);
    let sum: f64 = terms.into_iter().map(|x| (x / largest).powf(q)).sum();
    largest * sum.powf(1.0 / q)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Peak = Peak::Full { read_gb_s: 27.1, write_gb_s: 23.4, combined_gb_s: 54.5, sharpness: 4.5 };

    #[test]
    fn half_duplex_is_the_weighted_harmonic_mean() {
        let peak = Peak::Half { read_gb_s: 200.0, write_gb_s: 100.0 };
        assert!((peak_gb_s(&peak, 1.0) - 200.0).abs() < 1e-12);
        assert!((peak_gb_s(&peak, 0.0) - 100.0).abs() < 1e-12);
        assert!((peak_gb_s(&peak, 0.5) - 400.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn full_duplex_carries_more_than_either_lane_when_mixed() {
        assert!(peak_gb_s(&FULL, 0.5) > 38.0);
        assert!(peak_gb_s(&FULL, 1.0) <= 27.1);
        assert!(peak_gb_s(&FULL, 0.0) <= 23.4);
    }

    #[test]
    fn a_sharp_corner_does_not_overflow() {
        let sharp = Peak::Full { read_gb_s: 27.1, write_gb_s: 23.4, combined_gb_s: 54.5, sharpness: 5000.0 };
        assert!((peak_gb_s(&sharp, 1.0) - 27.1).abs() < 0.1);
    }
}
