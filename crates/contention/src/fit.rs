//! Fitted forms for published points: a curve's five parameters, and a peak by read fraction.
//!
//! Errors are relative: a nanosecond matters more at rest than at the wall. Of a form, everything
//! that enters linearly is solved for exactly (variable projection: Golub and Pereyra, SIAM J.
//! Numer. Anal. 10, 1973); only the peak and the exponents are searched, from the best points of a
//! grid. No randomness: the same points give the same fit.

use tierloom_model::{Peak, Shape};

use crate::error::ContentionError;
use crate::least_squares::fit_to_one;
use crate::minimise::minimise;
use crate::peak::peak_gb_s;
use crate::shape::excess_ns;

/// How far a fit is from the points, relative to each point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitError {
    /// Mean of the absolute relative errors.
    pub mean: f64,
    /// Largest absolute relative error.
    pub max: f64,
}

/// A loaded-latency curve at one read fraction, as a form.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveFit {
    /// Latency at rest, ns.
    pub idle_ns: f64,
    /// Bandwidth of the wall, GB/s; a little above the last point.
    pub peak_gb_s: f64,
    /// Rise towards the wall.
    pub shape: Shape,
    /// Distance from the points.
    pub error: FitError,
}

/// A peak by read fraction, as a form.
#[derive(Debug, Clone, PartialEq)]
pub struct PeakFit {
    /// Half or full duplex, whichever is closer.
    pub peak: Peak,
    /// Distance from the points.
    pub error: FitError,
}

/// Starts that are refined of the grid's best.
const STARTS: usize = 4;

/// Full duplex has four parameters and half duplex two; it must be this much closer in the mean to
/// be believed (assumed: the scatter of published peaks is about 1 %).
const FULL_MUST_GAIN: f64 = 0.01;

impl CurveFit {
    /// Latency at a bandwidth, ns; infinite from the wall on.
    pub fn latency_ns(&self, gb_s: f64) -> f64 {
        self.idle_ns + excess_ns(&self.shape, gb_s / self.peak_gb_s)
    }
}

impl FitError {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let errors: Vec<f64> = pairs.map(|(fitted, given)| (fitted / given - 1.0).abs()).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        Self { mean, max: errors.into_iter().fold(0.0, f64::max) }
    }

    /// What a search makes small: the mean, and half as much the worst point.
    fn badness(&self) -> f64 {
        self.mean + self.max / 2.0
    }
}

/// Fits both forms of [`Shape`] to `[GB/s, ns]` points and returns the closer one.
///
/// The points need not be sorted, nor rise strictly: neighbours at the wall often do not.
///
/// ```
/// let published = [[1.6, 109.2], [33.0, 114.8], [77.0, 123.2], [160.0, 141.0], [237.0, 278.3]];
/// let fit = tierloom_contention::fit_curve(&published).unwrap();
/// assert!(fit.error.max < 0.01 && fit.peak_gb_s > 237.0);
/// ```
///
/// # Errors
/// [`ContentionError::BadLoad`] for fewer than four points or numbers that are not positive.
pub fn fit_curve(points: &[[f64; 2]]) -> Result<CurveFit, ContentionError> {
    let good = |[gb_s, ns]: &[f64; 2]| gb_s.is_finite() && *gb_s >= 0.0 && ns.is_finite() && *ns > 0.0;
    let reach = points.iter().map(|point| point[0]).fold(0.0, f64::max);
    if points.len() < 4 || !points.iter().all(good) || reach <= 0.0 {
        let problem = "a fit needs four points or more of [GB/s, ns], none negative, not all at rest";
        return Err(ContentionError::bad("points", problem, "check for missing columns and signs"));
    }
    let knee = search(&[GAP, EXPONENT_ABOVE_1], |x| knee(points, reach, x));
    let power = search(&[GAP, EXPONENT, WALL], |x| power(points, reach, x));
    let fits = [knee, power].into_iter().flatten();
    fits.min_by(|a, b| a.error.mean.total_cmp(&b.error.mean))
        .ok_or_else(|| ContentionError::bad("points", "no form fits", "check that latency rises with bandwidth"))
}

/// A searched parameter, by its logarithm: least, most, and how many grid steps. Outside, forms
/// degenerate: a wall that the points never come near, or a step at rest.
#[derive(Debug, Clone, Copy)]
struct Axis(f64, f64, u32);

/// The wall's distance above the last point, relative to it: a millionth to 1.
const GAP: Axis = Axis(-13.8, 0.0, 24);
/// How much a knee's exponent is above 1: about 0.02 to 50.
const EXPONENT_ABOVE_1: Axis = Axis(-4.0, 3.9, 17);
/// A power's exponent: 0.3 to 7.
const EXPONENT: Axis = Axis(-1.2, 2.0, 9);
/// A power's wall: 0.02 to 4.
const WALL: Axis = Axis(-3.9, 1.4, 11);

/// The best fit over a grid of parameters, refined from the grid's best few.
fn search(axes: &[Axis], fit: impl Fn(&[f64]) -> Option<CurveFit>) -> Option<CurveFit> {
    let inside = |x: &[f64]| x.iter().zip(axes).all(|(x, axis)| (axis.0..=axis.1).contains(x));
    let fit = |x: &[f64]| if inside(x) { fit(x) } else { None };
    let badness = |x: &[f64]| fit(x).map_or(f64::INFINITY, |fit| fit.error.badness());
    let mut starts: Vec<(f64, Vec<f64>)> = grid(axes).into_iter().map(|x| (badness(&x), x)).collect();
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let steps: Vec<f64> = axes.iter().map(Axis::step).collect();
    let refined = starts.iter().take(STARTS).filter_map(|(_, x)| fit(&minimise(x, &steps, badness)));
    refined.min_by(|a, b| a.error.badness().total_cmp(&b.error.badness()))
}

