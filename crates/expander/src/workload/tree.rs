//! Tree sort: every key walks down a binary search tree to its place.

use tierloom_model::hash::nth;

use super::kernel::{Kernel, Shape};
use crate::line::Line;

/// Sixteen-byte nodes (key, left, right, count) in a line.
const NODES: u32 = 4;
/// A visited node's key, then the child on each side, are loaded.
const LOADS: u32 = 3;

#[derive(Debug, Clone, Copy)]
struct Descent {
    key: u64,
    keys: u64,
    /// Nodes that are left: `low..high`; the node is the middle.
    low: u32,
    high: u32,
    load: u32,
}

/// A balanced tree laid out in the order of its keys: the last levels of a walk jump back and forth
/// around the place where the key belongs.
pub(super) struct Sort {
    shape: Shape,
    nodes: u32,
    walks: Vec<Descent>,
}

impl Sort {
    pub(super) fn new(shape: Shape) -> Self {
        let nodes = shape.lines.saturating_mul(NODES);
        let mut sort = Self { shape, nodes, walks: Vec::new() };
        sort.walks = (0..shape.warps).map(|warp| sort.descent(warp, 0)).collect();
        sort
    }

    fn descent(&self, warp: u32, keys: u64) -> Descent {
        let random = nth(self.shape.seed, keys * u64::from(self.shape.warps) + u64::from(warp));
        Descent { key: random % u64::from(self.nodes), keys, low: 0, high: self.nodes, load: 0 }
    }

    fn line(walk: Descent) -> Line {
        walk.low.midpoint(walk.high) / NODES
    }
}

impl Kernel for Sort {
    fn load(&mut self, warp: u32) -> Line {
        let walk = self.walks[warp as usize];
        let line = Self::line(walk);
        let middle = walk.low.midpoint(walk.high);
        let down = if walk.key < u64::from(middle) {
            Descent { high: middle, load: 0, ..walk }
        } else {
            Descent { low: middle + 1, load: 0, ..walk }
        };
        self.walks[warp as usize] = match walk.load + 1 {
            LOADS if down.low >= down.high || u64::from(middle) == walk.key => self.descent(warp, walk.keys + 1),
            LOADS => down,
            load => Descent { load, ..walk },
        };
        line
    }

    /// The node where the walk is takes the key.
    fn store(&mut self, warp: u32) -> Line {
        Self::line(self.walks[warp as usize])
    }
}
