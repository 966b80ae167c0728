//! Weighted least squares: equations in, the best solution out.

/// One equation: coefficients by circulation, value, weight.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) coefficients: Vec<(usize, f64)>,
    pub(crate) value: f64,
    pub(crate) weight: f64,
}

/// Weighted least squares by the normal equations. Weights differ by many orders of magnitude, which
/// squares away what is left of a double: the decomposition is of a slightly damped matrix, and its
/// solution is improved with residuals of the equations themselves (Björck, *Numerical Methods for
/// Least Squares Problems*, 1996, sections 2.9 and 7.4).
#[derive(Clone)]
pub(crate) struct NormalEquations {
    size: usize,
    matrix: Vec<f64>,
    rows: Vec<Row>,
    ridge: f64,
}

/// Damping relative to the diagonal: above the rounding of the decomposition.
const DAMPING: f64 = 1e-11;
/// Improvements of a solution at most, and the relative change that ends them.
const IMPROVEMENTS: usize = 20;
const SETTLED: f64 = 1e-7;

impl NormalEquations {
    pub(crate) fn new(size: usize, ridge: f64) -> Self {
        let mut matrix = vec![0.0; size * size];
        (0..size).for_each(|k| matrix[k * size + k] = ridge);
        Self { size, matrix, rows: Vec::new(), ridge }
    }

    pub(crate) fn add(&mut self, row: Row) {
        for &(i, left) in &row.coefficients {
            for &(j, right) in row.coefficients.iter().filter(|(j, _)| *j <= i) {
                self.matrix[i * self.size + j] += row.weight * left * right;
            }
        }
        self.rows.push(row);
    }

    /// By conjugate gradients, with the damped decomposition as what makes directions alike: a few directions that damping
    /// drowns take a step each, where steps of the decomposition alone would take a million.
    pub(crate) fn solve(&self) -> Vec<f64> {
        let factor = Factor::of(self);
        let mut solution = vec![0.0; self.size];
        let mut gradient = self.gradient(&solution);
        let mut steepest = factor.solve(&gradient);
        let mut direction = steepest.clone();
        for _ in 0..IMPROVEMENTS {
            let (fall, curvature) = (dot(&gradient, &direction), self.curvature(&direction));
            if fall <= 0.0 || curvature <= 0.0 {
                break;
            }
            let length = fall / curvature;
            let mut moved = 0.0f64;
            for (value, along) in solution.iter_mut().zip(&direction) {
                *value += length * along;
                moved = moved.max((length * along).abs() / value.abs().max(1.0));
            }
            if moved < SETTLED {
                break;
            }
            let before = dot(&gradient, &steepest);
            gradient = self.gradient(&solution);
            let next = factor.solve(&gradient);
            let turned: f64 =
                gradient.iter().zip(next.iter().zip(&steepest)).map(|(g, (new, old))| g * (new - old)).sum();
            // Polak and Ribière's factor, which forgets the way so far where rounding has spoilt it.
            let kept = (turned / before).max(0.0);
            direction.iter_mut().zip(&next).for_each(|(along, new)| *along = new + kept * *along);
            steepest = next;
        }
        solution
    }

    /// One standard deviation of each of these sums of unknowns: of circulations with their coefficients.
    pub(crate) fn deviations(&self, sums: impl Iterator<Item = Vec<(usize, f64)>>) -> Vec<f64> {
        let factor = Factor::of(self);
        sums.map(|sum| factor.deviation(&sum)).collect()
    }

    /// How fast the fall along a direction slows down.
    fn curvature(&self, direction: &[f64]) -> f64 {
        let along = |row: &Row| row.coefficients.iter().map(|(id, factor)| factor * direction[*id]).sum::<f64>();
        self.ridge * dot(direction, direction)
            + self.rows.iter().map(|row| row.weight * along(row).powi(2)).sum::<f64>()
    }

