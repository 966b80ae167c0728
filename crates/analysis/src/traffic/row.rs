//! A row of the profile: what one object was asked for in one pattern.

use tierloom_model::Pattern;

use crate::address_space::objects::ObjectId;

/// Accesses of one pattern to one object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) read_bytes: f64,
    pub(crate) write_bytes: f64,
    pub(crate) dram_read_bytes: f64,
    pub(crate) dram_write_bytes: f64,
    pub(crate) mlp: f64,
    /// Touched lines that come from memory, 0 to 1.
    pub(crate) miss: f64,
    /// Those of them that the program waits for, 0 to `miss`: the kernel brought the others when it filled their page.
    pub(crate) waited: f64,
}

impl Traffic {
    /// The part with these shares of what is read, what is written, and of the lines touched.
    pub(crate) fn part(&self, reads: f64, writes: f64, touches: f64) -> Self {
        Self {
            reads: self.reads * reads,
            writes: self.writes * writes,
            read_bytes: self.read_bytes * reads,
            write_bytes: self.write_bytes * writes,
            dram_read_bytes: self.dram_read_bytes * touches,
            dram_write_bytes: self.dram_write_bytes * writes,
            ..*self
        }
    }
}

/// Key of a row of the profile.
pub(crate) type Row = (ObjectId, Pattern);
