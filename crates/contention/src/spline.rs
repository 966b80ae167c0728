//! A rising curve through points: monotone piecewise cubic interpolation.
//!
//! Fritsch and Carlson, "Monotone Piecewise Cubic Interpolation", SIAM J. Numer. Anal. 17 (1980),
//! with the weighted harmonic mean of Fritsch and Butland (SIAM J. Sci. Stat. Comput. 5, 1984) for
//! the slopes: the curve goes through every point, is smooth, and never falls where the points
//! do not. Two points make a straight line.

/// Where the curve passes, and how steeply.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Knot {
    x: f64,
    y: f64,
    slope: f64,
}

/// A rising curve over `first x ..= last x`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spline {
    knots: Vec<Knot>,
}

impl Spline {
    /// Goes through `points`, of which there are two or more with growing x and y that never falls.
    pub(crate) fn new(points: &[[f64; 2]]) -> Self {
        let secants: Vec<f64> = points.windows(2).map(|p| (p[1][1] - p[0][1]) / (p[1][0] - p[0][0])).collect();
        let knots = (0..points.len())
            .map(|i| Knot { x: points[i][0], y: points[i][1], slope: slope(points, &secants, i) })
            .collect();
        Self { knots }
    }

    /// Height at `x`; the end points' heights outside.
    pub(crate) fn at(&self, x: f64) -> f64 {
        let after = self.knots.partition_point(|knot| knot.x <= x);
        match (after.checked_sub(1).map(|before| self.knots[before]), self.knots.get(after)) {
            (Some(left), Some(right)) => hermite(left, *right, x),
            (Some(last), None) => last.y,
            (None, Some(first)) => first.y,
            (None, None) => 0.0,
        }
    }
}

/// Slope at point `i`: flat where a neighbouring stretch is flat, else between both secants.
fn slope(points: &[[f64; 2]], secants: &[f64], i: usize) -> f64 {
    let last = points.len() - 1;
    if last == 1 {
        return secants[0];
    }
    let step = |k: usize| points[k + 1][0] - points[k][0];
    if i == 0 {
        return end_slope(step(0), step(1), secants[0], secants[1]);
    }
    if i == last {
        return end_slope(step(last - 1), step(last - 2), secants[last - 1], secants[last - 2]);
    }
    let (before, after) = (secants[i - 1], secants[i]);
    if before <= 0.0 || after <= 0.0 {
        return 0.0;
    }
    let (w_before, w_after) = (2.0 * step(i) + step(i - 1), step(i) + 2.0 * step(i - 1));
    (w_before + w_after) / (w_before / before + w_after / after)
}

/// Three-point slope at an end, held within 0 and three times the outer secant (Fritsch-Carlson).
fn end_slope(step: f64, next_step: f64, secant: f64, next_secant: f64) -> f64 {
    let slope = ((2.0 * step + next_step) * secant - step * next_secant) / (step + next_step);
    slope.clamp(0.0, 3.0 * secant)
}

fn hermite(left: Knot, right: Knot, x: f64) -> f64 {
    let width = right.x - left.x;
    let t = (x - left.x) / width;
    let rise = right.y - left.y;
    let (a, b) = (left.slope * width - rise, rise - right.slope * width);
    let bend = t * (1.0 - t) * (a * (1.0 - t) + b * t);
    (left.y + t * rise + bend).clamp(left.y, right.y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_through_its_points_and_holds_the_ends() {
        let points = [[0.0, 100.0], [50.0, 110.0], [80.0, 110.0], [100.0, 300.0]];
        let spline = Spline::new(&points);
        for [x, y] in points {
            assert!((spline.at(x) - y).abs() < 1e-9);
        }
        assert!((spline.at(65.0) - 110.0).abs() < 1e-9, "flat stretches stay flat");
        assert!((spline.at(200.0) - 300.0).abs() < 1e-9);
        assert!((spline.at(-1.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn two_points_make_a_line() {
        let spline = Spline::new(&[[0.0, 100.0], [10.0, 200.0]]);
        assert!((spline.at(2.5) - 125.0).abs() < 1e-12);
    }

    #[test]
    fn a_line_stays_a_line() {
        let spline = Spline::new(&[[0.0, 1.0], [1.0, 3.0], [4.0, 9.0], [5.0, 11.0]]);
        for x in [0.3, 0.9, 2.2, 4.7] {
            assert!((spline.at(x) - (1.0 + 2.0 * x)).abs() < 1e-12);
        }
    }
}
