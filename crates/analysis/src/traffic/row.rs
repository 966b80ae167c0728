//! A row of the profile: what one object was asked for in one pattern.

use tierloom_model::Pattern;
use tierloom_model::units::LINE_BYTES_F64;

use crate::address_space::objects::ObjectId;

/// Lines that prefetchers keep ahead of a stream: up to 20 by Intel's optimisation manual (2.5.5.4),
/// more with several streams. Engines cap it by the machine's `stream_lines`. Assumed.
pub(crate) const STREAM_LINES: f64 = 32.0;

/// Accesses of one pattern to one object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) read_bytes: f64,
    pub(crate) write_bytes: f64,
    pub(crate) dram_read_bytes: f64,
    pub(crate) dram_write_bytes: f64,
    /// Lines touched, in bytes, whatever cache they were found in.
    pub(crate) touched_bytes: f64,
    /// Misses that one thread has in flight, of those that the program waits for.
    pub(crate) mlp: f64,
    /// What that would be if every touch missed.
    pub(crate) uncached_mlp: f64,
    /// Touched lines that come from memory, 0 to 1.
    pub(crate) miss: f64,
    /// Those of them that the program waits for, 0 to `miss`: the kernel brought the others when it filled their page.
    pub(crate) waited: f64,
}

impl Traffic {
    /// Says how many of its touches fetched a line from memory; the part that is waited for stays.
    pub(crate) fn fetch(&mut self, touches: Touches, fetched: f64) {
        let waited = if self.miss > 0.0 { self.waited / self.miss } else { 1.0 };
        let share = |part: f64| if touches.lines > 0.0 { part / touches.lines } else { 0.0 };
        (self.miss, self.waited) = (share(fetched), share(fetched) * waited);
        self.touched_bytes = touches.lines * LINE_BYTES_F64;
        self.dram_read_bytes = fetched * LINE_BYTES_F64;
        self.dram_write_bytes = fetched * share(touches.dirty) * LINE_BYTES_F64;
    }

    /// Lines from memory that a thread waits for one after the other, bytes.
    pub(crate) fn one_after_the_other(&self) -> f64 {
        let filled = self.filled_bytes();
        (self.dram_read_bytes - filled) / self.mlp.max(1.0) + filled / STREAM_LINES
    }

    /// Touches of lines that a cache had, one after the other, bytes.
    pub(crate) fn hits_one_after_the_other(&self) -> f64 {
        (self.touched_bytes - self.dram_read_bytes).max(0.0) / self.uncached_mlp.max(1.0)
    }

    /// Bytes from memory that nobody waited for: the kernel brought them when it filled their pages.
    pub(crate) fn filled_bytes(&self) -> f64 {
        if self.miss > 0.0 { self.dram_read_bytes * (1.0 - self.waited / self.miss).max(0.0) } else { 0.0 }
    }

    /// The part with these shares of what is read, what is written, of the lines touched, and of those that came from memory.
    pub(crate) fn part(&self, reads: f64, writes: f64, touches: f64, fetched: f64) -> Self {
        Self {
            reads: self.reads * reads,
            writes: self.writes * writes,
            read_bytes: self.read_bytes * reads,
            write_bytes: self.write_bytes * writes,
            dram_read_bytes: self.dram_read_bytes * fetched,
            dram_write_bytes: self.dram_write_bytes * writes,
            touched_bytes: self.touched_bytes * touches,
            ..*self
        }
    }
}

/// Touches of whole lines by one pattern on one object, during the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Touches {
    pub(crate) lines: f64,
    /// Those that leave the line dirty.
    pub(crate) dirty: f64,
}

/// Key of a row of the profile.
pub(crate) type Row = (ObjectId, Pattern);
