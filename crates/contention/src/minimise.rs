//! The minimum of a function of a few variables, without derivatives.
//!
//! Nelder and Mead, "A Simplex Method for Function Minimization", The Computer Journal 7 (1965):
//! deterministic, and good enough for the two to four parameters that a fit cannot solve for.

/// Steps after which the simplex is as good as it gets for these small problems.
const STEPS: usize = 400;

/// A corner of the simplex and the function's value there.
type Corner = (Vec<f64>, f64);

/// Walks downhill from `start`, whose first simplex spans `step` along each axis.
///
/// Values that are not numbers count as infinitely bad.
pub(crate) fn minimise(start: &[f64], step: &[f64], function: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let judge = |x: Vec<f64>| {
        let value = function(&x);
        (x, if value.is_nan() { f64::INFINITY } else { value })
    };
    let mut corners: Vec<Corner> = vec![judge(start.to_vec())];
    for axis in 0..start.len() {
        let mut corner = start.to_vec();
        corner[axis] += step[axis];
        corners.push(judge(corner));
    }
    for _ in 0..STEPS {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        improve(&mut corners, &judge);
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners.swap_remove(0).0
}

/// Replaces the worst of the sorted corners, or draws all of them towards the best.
fn improve(corners: &mut [Corner], judge: &impl Fn(Vec<f64>) -> Corner) {
    let last = corners.len() - 1;
    let centre = centre(&corners[..last]);
    let towards = |by: f64| judge(along(&centre, &corners[last].0, by));
    let mirrored = towards(-1.0);
    let better = if mirrored.1 < corners[0].1 {
        let stretched = towards(-2.0);
        if stretched.1 < mirrored.1 { stretched } else { mirrored }
    } else if mirrored.1 < corners[last - 1].1 {
        mirrored
    } else {
        towards(if mirrored.1 < corners[last].1 { -0.5 } else { 0.5 })
    };
    if better.1 < corners[last].1 {
        corners[last] = better;
        return;
    }
    let best = corners[0].0.clone();
    for corner in &mut corners[1..] {
        *corner = judge(along(&best, &corner.0, 0.5));
    }
}

fn centre(corners: &[Corner]) -> Vec<f64> {
    let axes = corners[0].0.len();
    (0..axes).map(|axis| corners.iter().map(|(x, _)| x[axis]).sum::<f64>() / corners.len() as f64).collect()
}

/// The point `by` of the way from one point to another.
fn along(from: &[f64], to: &[f64], by: f64) -> Vec<f64> {
    from.iter().zip(to).map(|(a, b)| a + by * (b - a)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bent_valley() {
        let rosenbrock = |x: &[f64]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let x = minimise(&[-1.2, 1.0], &[0.5, 0.5], rosenbrock);
        assert!((x[0] - 1.0).abs() < 1e-4 && (x[1] - 1.0).abs() < 1e-4, "{x:?}");
    }

    #[test]
    fn keeps_away_from_what_is_not_a_number() {
        let x = minimise(&[2.0], &[0.5], |x| x[0].ln().powi(2));
        assert!((x[0] - 1.0).abs() < 1e-4, "{x:?}");
    }
}
