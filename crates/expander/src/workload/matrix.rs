//! Kernels on dense matrices of four-byte numbers, row by row in memory.

use super::kernel::{ELEMENTS, Kernel, Shape};
use crate::line::Line;

/// `c = a b'`: both factors are read along their rows, as in a fully connected layer. Warps take
/// contiguous runs of results; the side is odd, so that they stand at different rows of `b`, as with
/// any size that is no multiple of the warps.
pub(super) struct Multiply {
    shape: Shape,
    /// Rows, and lines of a row.
    side: u32,
    row: u32,
    at: Vec<(u64, u32, bool)>,
}

impl Multiply {
    pub(super) fn new(shape: Shape) -> Self {
        let cells = u64::from(shape.lines / 3) * u64::from(ELEMENTS);
        let row = (cells.isqrt() as u32 / ELEMENTS).max(1);
        let side = (shape.lines / 3 / row).min(row * ELEMENTS - 1) | 1;
        let results = u64::from(side) * u64::from(side);
        let start = |warp| (results * u64::from(warp) / u64::from(shape.warps), 0, false);
        Self { shape, side, row, at: (0..shape.warps).map(start).collect() }
    }

    /// Row of `a` and row of `b` of a result.
    fn rows(&self, result: u64) -> (u32, u32) {
        let side = u64::from(self.side);
        ((result / side % side) as u32, (result % side) as u32)
    }
}

impl Kernel for Multiply {
    fn load(&mut self, warp: u32) -> Line {
        let (result, column, second) = self.at[warp as usize];
        let (i, j) = self.rows(result);
        if !second {
            self.at[warp as usize].2 = true;
            return i * self.row + column;
        }
        let next = if column + 1 == self.row { (result + 1, 0, false) } else { (result, column + 1, false) };
        self.at[warp as usize] = next;
        self.shape.lines / 3 + j * self.row + column
    }

    fn store(&mut self, warp: u32) -> Line {
        let (i, j) = self.rows(self.at[warp as usize].0);
        2 * (self.shape.lines / 3) + i * self.row + j / ELEMENTS % self.row
    }
}

/// Gaussian elimination: forward, every warp subtracts the pivot row from its rows; then back
/// substitution, which walks the rows from their ends. The two phases alternate row by row within a
/// warp's band, so that both are in every part of a run.
pub(super) struct Eliminate {
    shape: Shape,
    side: u32,
    row: u32,
    at: Vec<(u32, u32, bool)>,
    /// The line of a warp's own row that was loaded last.
    last: Vec<Line>,
}

impl Eliminate {
    pub(super) fn new(shape: Shape) -> Self {
        let cells = u64::from(shape.lines) * u64::from(ELEMENTS);
        let row = (cells.isqrt() as u32 / ELEMENTS).max(1);
        let side = (shape.lines / row).max(1);
        let warps = shape.warps as usize;
        let last = (0..shape.warps).map(|warp| shape.chunk(warp, side).0 * row).collect();
        Self { shape, side, row, at: vec![(0, 0, false); warps], last }
    }

    /// The line of a warp's point in its own row: from the left forward, from the right backward.
    fn own(&self, warp: u32, visit: u32, column: u32) -> Line {
        let (first, rows) = self.shape.chunk(warp, self.side);
        let column = if visit.is_multiple_of(2) { column } else { self.row - 1 - column };
        (first + visit % rows).min(self.side - 1) * self.row + column
    }
}

impl Kernel for Eliminate {
    fn load(&mut self, warp: u32) -> Line {
        let (visit, column, second) = self.at[warp as usize];
        if !second {
            self.at[warp as usize].2 = true;
            // The pivot row forward, the known part of the solution backward: both stay cached.
            return if visit.is_multiple_of(2) { column } else { self.row - 1 - column };
        }
        self.at[warp as usize] =
            if column + 1 == self.row { (visit + 1, 0, false) } else { (visit, column + 1, false) };
        self.last[warp as usize] = self.own(warp, visit, column);
        self.last[warp as usize]
    }

    /// The row is changed in place, after it was read.
    fn store(&mut self, warp: u32) -> Line {
        self.last[warp as usize]
    }
}
