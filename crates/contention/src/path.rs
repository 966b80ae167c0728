//! One path's load, compiled: latency by bandwidth and read fraction.
//!
//! Points are latencies of the path as a core sees them, so they hold as they are, but for two
//! things: nothing is faster than the path's idle latency, and below a first point that is not at
//! rest the curve comes up from there. Between two read fractions, the time that a byte takes at the
//! peak is interpolated (on the published curves a little closer than the peak itself, 2.7 % against
//! 2.9 % for a fraction left out) and latency is taken at equal *utilisation*: at equal bandwidth a
//! write-heavy curve would already be past its peak where a read-heavy one is still flat. Outside,
//! the nearest curve holds. A form gives the rise above idle by itself.

use tierloom_model::{Curve, Load, Peak, Shape};

use crate::error::ContentionError;
use crate::peak::peak_gb_s;
use crate::shape::excess_ns;
use crate::spline::Spline;

/// Rounding by which utilisation may pass 1 at the very peak.
const AT_PEAK: f64 = 1.0 + 1e-9;

/// Share of the idle latency below which a curve's first point cannot be of the same path (assumed:
/// noise and different idle methods stay within a quarter, and a CXL device is at most two thirds of
/// its path).
const LEAST_SHARE: f64 = 0.7;

/// Loaded latency of one path, ready to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct PathLoad {
    idle_ns: f64,
    rise: Rise,
}

#[derive(Debug, Clone, PartialEq)]
enum Rise {
    Points(Vec<Compiled>),
    Form { peak: Peak, shape: Shape },
}

/// A curve of points: latency less the path's idle latency, by utilisation.
#[derive(Debug, Clone, PartialEq)]
struct Compiled {
    read_fraction: f64,
    peak_gb_s: f64,
    rise: Spline,
}

/// A [`PathLoad`] at one read fraction.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a> {
    peak_gb_s: f64,
    rise: SliceRise<'a>,
}

#[derive(Debug, Clone, Copy)]
enum SliceRise<'a> {
    One(&'a Spline),
    /// Weight of the second.
    Two(&'a Spline, &'a Spline, f64),
    Form(&'a Shape),
}

impl PathLoad {
    /// Compiles a path's load; `idle_ns` is the path's latency at rest.
    ///
    /// # Errors
    /// [`ContentionError::BadLoad`] when a curve has fewer than two points, does not rise, or
    /// there is none: only possible for loads that were built in code.
    pub fn new(load: &Load, idle_ns: f64) -> Result<Self, ContentionError> {
        let rise = match load {
            Load::Points(curves) => Rise::Points(compile_family(curves, idle_ns)?),
            Load::Form(form) => Rise::Form { peak: form.peak, shape: form.shape },
        };
        Ok(Self { idle_ns, rise })
    }

    /// Latency at rest, ns.
    pub fn idle_ns(&self) -> f64 {
        self.idle_ns
    }

    /// Highest bandwidth at a read fraction, GB/s.
    pub fn peak_gb_s(&self, read_fraction: f64) -> f64 {
        self.at(read_fraction).peak_gb_s
    }

    /// Latency at a bandwidth and read fraction, ns; infinite beyond the peak.
    pub fn latency_ns(&self, gb_s: f64, read_fraction: f64) -> f64 {
        self.idle_ns + self.at(read_fraction).excess_ns(gb_s)
    }

    /// The load at one read fraction, for asking it many times.
    pub fn at(&self, read_fraction: f64) -> Slice<'_> {
        match &self.rise {
            Rise::Form { peak, shape } => {
                Slice { peak_gb_s: peak_gb_s(peak, read_fraction), rise: SliceRise::Form(shape) }
            }
            Rise::Points(curves) => slice_family(curves, read_fraction),
        }
    }
}

impl Slice<'_> {
    /// Highest bandwidth, GB/s.
    pub fn peak_gb_s(&self) -> f64 {
        self.peak_gb_s
    }

    /// Latency above idle at a bandwidth, ns; infinite beyond the peak.
    pub fn excess_ns(&self, gb_s: f64) -> f64 {
        let u = gb_s / self.peak_gb_s;
        if u > AT_PEAK {
            return f64::INFINITY;
        }
        match self.rise {
            SliceRise::One(spline) => spline.at(u).max(0.0),
            SliceRise::Two(lower, upper, weight) => (lower.at(u) * (1.0 - weight) + upper.at(u) * weight).max(0.0),
            SliceRise::Form(shape) => excess_ns(shape, u),
        }
    }
}

fn compile_family(curves: &[Curve], idle_ns: f64) -> Result<Vec<Compiled>, ContentionError> {
    if curves.is_empty() {
        return Err(ContentionError::bad("points", "there is no curve", "give at least one curve"));
    }
    if curves.windows(2).any(|pair| pair[0].read_fraction >= pair[1].read_fraction) {
        return Err(ContentionError::bad("points", "read fractions do not grow", "sort the curves by read fraction"));
    }
    curves.iter().map(|curve| Compiled::new(curve, idle_ns)).collect()
}

