//! What a placement asks of the memories.

use std::ops::{Add, AddAssign, Mul};

use tierloom_contention::Traffic;

/// Waits and bytes: of one object in one phase, or summed over what a memory holds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Work {
    /// Seconds that the threads wait for each nanosecond of latency.
    pub(crate) wait: f64,
    /// Bytes read from memory.
    pub(crate) read: f64,
    /// Bytes written back to memory.
    pub(crate) write: f64,
}

/// What a placement asks of each memory in each phase, over each of the sockets that threads run on.
///
/// Linear in the fractions. Made by [`Predictor::demand`](crate::Predictor::demand), changed by
/// [`Predictor::shift`](crate::Predictor::shift); cloning is cheap (three numbers per phase, socket
/// and memory).
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Phase by phase, socket by socket, one entry per memory.
    pub(crate) cells: Vec<Work>,
}

/// Share of a phase's sum below which a remainder is rounding of shifts back and forth.
const DUST: f64 = 1e-12;

impl Work {
    pub(crate) fn traffic(self) -> Traffic {
        Traffic { read: self.read, write: self.write }
    }

    /// Without what rounding left of the work that was shifted away; `whole` is the phase's sum.
    pub(crate) fn without_dust(self, whole: Work) -> Self {
        let keep = |part: f64, whole: f64| if part.abs() <= DUST * whole { 0.0 } else { part };
        Self {
            wait: keep(self.wait, whole.wait),
            read: keep(self.read, whole.read),
            write: keep(self.write, whole.write),
        }
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { wait: self.wait + other.wait, read: self.read + other.read, write: self.write + other.write }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<f64> for Work {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { wait: self.wait * factor, read: self.read * factor, write: self.write * factor }
    }
}
