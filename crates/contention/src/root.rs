//! The root of an increasing function between two bounds.
//!
//! Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear
//! function without using derivatives", Advances in Engineering Software 28 (1997): inverse quadratic
//! interpolation through the last three points where they lie so that it can be trusted, else a
//! halving. Eight to twelve calls on the smooth functions of this house.

/// Two bounds with the function's values there: not above zero at the lower one, not below it at the
/// upper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// Lower bound.
    pub low: f64,
    /// Value at the lower bound, finite and not above 0.
    pub at_low: f64,
    /// Upper bound.
    pub high: f64,
    /// Value at the upper bound, finite and not below 0.
    pub at_high: f64,
}

/// Where the function was asked, and its value there.
type Point = (f64, f64);

/// Steps after which even halvings alone have reached the last bit of any bracket.
const STEPS: usize = 2100;

/// Finds where an increasing `function` crosses zero, to `tolerance` (1e-14 or more) relative to the
/// answer; both bounds are above 0.
///
/// The answer lies between the bounds. A function that is nowhere zero (a jump) yields the place
/// where its sign changes.
pub fn increasing_root(bracket: Bracket, tolerance: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut newest, mut other): (Point, Point) = ((bracket.low, bracket.at_low), (bracket.high, bracket.at_high));
    let mut step = secant(newest, other);
    for _ in 0..STEPS {
        let best = if newest.1.abs() < other.1.abs() { newest } else { other };
        let least = tolerance * best.0 / (other.0 - newest.0).abs();
        if best.1 == 0.0 || least.is_nan() || least > 0.5 {
            return best.0;
        }
        let x = newest.0 + step.clamp(least, 1.0 - least) * (other.0 - newest.0);
        let y = function(x);
        let mut oldest = newest;
        if (y > 0.0) != (newest.1 > 0.0) {
            (oldest, other) = (other, newest);
        }
        newest = (x, y);
        step = next_step(newest, other, oldest);
    }
    newest.0
}

/// Where the straight line through two points crosses zero, as a share of the way between them.
fn secant(from: Point, to: Point) -> f64 {
    from.1 / (from.1 - to.1)
}

/// Share of the way from the newest point to the one on the other side of zero.
fn next_step(newest: Point, other: Point, oldest: Point) -> f64 {
    let ((a, y_a), (b, y_b), (c, y_c)) = (newest, other, oldest);
    let (xi, phi) = ((a - b) / (c - b), (y_a - y_b) / (y_c - y_b));
    if phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi {
        y_a / (y_b - y_a) * y_c / (y_b - y_c) + (c - a) / (b - a) * y_a / (y_c - y_a) * y_b / (y_c - y_b)
    } else {
        0.5
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The root, and how often the function was called for it.
    fn solve(low: f64, high: f64, function: impl Fn(f64) -> f64) -> (f64, u32) {
        let calls = Cell::new(0);
        let counted = |x: f64| {
            calls.set(calls.get() + 1);
            function(x)
        };
        let bracket = Bracket { low, at_low: function(low), high, at_high: function(high) };
        (increasing_root(bracket, 1e-12, counted), calls.get())
    }

    #[test]
    fn finds_roots_of_smooth_and_steep_functions() {
        assert!((solve(0.1, 4.0, |x| x * x - 2.0).0 - 2f64.sqrt()).abs() < 1e-11);
        assert!((solve(1.0 + 1e-9, 100.0, |x| x - 3.0 / (x - 1.0)).0 - 2.302_775_637_731_995).abs() < 1e-11);
        assert!((solve(0.5, 4.0, |x| x.powi(41) - 0.5).0 - 0.5f64.powf(1.0 / 41.0)).abs() < 1e-11);
    }

    #[test]
    fn finds_a_root_at_a_bound() {
        assert!((solve(1.0, 4.0, |x| x - 1.0).0 - 1.0).abs() < 1e-11);
        assert!((solve(1.0, 4.0, |x| x - 4.0).0 - 4.0).abs() < 1e-11);
    }

    #[test]
    fn finds_the_jump_of_a_step() {
        assert!((solve(0.1, 1.0, |x| if x < 0.3 { -1.0 } else { 1.0 }).0 - 0.3).abs() < 1e-11);
    }

    #[test]
    fn takes_few_calls_on_smooth_functions_and_not_many_on_others() {
        assert!(solve(0.1, 4.0, |x| x * x - 2.0).1 <= 10);
        assert!(solve(1.0, 1000.0, |x| x - 0.3 - 10.0 / x).1 <= 12);
        assert!(solve(0.5, 4.0, |x| x.powi(41) - 0.5).1 <= 25);
        assert!(solve(0.1, 1.0, |x| if x < 0.3 { -1.0 } else { 1.0 }).1 <= 45);
    }

    #[test]
    fn ends_where_the_answer_is_far_above_the_lower_bound() {
        assert!((solve(1e-9, 1e6, |x| x - 123.456).0 - 123.456).abs() < 1e-9);
    }
}
