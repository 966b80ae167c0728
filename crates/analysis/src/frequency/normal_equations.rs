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
/// Least Squares Problems*, 1996, section 2.9).
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

    pub(crate) fn solve(&self) -> Vec<f64> {
        let factor = Factor::of(self);
        let mut solution = vec![0.0; self.size];
        for _ in 0..IMPROVEMENTS {
            let change = factor.solve(&self.gradient(&solution));
            let mut moved = 0.0f64;
            for (k, change) in change.into_iter().enumerate() {
                solution[k] += change;
                moved = moved.max(change.abs() / solution[k].abs().max(1.0));
            }
            if moved < SETTLED {
                break;
            }
        }
        solution
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
                let dot: f64 = other[..j].iter().zip(&row[..j]).map(|(left, right)| left * right).sum();
                row[j] = (system.matrix[i * size + j] / (scale[i] * scale[j]) - dot) / other[j];
            }
            let dot: f64 = row[..i].iter().map(|value| value * value).sum();
            row[i] = (1.0 + DAMPING - dot).max(DAMPING).sqrt();
        }
        Self { scale, lower }
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let size = self.scale.len();
        let mut solution: Vec<f64> = right.iter().zip(&self.scale).map(|(value, scale)| value / scale).collect();
        for i in 0..size {
            let row = &self.lower[i * size..=i * size + i];
            let dot: f64 = row[..i].iter().zip(&solution).map(|(factor, value)| factor * value).sum();
            solution[i] = (solution[i] - dot) / row[i];
        }
        for i in (0..size).rev() {
            let row = &self.lower[i * size..=i * size + i];
            solution[i] /= row[i];
            let value = solution[i];
            solution[..i].iter_mut().zip(row).for_each(|(other, factor)| *other -= factor * value);
        }
        solution.into_iter().zip(&self.scale).map(|(value, scale)| value / scale).collect()
    }
}
