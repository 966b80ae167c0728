//! Linear least squares with coefficients that may not be negative, for up to three columns.

/// Coefficients, none negative, for which the columns sum up closest to 1 in every row.
///
/// Rows are relative: each column's entry is already divided by the value that the row should
/// reach. Every choice of columns is solved and the best one without negative coefficients kept,
/// which for three columns is exact and cheaper than an active-set method.
pub(crate) fn fit_to_one<const N: usize>(rows: &[[f64; N]]) -> Option<[f64; N]> {
    let candidates = (1..1_usize << N).filter_map(|chosen| solve_chosen(rows, chosen));
    let good = candidates.filter(|x| x.iter().all(|c| c.is_finite() && *c >= 0.0));
    good.min_by(|a, b| squared_error(rows, a).total_cmp(&squared_error(rows, b)))
}

/// Sum of squared misses.
fn squared_error<const N: usize>(rows: &[[f64; N]], x: &[f64; N]) -> f64 {
    rows.iter().map(|row| (row.iter().zip(x).map(|(a, c)| a * c).sum::<f64>() - 1.0).powi(2)).sum()
}

/// Normal equations over the columns in the bit set `chosen`; the others' coefficients are 0.
fn solve_chosen<const N: usize>(rows: &[[f64; N]], chosen: usize) -> Option<[f64; N]> {
    let is_chosen = |column: usize| chosen >> column & 1 == 1;
    let norm = |column: usize| rows.iter().map(|row| row[column] * row[column]).sum::<f64>().sqrt();
    let scale: [f64; N] = std::array::from_fn(norm);
    let mut matrix = [[0.0; N]; N];
    let mut right = [0.0; N];
    for i in 0..N {
        matrix[i][i] = 1.0;
        if !is_chosen(i) {
            continue;
        }
        for j in (0..N).filter(|j| is_chosen(*j)) {
            matrix[i][j] = rows.iter().map(|row| row[i] * row[j]).sum::<f64>() / (scale[i] * scale[j]);
        }
        right[i] = rows.iter().map(|row| row[i]).sum::<f64>() / scale[i];
    }
    let solution = eliminate(matrix, right)?;
    Some(std::array::from_fn(|i| if is_chosen(i) { solution[i] / scale[i] } else { 0.0 }))
}

/// Gaussian elimination with pivots on the diagonal; the matrix is symmetric and scaled.
fn eliminate<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    for k in 0..N {
        let pivot = matrix[k][k];
        if pivot.is_nan() || pivot < 1e-13 {
            return None;
        }
        for i in k + 1..N {
            let factor = matrix[i][k] / pivot;
            matrix[i] = std::array::from_fn(|j| matrix[i][j] - factor * matrix[k][j]);
            right[i] -= factor * right[k];
        }
    }
    for k in (0..N).rev() {
        let known: f64 = (k + 1..N).map(|j| matrix[k][j] * right[j]).sum();
        right[k] = (right[k] - known) / matrix[k][k];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovers_exact_coefficients() {
        let rows: Vec<[f64; 2]> =
            [1.0, 2.0, 5.0].iter().map(|x| [1.0 / (3.0 + 2.0 * x), x / (3.0 + 2.0 * x)]).collect();
        let [a, b] = fit_to_one(&rows).unwrap();
        assert!((a - 3.0).abs() < 1e-9 && (b - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_column_that_would_be_negative_is_left_out() {
        let rows: Vec<[f64; 2]> = [1.0, 2.0, 4.0].iter().map(|x| [1.0 / (9.0 - x), x / (9.0 - x)]).collect();
        let [a, b] = fit_to_one(&rows).unwrap();
        assert!(a > 0.0 && b.abs() < 1e-12);
    }
}
