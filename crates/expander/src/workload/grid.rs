//! Kernels on grids: a blocked stencil, a convolution over images, and paths over a weighted map.

use tierloom_model::hash::nth;

use super::kernel::{ELEMENTS, Kernel, Shape};
use crate::line::Line;

/// Lines of a row of the stencil's grid: 2048 four-byte cells.
const ROW: u32 = 128;
/// A tile of the stencil: lines wide, rows high, and time steps that it stays in the cache.
const TILE: (u32, u32, u32) = (8, 8, 4);
/// Lines above and below that a cell needs.
const TAPS: [i64; 3] = [0, -1, 1];

/// Five-point stencil with overlapped tiling in time: a tile is loaded, stepped in scratch memory
/// that stays cached, and written to the output grid. Left and right neighbours lie in the same
/// line.
pub(super) struct Stencil {
    shape: Shape,
    half: u32,
    scratch: u32,
    at: Vec<u32>,
}

impl Stencil {
    pub(super) fn new(shape: Shape) -> Self {
        let (wide, high, _) = TILE;
        let scratch = (shape.warps * wide * high).min(shape.lines / 2);
        Self { shape, half: (shape.lines - scratch) / 2, scratch, at: vec![0; shape.warps as usize] }
    }

    /// A warp's point: tile, time step, cell within the tile.
    fn point(&self, warp: u32) -> (u32, u32, u32) {
        let (wide, high, steps) = TILE;
        let cells = wide * high;
        let visit = self.at[warp as usize] / TAPS.len() as u32;
        (visit / (cells * steps), visit / cells % steps, visit % cells)
    }

    /// Line of a tile's cell, `shift` rows away, within a warp's band of rows.
    fn cell(&self, warp: u32, tile: u32, cell: u32, shift: i64) -> Line {
        let (first, size) = self.shape.chunk(warp, self.half);
        let (wide, high, _) = TILE;
        let across = ROW / wide;
        let row = tile / across * high + cell / wide;
        let column = tile % across * wide + cell % wide;
        let inside = i64::from(row * ROW + column) + shift * i64::from(ROW);
        first + inside.rem_euclid(i64::from(size)) as u32
    }

    fn scratch(&self, warp: u32, cell: u32) -> Line {
        let (wide, high, _) = TILE;
        2 * self.half + (warp * wide * high + cell) % self.scratch
    }
}

impl Kernel for Stencil {
    fn load(&mut self, warp: u32) -> Line {
        let (tile, step, cell) = self.point(warp);
        let tap = TAPS[self.at[warp as usize] as usize % TAPS.len()];
        self.at[warp as usize] += 1;
        if step == 0 {
            return self.cell(warp, tile, cell, tap);
        }
        let (wide, high, _) = TILE;
        let shifted = (i64::from(cell) + tap * i64::from(wide)).rem_euclid(i64::from(wide * high));
        self.scratch(warp, shifted as u32)
    }

    fn store(&mut self, warp: u32) -> Line {
        let (tile, step, cell) = self.point(warp);
        if step + 1 == TILE.2 { self.half + self.cell(warp, tile, cell, 0) } else { self.scratch(warp, cell) }
    }
}

/// Lines of a row and rows of an image: the 224 x 224 of image networks.
const IMAGE: (u32, u32) = (14, 224);

/// A 3 x 3 convolution: a warp takes image after image, row after row.
pub(super) struct Convolution {
    shape: Shape,
    half: u32,
    at: Vec<u32>,
}

impl Convolution {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, half: shape.lines / 2, at: vec![0; shape.warps as usize] }
    }

    /// Line of the output point `visit`, `shift` rows away; an image's edge repeats itself.
    fn pixel(&self, warp: u32, visit: u32, shift: i64) -> Line {
        let (first, size) = self.shape.chunk(warp, self.half);
        let (wide, high) = IMAGE;
        let visit = visit % size;
        let (image, row, column) = (visit / (wide * high), visit / wide % high, visit % wide);
        let row = (i64::from(row) + shift).clamp(0, i64::from(high) - 1) as u32;
        first + ((image * high + row) * wide + column).min(size - 1)
    }
}

