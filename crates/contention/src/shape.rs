//! Latency above idle by utilisation, for fitted forms.

use tierloom_model::Shape;

/// Latency above idle at utilisation `u` of the peak, ns; infinite from `u = 1` on where the form
/// has a wall there.
///
/// Both forms have five parameters with the idle latency and the peak; which one fits better
/// depends on the machine, see [`crate::fit_curve`].
pub fn excess_ns(shape: &Shape, u: f64) -> f64 {
    if u <= 0.0 {
        return 0.0;
    }
    match *shape {
        Shape::Knee { linear_ns, wait_ns, exponent } => linear_ns * u + wall(wait_ns, u, exponent, 1.0 - u),
        Shape::Power { rise_ns, exponent, wall: steepness } => {
            wall(rise_ns, u, exponent, (1.0 - u).max(0.0).powf(steepness))
        }
    }
}

/// `height · u^exponent / room`, with the limits where there is no height or no room.
fn wall(height: f64, u: f64, exponent: f64, room: f64) -> f64 {
    if height <= 0.0 {
        return 0.0;
    }
    if room <= 0.0 { f64::INFINITY } else { height * u.powf(exponent) / room }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_without_wait_has_no_wall() {
        let flat = Shape::Knee { linear_ns: 20.0, wait_ns: 0.0, exponent: 1.5 };
        assert!((excess_ns(&flat, 1.0) - 20.0).abs() < 1e-12);
    }

    #[test]
    fn a_power_has_its_wall_at_the_peak() {
        let shape = Shape::Power { rise_ns: 30.0, exponent: 2.0, wall: 0.5 };
        assert!(excess_ns(&shape, 0.0).abs() < 1e-12);
        assert!((excess_ns(&shape, 0.75) - 30.0 * 0.5625 / 0.5).abs() < 1e-9);
        assert!(excess_ns(&shape, 1.0).is_infinite());
    }
}
