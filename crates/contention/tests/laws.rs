//! What holds for every load: latency only grows with traffic, and nothing passes its peak.

use proptest::prelude::*;
use tierloom_contention::{PathLoad, operating_point};
use tierloom_model::{Curve, Form, Kind, Load, Origin, Peak, Shape};

fn origin() -> Origin {
    Origin { kind: Kind::Assumed, source: "test".to_owned(), how: String::new() }
}

/// A curve that rises by the given steps, from rest or from its first step on.
fn curve(read_fraction: f64, from_rest: bool, steps: &[(f64, f64)]) -> Curve {
    let mut point = [0.0, 90.0];
    let mut points = if from_rest { vec![point] } else { Vec::new() };
    for (gb_s, ns) in steps {
        point = [point[0] + gb_s, point[1] + ns];
        points.push(point);
    }
    Curve { read_fraction, points, origin: origin() }
}

prop_compose! {
    fn points()(
        steps in prop::collection::vec(prop::collection::vec((0.1..80.0, 0.0..200.0), 2..9), 1..4),
        from_rest: bool,
    ) -> Load {
        let fractions = [0.3, 0.66, 1.0];
        Load::Points(steps.iter().zip(fractions).map(|(steps, r)| curve(r, from_rest, steps)).collect())
    }
}

prop_compose! {
    fn form()(
        read_gb_s in 5.0..500.0, write_gb_s in 5.0..500.0, combined_gb_s in 5.0..900.0, sharpness in 1.0..9.0,
        full: bool, knee: bool, height in 0.0..200.0, linear_ns in 0.0..80.0, exponent in 1.0..6.0, wall in 0.05..2.0,
    ) -> Load {
        let peak = if full {
            Peak::Full { read_gb_s, write_gb_s, combined_gb_s, sharpness }
        } else {
            Peak::Half { read_gb_s, write_gb_s }
        };
        let shape = if knee {
            Shape::Knee { linear_ns, wait_ns: height, exponent }
        } else {
            Shape::Power { rise_ns: height, exponent, wall }
        };
        Load::Form(Form { peak, shape, origin: origin() })
    }
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![points(), form()]
}

proptest! {
    #[test]
    fn latency_starts_at_idle_and_never_falls(load in load(), idle_ns in 50.0..125.0, r in 0.0..1.0) {
        let path = PathLoad::new(&load, idle_ns).unwrap();
        let peak = path.peak_gb_s(r);
        prop_assert!(peak > 0.0);
        let at_rest_ns = path.latency_ns(0.0, r);
        prop_assert!(at_rest_ns >= idle_ns);
        prop_assert!(at_rest_ns < idle_ns + 1e-9 || at_rest_ns < 90.0 + 1e-9, "only a curve's own point at rest is above");
        let ladder: Vec<f64> = (0..=400).map(|step| path.latency_ns(peak * f64::from(step) / 400.0, r)).collect();
        prop_assert!(ladder.windows(2).all(|pair| pair[1] >= pair[0] * (1.0 - 1e-12)), "{ladder:?}");
        prop_assert!(path.latency_ns(peak * 1.001, r).is_infinite());
    }

    /// Of points this holds along one read fraction only: between fractions they say what was measured.
    #[test]
    fn more_reads_or_writes_never_pass_sooner_through_a_form(
        load in form(), read in 0.0..50.0, write in 0.0..50.0, more in 0.1..50.0,
    ) {
        let path = PathLoad::new(&load, 100.0).unwrap();
        let fullness = |read: f64, write: f64| (read + write) / path.peak_gb_s(read / (read + write).max(1e-300));
        prop_assert!(fullness(read + more, write) >= fullness(read, write) * (1.0 - 1e-12));
        prop_assert!(fullness(read, write + more) >= fullness(read, write) * (1.0 - 1e-12));
    }

    #[test]
    fn the_peak_lies_between_its_neighbours(load in points(), r in 0.3..1.0) {
        let path = PathLoad::new(&load, 90.0).unwrap();
        let Load::Points(curves) = &load else { unreachable!() };
        let reaches = curves.iter().map(|curve| curve.points[curve.points.len() - 1][0]);
        let (low, high) = reaches.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        prop_assert!(path.peak_gb_s(r) >= low * (1.0 - 1e-12) && path.peak_gb_s(r) <= high * (1.0 + 1e-12));
    }

    #[test]
    fn a_closed_loop_obeys_littles_law(load in load(), idle_ns in 50.0..125.0, r in 0.0..1.0, lines in 1.0..4096.0) {
        let path = PathLoad::new(&load, idle_ns).unwrap();
        let point = operating_point(&path, r, lines, f64::INFINITY);
        prop_assert!((point.gb_s * point.latency_ns / (64.0 * lines) - 1.0).abs() < 1e-12);
        prop_assert!(point.gb_s <= path.peak_gb_s(r));
        // The curve, with its wall at the peak, passes through the point.
        let (below, above) = (point.gb_s * (1.0 - 1e-8), point.gb_s * (1.0 + 1e-8));
        let rounding_ns = 1e-9 * point.latency_ns;
        prop_assert!(path.latency_ns(below, r) <= point.latency_ns + rounding_ns);
        prop_assert!(path.latency_ns(above, r) >= point.latency_ns - rounding_ns);
    }
}
