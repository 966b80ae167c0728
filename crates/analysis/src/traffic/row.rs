//! A row of the profile: what one object was asked for in one pattern.

use tierloom_model::units::LINE_BYTES_F64;
use tierloom_model::{Pattern, Within};

use crate::address_space::objects::ObjectId;

/// Lines in flight that no thread waits for one by one, those of streams and of stores: as many as a core can hold, which
/// engines know of each machine (`stream_lines`, `demand_lines`). Misses that the second-level cache of Zen 3 to 5 holds
/// (AMD, *Software Optimization Guide for Family 19h*, 2.12). Published.
pub(crate) const FREE_LINES: f64 = 64.0;

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
    /// The part of the touches, 0 to 1, whose lines only stores ask for: nobody waits for one of them.
    pub(crate) stored: f64,
    /// How far the lines from memory may be off.
    pub(crate) within: Option<Within>,
}

impl Traffic {
    /// Says how many of its touches fetched a line from memory; the part that is waited for stays.
    pub(crate) fn fetch(&mut self, touches: Touches, fetched: f64) {
        let waited = if self.miss > 0.0 { self.waited / self.miss } else { 1.0 };
        let share = |part: f64| if touches.lines > 0.0 { part / touches.lines } else { 0.0 };
        (self.miss, self.waited) = (share(fetched), share(fetched) * waited);
        self.stored = share(touches.stored);
        self.touched_bytes = touches.lines * LINE_BYTES_F64;
        self.dram_read_bytes = fetched * LINE_BYTES_F64;
        self.dram_write_bytes = fetched * share(touches.dirty) * LINE_BYTES_F64;
    }

    /// Lines from memory that a thread waits for one after the other, with so many in flight at the most, bytes.
    pub(crate) fn one_after_the_other(&self, most: f64) -> f64 {
        let filled = self.filled_bytes();
        (self.dram_read_bytes - filled) / self.mlp.clamp(1.0, most) + filled / FREE_LINES
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
    /// Those that only stores ask for.
    pub(crate) stored: f64,
}

impl std::ops::AddAssign for Touches {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.dirty += other.dirty;
        self.stored += other.stored;
    }
}

/// Key of a row of the profile.
pub(crate) type Row = (ObjectId, Pattern);