impl Axis {
    fn step(&self) -> f64 {
        (self.1 - self.0) / f64::from(self.2 - 1)
    }
}

/// Every combination of the axes' steps.
fn grid(axes: &[Axis]) -> Vec<Vec<f64>> {
    axes.iter().fold(vec![Vec::new()], |grid, axis| {
        let steps = (0..axis.2).map(|step| axis.0 + f64::from(step) * axis.step());
        steps.flat_map(|x| grid.iter().map(move |point| [point.as_slice(), &[x]].concat())).collect()
    })
}

/// `L0 + linear·u + wait·u^e/(1-u)`; searched are the peak and `e`.
fn knee(points: &[[f64; 2]], reach: f64, x: &[f64]) -> Option<CurveFit> {
    let (peak_gb_s, exponent) = (reach * (1.0 + x[0].exp()), 1.0 + x[1].exp());
    let wall = Shape::Knee { linear_ns: 0.0, wait_ns: 1.0, exponent };
    let row = |[gb_s, ns]: &[f64; 2]| [1.0 / ns, gb_s / peak_gb_s / ns, excess_ns(&wall, gb_s / peak_gb_s) / ns];
    let [idle_ns, linear_ns, wait_ns] = fit_to_one(&points.iter().map(row).collect::<Vec<_>>())?;
    CurveFit::new(points, idle_ns, peak_gb_s, Shape::Knee { linear_ns, wait_ns, exponent })
}

/// `L0 + rise·u^b/(1-u)^c`; searched are the peak, `b` and `c`.
fn power(points: &[[f64; 2]], reach: f64, x: &[f64]) -> Option<CurveFit> {
    let (peak_gb_s, exponent, wall) = (reach * (1.0 + x[0].exp()), x[1].exp(), x[2].exp());
    let unit = Shape::Power { rise_ns: 1.0, exponent, wall };
    let row = |[gb_s, ns]: &[f64; 2]| [1.0 / ns, excess_ns(&unit, gb_s / peak_gb_s) / ns];
    let [idle_ns, rise_ns] = fit_to_one(&points.iter().map(row).collect::<Vec<_>>())?;
    CurveFit::new(points, idle_ns, peak_gb_s, Shape::Power { rise_ns, exponent, wall })
}

impl CurveFit {
    fn new(points: &[[f64; 2]], idle_ns: f64, peak_gb_s: f64, shape: Shape) -> Option<Self> {
        let mut fit = Self { idle_ns, peak_gb_s, shape, error: FitError { mean: 0.0, max: 0.0 } };
        fit.error = FitError::of(points.iter().map(|[gb_s, ns]| (fit.latency_ns(*gb_s), *ns)));
        (idle_ns > 0.0).then_some(fit)
    }
}

/// Fits a peak to `[read fraction, GB/s]` points, half and full duplex, and returns the closer one;
/// half duplex unless full duplex is clearly closer.
///
/// # Errors
/// [`ContentionError::BadLoad`] for fewer than two points or numbers out of range.
pub fn fit_peak(points: &[[f64; 2]]) -> Result<PeakFit, ContentionError> {
    let good = |[r, gb_s]: &[f64; 2]| (0.0..=1.0).contains(r) && gb_s.is_finite() && *gb_s > 0.0;
    if points.len() < 2 || !points.iter().all(good) {
        let problem = "a peak needs two points or more of [read fraction 0 to 1, GB/s above 0]";
        return Err(ContentionError::bad("peak", problem, "write for example [0.66, 39.2]"));
    }
    let half = half_duplex(points);
    let full = (points.len() >= 5).then(|| full_duplex(points));
    match (half, full) {
        (Some(half), Some(full)) if full.error.mean < half.error.mean - FULL_MUST_GAIN => Ok(full),
        (Some(half), _) => Ok(half),
        (None, Some(full)) => Ok(full),
        (None, None) => Err(ContentionError::bad("peak", "half duplex needs two read fractions", "add a mix")),
    }
}

impl PeakFit {
    fn new(points: &[[f64; 2]], peak: Peak) -> Self {
        Self { peak, error: FitError::of(points.iter().map(|[r, gb_s]| (peak_gb_s(&peak, *r), *gb_s))) }
    }
}

/// Linear in the reciprocals of both peaks.
fn half_duplex(points: &[[f64; 2]]) -> Option<PeakFit> {
    let rows: Vec<[f64; 2]> = points.iter().map(|[r, gb_s]| [r * gb_s, (1.0 - r) * gb_s]).collect();
    let [per_read, per_write] = fit_to_one(&rows)?;
    let peak = Peak::Half { read_gb_s: 1.0 / per_read, write_gb_s: 1.0 / per_write };
    (per_read > 0.0 && per_write > 0.0).then(|| PeakFit::new(points, peak))
}

fn full_duplex(points: &[[f64; 2]]) -> PeakFit {
    let most = points.iter().map(|point| point[1]).fold(0.0, f64::max);
    let peak = |x: &[f64]| Peak::Full {
        read_gb_s: x[0].exp(),
        write_gb_s: x[1].exp(),
        combined_gb_s: x[2].exp(),
        sharpness: 1.0 + x[3].exp(),
    };
    let start = [(most * 0.7).ln(), (most * 0.7).ln(), (most * 1.3).ln(), 1.2];
    let badness = |x: &[f64]| PeakFit::new(points, peak(x)).error.badness();
    let once = minimise(&start, &[0.2, 0.2, 0.2, 0.5], badness);
    PeakFit::new(points, peak(&minimise(&once, &[0.05, 0.05, 0.05, 0.2], badness)))
}
