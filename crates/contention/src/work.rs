//! What somebody asks of memory: waits and bytes, of one object or of all that a memory holds.

use std::ops::{Add, AddAssign, Mul};

/// Bytes to and from one memory.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Bytes read.
    pub read: f64,
    /// Bytes written.
    pub write: f64,
}

/// Waits and bytes; linear, so shares of it add up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// Seconds that the threads wait for each nanosecond of latency.
    pub wait: f64,
    /// The part of it that is for random reads, which take longer on some paths.
    pub random: f64,
    /// The part of `random` that waits beside other reads of its thread, in a window that retires in order.
    pub beside: f64,
    /// What `beside` would be with one read at a time.
    pub alone: f64,
    /// Bytes read from memory.
    pub read: f64,
    /// Bytes written back to memory.
    pub write: f64,
}

/// Share of a sum below which a remainder is rounding of shifts back and forth.
const DUST: f64 = 1e-12;

impl Traffic {
    /// Bytes both ways.
    pub fn bytes(&self) -> f64 {
        self.read + self.write
    }

    /// Share of reads; 1 where nothing moves.
    pub fn read_fraction(&self) -> f64 {
        if self.bytes() > 0.0 { self.read / self.bytes() } else { 1.0 }
    }

    pub(crate) fn add(&mut self, read: f64, write: f64) {
        self.read += read;
        self.write += write;
    }
}

impl Work {
    /// Its bytes.
    pub fn traffic(self) -> Traffic {
        Traffic { read: self.read, write: self.write }
    }

    /// Bytes read and written.
    pub fn bytes(self) -> f64 {
        self.read + self.write
    }

    /// Whether any of it waits beside other reads.
    pub fn has_beside(self) -> bool {
        self.beside > 0.0 || self.alone > 0.0
    }

    /// Without what is negative.
    #[must_use]
    pub fn at_least_none(self) -> Self {
        Self {
            wait: self.wait.max(0.0),
            random: self.random.max(0.0),
            beside: self.beside.max(0.0),
            alone: self.alone.max(0.0),
            read: self.read.max(0.0),
            write: self.write.max(0.0),
        }
    }

    /// No more of anything than in another.
    #[must_use]
    pub fn at_most(self, most: Self) -> Self {
        Self {
            wait: self.wait.min(most.wait),
            random: self.random.min(most.random),
            beside: self.beside.min(most.beside),
            alone: self.alone.min(most.alone),
            read: self.read.min(most.read),
            write: self.write.min(most.write),
        }
    }

    /// Without what rounding left of the work that was shifted away; `whole` is what it was a part of.
    #[must_use]
    pub fn without_dust(self, whole: Self) -> Self {
        let keep = |part: f64, whole: f64| if part.abs() <= DUST * whole { 0.0 } else { part };
        Self {
            wait: keep(self.wait, whole.wait),
            random: keep(self.random, whole.random),
            beside: keep(self.beside, whole.beside),
            alone: keep(self.alone, whole.alone),
            read: keep(self.read, whole.read),
            write: keep(self.write, whole.write),
        }
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wait: self.wait + other.wait,
            random: self.random + other.random,
            beside: self.beside + other.beside,
            alone: self.alone + other.alone,
            read: self.read + other.read,
            write: self.write + other.write,
        }
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
        Self {
            wait: self.wait * factor,
            random: self.random * factor,
            beside: self.beside * factor,
            alone: self.alone * factor,
            read: self.read * factor,
            write: self.write * factor,
        }
    }
}
