//! What an algorithm is asked, and the problem that it is made for.

use crate::line::Line;

/// Threads that a warp of the kernels covers with one line: 16 four-byte elements.
pub(super) const ELEMENTS: u32 = 16;

/// One access: a line, loaded or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) line: Line,
    pub(crate) store: bool,
}

/// An algorithm on its data. *Contract*: lines are below the number that it was made for; the same
/// calls give the same lines.
pub(super) trait Kernel: Send {
    /// The line of a warp's next load.
    fn load(&mut self, warp: u32) -> Line;
    /// The line that a warp's store goes to now.
    fn store(&mut self, warp: u32) -> Line;
}

/// Size of the problem and of the machine that it is spread over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) lines: u32,
    pub(super) warps: u32,
    pub(super) seed: u64,
}

impl Shape {
    /// A warp's contiguous part of `lines` lines: its first, and how many.
    pub(super) fn chunk(self, warp: u32, lines: u32) -> (u32, u32) {
        let size = (lines / self.warps).max(1);
        ((warp * size).min(lines - size), size)
    }
}
