//! Kernels on vectors: every warp has a contiguous chunk, as Vortex's task spawning deals it.

use super::kernel::{Kernel, Shape};
use crate::line::Line;

/// `c = a + b`.
pub(super) struct Add {
    shape: Shape,
    third: u32,
    at: Vec<(u32, bool)>,
}

impl Add {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, third: shape.lines / 3, at: vec![(0, false); shape.warps as usize] }
    }
}

impl Kernel for Add {
    fn load(&mut self, warp: u32) -> Line {
        let (first, size) = self.shape.chunk(warp, self.third);
        let (step, second) = &mut self.at[warp as usize];
        let line = first + *step % size;
        *second = !*second;
        if *second {
            return line;
        }
        *step += 1;
        self.third + line
    }

    /// The sum of the lines that were loaded last.
    fn store(&mut self, warp: u32) -> Line {
        let (first, size) = self.shape.chunk(warp, self.third);
        let (step, second) = self.at[warp as usize];
        let done = if second { step } else { step.saturating_sub(1) };
        2 * self.third + first + done % size
    }
}

/// `y = a x + y`: the store goes where the second load came from.
pub(super) struct Saxpy {
    shape: Shape,
    half: u32,
    at: Vec<(u32, bool)>,
}

impl Saxpy {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, half: shape.lines / 2, at: vec![(0, false); shape.warps as usize] }
    }
}

impl Kernel for Saxpy {
    fn load(&mut self, warp: u32) -> Line {
        let (first, size) = self.shape.chunk(warp, self.half);
        let (step, second) = &mut self.at[warp as usize];
        let line = first + *step % size;
        *second = !*second;
        if *second {
            return line;
        }
        *step += 1;
        self.half + line
    }

    fn store(&mut self, warp: u32) -> Line {
        let (first, size) = self.shape.chunk(warp, self.half);
        let done = self.at[warp as usize].0.saturating_sub(1);
        self.half + first + done % size
    }
}

/// Lines of partial sums of a warp.
const SCRATCH: u32 = 8;
/// Steps of the tree over a warp's eight lanes, each reading and writing partial sums.
const TREE_STEPS: u32 = 3;

/// Reduction: every line is added up by a tree over the lanes of its warp, whose partial sums live
/// in memory, for Vortex keeps them there.
pub(super) struct Sum {
    shape: Shape,
    input: u32,
    at: Vec<(u32, u32)>,
}

impl Sum {
    pub(super) fn new(shape: Shape) -> Self {
        let scratch = (shape.warps * SCRATCH).min(shape.lines / 2);
        Self { shape, input: shape.lines - scratch, at: vec![(0, 0); shape.warps as usize] }
    }

    fn scratch(&self, warp: u32, step: u32) -> Line {
        self.input + (warp * SCRATCH + step % SCRATCH) % (self.shape.lines - self.input)
    }
}

impl Kernel for Sum {
    fn load(&mut self, warp: u32) -> Line {
        let (line, step) = self.at[warp as usize];
        self.at[warp as usize] = if step == TREE_STEPS { (line + 1, 0) } else { (line, step + 1) };
        if step > 0 {
            return self.scratch(warp, step - 1);
        }
        let (first, size) = self.shape.chunk(warp, self.input);
        first + line % size
    }

    fn store(&mut self, warp: u32) -> Line {
        self.scratch(warp, self.at[warp as usize].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_goes_where_its_terms_came_from() {
        let shape = Shape { lines: 600, warps: 2, seed: 0 };
        let mut add = Add::new(shape);
        let steps: Vec<Line> = (0..2).flat_map(|_| [add.load(1), add.load(1), add.store(1)]).collect();
        assert_eq!(steps, [100, 300, 500, 101, 301, 501]);
        let mut saxpy = Saxpy::new(shape);
        let steps: Vec<Line> = (0..2).flat_map(|_| [saxpy.load(1), saxpy.load(1), saxpy.store(1)]).collect();
        assert_eq!(steps, [150, 450, 450, 151, 451, 451]);
    }
}