impl Kernel for Convolution {
    fn load(&mut self, warp: u32) -> Line {
        let step = self.at[warp as usize];
        self.at[warp as usize] += 1;
        self.pixel(warp, step / TAPS.len() as u32, TAPS[step as usize % TAPS.len()])
    }

    fn store(&mut self, warp: u32) -> Line {
        let visit = self.at[warp as usize].saturating_sub(1) / TAPS.len() as u32;
        self.half + self.pixel(warp, visit, 0)
    }
}

/// A warp on its way over the map.
#[derive(Debug, Clone, Copy)]
struct Walk {
    at: (u32, u32),
    goal: (u32, u32),
    tap: usize,
    routes: u64,
}

/// Neighbourhood of a step: the cell and both its vertical neighbours, in the weights and then in
/// the costs; horizontal neighbours lie in the line of the cell.
const LOOKS: [(bool, i64); 10] = [
    (false, 0),
    (false, 0),
    (false, 0),
    (false, -1),
    (false, 1),
    (true, 0),
    (true, 0),
    (true, 0),
    (true, -1),
    (true, 1),
];

/// Path finding on a weighted grid: every warp follows routes between random points, at each cell
/// comparing the weights and the known costs of the four neighbours and moving to the cheapest that
/// is nearer to the goal.
pub(super) struct Paths {
    shape: Shape,
    side: u32,
    walks: Vec<Walk>,
}

impl Paths {
    pub(super) fn new(shape: Shape) -> Self {
        let cells = u64::from(shape.lines / 2) * u64::from(ELEMENTS);
        let side = (cells.isqrt() as u32 / ELEMENTS * ELEMENTS).max(ELEMENTS);
        let mut paths = Self { shape, side, walks: Vec::new() };
        paths.walks = (0..shape.warps).map(|warp| paths.route(warp, 0)).collect();
        paths
    }

    fn route(&self, warp: u32, routes: u64) -> Walk {
        let end = |which| {
            let random = nth(self.shape.seed, (routes * 2 + which) * u64::from(self.shape.warps) + u64::from(warp));
            ((random as u32) % self.side, (random >> 32) as u32 % self.side)
        };
        Walk { at: end(0), goal: end(1), tap: 0, routes }
    }

    fn line(&self, cell: (u32, u32), shift: i64) -> Line {
        let row = (i64::from(cell.0) + shift).clamp(0, i64::from(self.side) - 1) as u32;
        ((u64::from(row) * u64::from(self.side) + u64::from(cell.1)) / u64::from(ELEMENTS)) as u32
    }

    /// The next cell: towards the goal, over the cheaper of the two cells that lie nearer to it.
    fn step(&self, warp: u32, walk: Walk) -> Walk {
        let towards = |from: u32, to: u32| from.saturating_add_signed((to as i32 - from as i32).signum());
        let vertical = (towards(walk.at.0, walk.goal.0), walk.at.1);
        let horizontal = (walk.at.0, towards(walk.at.1, walk.goal.1));
        let weight = |cell: (u32, u32)| nth(!self.shape.seed, u64::from(cell.0) << 32 | u64::from(cell.1));
        let at = match (vertical == walk.at, horizontal == walk.at) {
            (true, true) => return self.route(warp, walk.routes + 1),
            (true, false) => horizontal,
            (false, true) => vertical,
            (false, false) if weight(vertical) < weight(horizontal) => vertical,
            (false, false) => horizontal,
        };
        Walk { at, tap: 0, ..walk }
    }
}

impl Kernel for Paths {
    fn load(&mut self, warp: u32) -> Line {
        let walk = self.walks[warp as usize];
        let (costs, shift) = LOOKS[walk.tap];
        let line = self.line(walk.at, shift) + if costs { self.shape.lines / 2 } else { 0 };
        let next = if walk.tap + 1 == LOOKS.len() { self.step(warp, walk) } else { Walk { tap: walk.tap + 1, ..walk } };
        self.walks[warp as usize] = next;
        line
    }

    /// The cost of the cell where the warp is.
    fn store(&mut self, warp: u32) -> Line {
        self.line(self.walks[warp as usize].at, 0) + self.shape.lines / 2
    }
}