    /// Where the sum of squares falls, and how fast.
    fn gradient(&self, solution: &[f64]) -> Vec<f64> {
        let mut gradient: Vec<f64> = solution.iter().map(|value| -self.ridge * value).collect();
        for row in &self.rows {
            let predicted: f64 = row.coefficients.iter().map(|(id, factor)| factor * solution[*id]).sum();
            let pull = row.weight * (row.value - predicted);
            row.coefficients.iter().for_each(|(id, factor)| gradient[*id] += factor * pull);
        }
        gradient
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

/// Cholesky factor of the normal matrix, scaled to a unit diagonal and damped.
struct Factor {
    scale: Vec<f64>,
    /// By rows, up to the diagonal.
    lower: Vec<f64>,
}

impl Factor {
    fn of(system: &NormalEquations) -> Self {
        let size = system.size;
        let diagonal = |k: usize| system.matrix[k * size + k].max(f64::MIN_POSITIVE).sqrt();
        let scale: Vec<f64> = (0..size).map(diagonal).collect();
        let mut lower = vec![0.0; size * size];
        for i in 0..size {
            let (above, row) = lower.split_at_mut(i * size);
            for j in 0..i {
                let other = &above[j * size..=j * size + j];
                row[j] = (system.matrix[i * size + j] / (scale[i] * scale[j]) - dot(&other[..j], &row[..j])) / other[j];
            }
            row[i] = (1.0 + DAMPING - dot(&row[..i], &row[..i])).max(DAMPING).sqrt();
        }
        Self { scale, lower }
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let size = self.scale.len();
        let mut solution: Vec<f64> = right.iter().zip(&self.scale).map(|(value, scale)| value / scale).collect();
        for i in 0..size {
            let row = &self.lower[i * size..=i * size + i];
            solution[i] = (solution[i] - dot(&row[..i], &solution)) / row[i];
        }
        for i in (0..size).rev() {
            let row = &self.lower[i * size..=i * size + i];
            solution[i] /= row[i];
            let value = solution[i];
            solution[..i].iter_mut().zip(row).for_each(|(other, factor)| *other -= factor * value);
        }
        solution.into_iter().zip(&self.scale).map(|(value, scale)| value / scale).collect()
    }

    /// The covariance of the unknowns is the inverse of the matrix, so the variance of a sum of them is the square of what
    /// the lower factor makes of its coefficients.
    fn deviation(&self, sum: &[(usize, f64)]) -> f64 {
        let size = self.scale.len();
        let Some(first) = sum.iter().map(|(id, _)| *id).min() else { return 0.0 };
        let mut half = vec![0.0; size];
        for (id, factor) in sum {
            half[*id] += factor / self.scale[*id];
        }
        for i in first..size {
            let row = &self.lower[i * size..=i * size + i];
            half[i] = (half[i] - dot(&row[first..i], &half[first..])) / row[i];
        }
        dot(&half, &half).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_that_is_nineteen_orders_below_another_counts_all_the_same() {
        // A loop of four million rounds: a pass that counted it far too low took its rounds to be known to 0.04, a guess of a
        // branch before it to 0.0001, and a clock counted it to four in a thousand. Steps of the decomposition alone come to
        // a hundredth of it.
        let row = |coefficients: &[(usize, f64)], value, deviation: f64| Row {
            coefficients: coefficients.to_vec(),
            value,
            weight: deviation.powi(-2),
        };
        let mut system = NormalEquations::new(3, 1e-24);
        system.add(row(&[(0, 1.0), (1, -4e6)], 0.0, 0.04));
        system.add(row(&[(2, 0.95), (1, -0.05)], 0.0, 1.5e-4));
        system.add(row(&[(0, 1.0)], 1e8, 3.7e5));
        let solution = system.solve();
        let expected = [1e8, 25.0, 25.0 / 19.0];
        for (solved, expected) in solution.iter().zip(expected) {
            assert!((solved / expected - 1.0).abs() < 1e-3, "{solution:?}");
        }
    }
}
