//! Breadth-first search on a random graph, with the data structures of Rodinia's `bfs`.

use tierloom_model::hash::nth;
use tierloom_model::units::LINE_BYTES;

use super::kernel::{Kernel, Shape};
use crate::line::Line;

/// Edges of a node: the random graphs of Rodinia have six.
const EDGES: u32 = 6;
/// Bytes of a node: start and count, edges, frontier mask, next mask, visited flag, cost.
const NODE_BYTES: u64 = 8 + 4 * EDGES as u64 + 1 + 1 + 1 + 4;
const UNSEEN: u8 = u8::MAX;

/// Where each array begins, in lines.
#[derive(Debug)]
struct Arrays {
    edges: u32,
    mask: u32,
    next: u32,
    visited: u32,
    cost: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    node: u32,
    /// Loads done at this node: mask, node record, then edge and flag of each neighbour.
    step: u32,
    /// The neighbour that was looked at last.
    target: u32,
    stores: u32,
}

/// One level of the search: a warp scans its part of the frontier mask; for a node in it, it reads
/// the edges and the visited flag of every neighbour, and writes the neighbours' cost and next mask.
pub(super) struct Search {
    shape: Shape,
    nodes: u32,
    arrays: Arrays,
    level: Vec<u8>,
    current: u8,
    at: Vec<Cursor>,
}

impl Search {
    /// Runs the search from node 0 to find its largest level, where the accesses begin.
    pub(super) fn new(shape: Shape) -> Self {
        let nodes = (u64::from(shape.lines) * LINE_BYTES / NODE_BYTES) as u32 - 64;
        let lines = |bytes: u64| (u64::from(nodes) * bytes).div_ceil(LINE_BYTES) as u32;
        let edges = lines(8);
        let mask = edges + lines(4 * u64::from(EDGES));
        let arrays =
            Arrays { edges, mask, next: mask + lines(1), visited: mask + 2 * lines(1), cost: mask + 3 * lines(1) };
        let (level, current) = levels(shape.seed, nodes);
        let start = |warp| Cursor { node: shape.chunk(warp, nodes).0, ..Cursor::default() };
        Self { shape, nodes, arrays, level, current, at: (0..shape.warps).map(start).collect() }
    }

    /// Moves a warp to its next node; its chunk begins anew when it is through.
    fn advance(&mut self, warp: u32) {
        let (first, size) = self.shape.chunk(warp, self.nodes);
        let cursor = &mut self.at[warp as usize];
        cursor.node = if cursor.node + 1 >= first + size { first } else { cursor.node + 1 };
        cursor.step = 0;
    }

    /// Steps over nodes whose mask lies in the line that was loaded and is not set.
    fn skip(&mut self, warp: u32) {
        loop {
            let node = self.at[warp as usize].node;
            if self.level[node as usize] == self.current || node % 64 == 63 {
                return;
            }
            self.advance(warp);
            if self.at[warp as usize].node <= node {
                return;
            }
        }
    }
}

impl Kernel for Search {
    fn load(&mut self, warp: u32) -> Line {
        let cursor = self.at[warp as usize];
        let node = cursor.node;
        match cursor.step {
            0 => {
                self.skip(warp);
                let found = self.level[self.at[warp as usize].node as usize] == self.current;
                if found {
                    self.at[warp as usize].step = 1;
                } else {
                    self.advance(warp);
                }
                self.arrays.mask + node / 64
            }
            1 => {
                self.at[warp as usize].step = 2;
                node / 8
            }
            step if step % 2 == 0 => {
                let edge = (step - 2) / 2;
                self.at[warp as usize].step += 1;
                self.at[warp as usize].target = neighbour(self.shape.seed, self.nodes, node, edge);
                self.arrays.edges + ((u64::from(node) * u64::from(EDGES) + u64::from(edge)) / 16) as u32
            }
            step => {
                if step + 1 == 2 + 2 * EDGES {
                    self.advance(warp);
                } else {
                    self.at[warp as usize].step += 1;
                }
                self.arrays.visited + cursor.target / 64
            }
        }
    }

    /// Cost and next mask of the neighbour in turn.
    fn store(&mut self, warp: u32) -> Line {
        let cursor = &mut self.at[warp as usize];
        cursor.stores += 1;
        if cursor.stores.is_multiple_of(2) {
            self.arrays.next + cursor.target / 64
        } else {
            self.arrays.cost + cursor.target / 16
        }
    }
}

/// The end of an edge: the graph is a function, so that it takes no space.
fn neighbour(seed: u64, nodes: u32, node: u32, edge: u32) -> u32 {
    let random = nth(seed, u64::from(node) * u64::from(EDGES) + u64::from(edge));
    (((random >> 32) * u64::from(nodes)) >> 32) as u32
}

/// Level of every node, and the level that has the most; the search ends where fewer nodes are left
/// than that level has.
fn levels(seed: u64, nodes: u32) -> (Vec<u8>, u8) {
    let mut level = vec![UNSEEN; nodes as usize];
    level[0] = 0;
    let (mut frontier, mut depth, mut largest) = (vec![0_u32], 0_u8, (1, 0_u8));
    let mut left = nodes as usize - 1;
    while !frontier.is_empty() && depth < UNSEEN - 1 {
        largest = largest.max((frontier.len(), depth));
        if left < largest.0 {
            break;
        }
        depth += 1;
        let mut next = Vec::new();
        for &node in &frontier {
            for edge in 0..EDGES {
                let target = neighbour(seed, nodes, node, edge);
                if level[target as usize] == UNSEEN {
                    level[target as usize] = depth;
                    next.push(target);
                }
            }
        }
        left -= next.len();
        frontier = next;
    }
    (level, largest.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_graph_is_reached_within_a_few_levels() {
        let (level, largest) = levels(1, 100_000);
        let mut counts = [0_usize; UNSEEN as usize + 1];
        for &found in &level {
            counts[found as usize] += 1;
        }
        let most = counts[largest as usize];
        assert!((5..9).contains(&largest), "{largest}");
        assert!(counts[..=largest as usize].iter().all(|&count| count > 0 && count <= most));
        assert!(counts[UNSEEN as usize] < most, "a level of those that are left could be larger");
    }

    #[test]
    fn the_search_reads_the_edges_of_its_frontier() {
        let mut search = Search::new(Shape { lines: 1 << 14, warps: 1, seed: 1 });
        let (edges, mask) = (search.arrays.edges, search.arrays.mask);
        let first = (0..100_000).map(|_| search.load(0)).find(|line| (edges..mask).contains(line)).unwrap();
        let node = (0..search.nodes).find(|&node| search.level[node as usize] == search.current).unwrap();
        assert_eq!(first, edges + node * EDGES / 16);
    }
}
