//! What memory samples add up to, by owner: an object, the kernel, a stack, or nobody.

use tierloom_model::DataSource;
use tierloom_recording::MemoryAccess;

use crate::address_space::objects::ObjectId;
use crate::address_space::{AddressSpaces, Place};

/// Period of a sample that carries none: the recording warns of it.
const UNKNOWN_PERIOD: f64 = 1.0;
/// Both halves of a 64-bit address space begin with the bit of their side: x86-64 (Intel SDM 1, 3.3.7.1) and aarch64.
const KERNEL_SIDE: u64 = 1 << 63;

/// Whose memory a sample touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// An object.
    Object(ObjectId),
    /// Nobody's that is known.
    Other,
    /// The kernel's.
    Kernel,
    /// A thread's stack.
    Stack,
}

/// Owners that are no objects, in the order of a profile, and what it calls them.
pub(crate) const RESTS: [(Owner, &str); 3] =
    [(Owner::Other, "[other]"), (Owner::Kernel, "[kernel]"), (Owner::Stack, "[stack]")];

impl Owner {
    /// The owner of what a sample touched, and the offset in its piece.
    pub(crate) fn of(sample: &MemoryAccess, spaces: &mut AddressSpaces<'_>) -> (Self, u64) {
        if sample.address & KERNEL_SIDE != 0 {
            return (Self::Kernel, 0);
        }
        // Such samples have no stack pointer: one that no address of user space is near.
        match spaces.locate(sample.pid, sample.address, KERNEL_SIDE) {
            Place::Object(object, offset) => (Self::Object(object), offset),
            Place::Stack => (Self::Stack, 0),
            Place::Nowhere => (Self::Other, 0),
        }
    }

    /// The object, where it is one.
    pub(crate) fn object(self) -> Option<ObjectId> {
        if let Self::Object(id) = self { Some(id) } else { None }
    }
}

/// Sums of one owner; each sample counts as often as it stands for.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) samples: usize,
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) missed_reads: f64,
    pub(crate) missed_writes: f64,
    /// Cycles of all its loads.
    pub(crate) cycles: f64,
    /// The same of loads from memory.
    pub(crate) memory_cycles: f64,
    /// Those of its stores.
    store_cycles: f64,
    /// Accesses of another node's data, and of data that another core's cache gave.
    remote: f64,
    shared: f64,
}

impl Sums {
    pub(crate) fn add(&mut self, sample: &MemoryAccess) {
        let period = if sample.period == 0 { UNKNOWN_PERIOD } else { sample.period as f64 };
        let if_so = |holds: bool| if holds { period } else { 0.0 };
        let cycles = period * sample.cycles as f64;
        self.samples += 1;
        self.remote += if_so(sample.source.remote);
        self.shared += if_so(sample.source.shared);
        if sample.store {
            self.writes += period;
            self.missed_writes += if_so(sample.source.memory);
            self.store_cycles += cycles;
        } else {
            self.reads += period;
            self.missed_reads += if_so(sample.source.memory);
            self.cycles += cycles;
            self.memory_cycles += if sample.source.memory { cycles } else { 0.0 };
        }
    }

    /// Who shares, who is far, and how long accesses take.
    pub(crate) fn data_source(&self) -> DataSource {
        let all = self.reads + self.writes;
        let mean = |cycles: f64, count: f64| (cycles > 0.0).then(|| cycles / count);
        DataSource {
            remote: (self.remote / all).min(1.0),
            shared: (self.shared / all).min(1.0),
            load_cycles: mean(self.cycles, self.reads),
            store_cycles: mean(self.store_cycles, self.writes),
        }
    }
}