fn slice_family(curves: &[Compiled], read_fraction: f64) -> Slice<'_> {
    let after = curves.partition_point(|curve| curve.read_fraction <= read_fraction);
    let (lower, upper) = (&curves[after.saturating_sub(1)], &curves[after.min(curves.len() - 1)]);
    let span = upper.read_fraction - lower.read_fraction;
    if span <= 0.0 {
        return Slice { peak_gb_s: lower.peak_gb_s, rise: SliceRise::One(&lower.rise) };
    }
    let weight = (read_fraction - lower.read_fraction) / span;
    let peak_gb_s = 1.0 / ((1.0 - weight) / lower.peak_gb_s + weight / upper.peak_gb_s);
    Slice { peak_gb_s, rise: SliceRise::Two(&lower.rise, &upper.rise, weight) }
}

impl Compiled {
    fn new(curve: &Curve, idle_ns: f64) -> Result<Self, ContentionError> {
        let bad = |problem: String, hint: &str| {
            ContentionError::bad(format!("curve at read fraction {}", curve.read_fraction), problem, hint)
        };
        let (&[[first_gb_s, first_ns], .., [peak_gb_s, _]], true) = (curve.points.as_slice(), rises(&curve.points))
        else {
            let problem = "it needs two points or more, of which neither bandwidth nor latency falls".to_owned();
            return Err(bad(problem, "sort by bandwidth and drop the points past the peak"));
        };
        if first_ns < LEAST_SHARE * idle_ns {
            let problem = format!("it starts at {first_ns} ns, far below the path's idle latency of {idle_ns} ns");
            return Err(bad(problem, "was it taken at the device? add the time from the core to there and back"));
        }
        let rest = (first_gb_s > 0.0).then_some([0.0, first_ns.min(idle_ns)]);
        let points = rest.iter().chain(&curve.points).map(|[gb_s, ns]| [gb_s / peak_gb_s, ns - idle_ns]);
        let rise = Spline::new(&points.collect::<Vec<_>>());
        Ok(Self { read_fraction: curve.read_fraction, peak_gb_s, rise })
    }
}

fn rises(points: &[[f64; 2]]) -> bool {
    let numbers = points.iter().flatten().all(|x| x.is_finite() && *x >= 0.0);
    numbers && points.windows(2).all(|pair| pair[1][0] > pair[0][0] && pair[1][1] >= pair[0][1])
}

#[cfg(test)]
mod tests {
    use tierloom_model::{Kind, Origin};

    use super::*;

    fn curve(read_fraction: f64, points: &[[f64; 2]]) -> Curve {
        let origin = Origin { kind: Kind::Assumed, source: "test".to_owned(), how: String::new() };
        Curve { read_fraction, points: points.to_vec(), origin }
    }

    fn path(curves: Vec<Curve>, idle_ns: f64) -> PathLoad {
        PathLoad::new(&Load::Points(curves), idle_ns).unwrap()
    }

    #[test]
    fn below_its_first_point_a_curve_comes_up_from_idle() {
        let path = path(vec![curve(1.0, &[[10.0, 120.0], [20.0, 150.0]])], 100.0);
        assert!((path.latency_ns(0.0, 1.0) - 100.0).abs() < 1e-12);
        assert!((path.latency_ns(10.0, 1.0) - 120.0).abs() < 1e-12);
        assert!(path.latency_ns(5.0, 1.0) > 100.0 && path.latency_ns(5.0, 1.0) < 120.0);
    }

    #[test]
    fn nothing_is_faster_than_idle_and_higher_points_hold() {
        let path = path(vec![curve(1.0, &[[1.0, 80.0], [10.0, 90.0], [20.0, 150.0]])], 100.0);
        assert!((path.latency_ns(1.0, 1.0) - 100.0).abs() < 1e-12);
        assert!((path.latency_ns(20.0, 1.0) - 150.0).abs() < 1e-12);
    }

    #[test]
    fn between_read_fractions_latency_is_mixed_at_equal_utilisation() {
        let (mixed, read) = (curve(0.5, &[[0.0, 100.0], [40.0, 300.0]]), curve(1.0, &[[0.0, 100.0], [80.0, 200.0]]));
        let path = path(vec![mixed, read], 100.0);
        let peak_gb_s = 1.0 / (0.5 / 40.0 + 0.5 / 80.0);
        assert!((path.peak_gb_s(0.75) - peak_gb_s).abs() < 1e-12);
        assert!((path.latency_ns(peak_gb_s / 2.0, 0.75) - 175.0).abs() < 1e-12);
    }

    #[test]
    fn outside_its_read_fractions_the_nearest_curve_holds() {
        let path =
            path(vec![curve(0.5, &[[0.0, 100.0], [40.0, 300.0]]), curve(0.8, &[[0.0, 100.0], [80.0, 200.0]])], 100.0);
        for (outside, nearest) in [(0.0, 0.5), (1.0, 0.8)] {
            assert!((path.latency_ns(20.0, outside) - path.latency_ns(20.0, nearest)).abs() < 1e-12);
        }
    }
}
