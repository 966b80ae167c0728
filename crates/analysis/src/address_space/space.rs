//! The address space of one process: what is mapped, allocated and loaded where.

use crate::address_space::objects::ObjectId;
use crate::address_space::ranges::RangeMap;

/// A module where it was loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loaded {
    pub(super) module: usize,
    /// Addresses less virtual addresses of the file.
    pub(super) bias: u64,
    pub(super) since_ns: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Mapped {
    pub(super) path: usize,
    pub(super) file_offset: u64,
    pub(super) since_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Owned {
    pub(super) object: ObjectId,
    /// It made the object larger than it had been.
    pub(super) new: bool,
    /// Process that allocated it; a forked child has a copy that is not in the books.
    pub(super) pid: u32,
    /// Addresses alone, which nothing may be read from or written to: they count for nothing.
    pub(super) idle: bool,
}

impl Owned {
    /// Whether it is in the books of this process.
    pub(super) fn counts(&self, pid: u32) -> bool {
        self.pid == pid && !self.idle
    }
}

/// One process.
#[derive(Debug, Clone, Default)]
pub(super) struct AddressSpace {
    pub(super) mappings: RangeMap<Mapped>,
    pub(super) allocations: RangeMap<Owned>,
    pub(super) statics: RangeMap<ObjectId>,
    /// Whole modules, .bss included.
    pub(super) modules: RangeMap<Loaded>,
}
