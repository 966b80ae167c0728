//! The objects that a plan has placed in this process and that are still there.
//!
//! A fixed table without locks: an entry is claimed and emptied by compare-and-swap of its address,
//! and only whoever holds the claim touches the rest. It must work in signal handlers and forked
//! children, so it never allocates and never waits. Addresses are kept with all bits turned: a leak
//! checker that scans our memory must not take our note of a block for the program's pointer to it.

use std::sync::atomic::{AtomicU64, Ordering};

use tierloom_wire::scatter;

use crate::mapped::{Mapped, Zeroed};

/// Entries: more placed objects than this at once are left alone.
const ENTRIES: usize = 1 << 17;
/// How far an entry lies at most from where it belongs.
const PROBES: usize = 256;
const FREE: u64 = 0;
const CLAIMED: u64 = 1;

/// What was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    /// Address of the block or range as the program knows it.
    pub(super) address: u64,
    /// First whole page, and bytes of whole pages.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Position of its rule.
    pub(super) rule: u32,
    /// Number of the plan that it was placed by.
    pub(super) plan: u32,
    /// Unit of the law by which its pages are dealt out; 0 = any node of the policy will do.
    pub(super) unit: u64,
    /// Mappings of the kernel's that it was cut into.
    pub(super) stripes: u32,
    pub(super) kind: Kind,
    /// Its pages are locked.
    pub(super) held: bool,
    /// Its pages were brought in before they were touched.
    pub(super) populated: bool,
    /// Its pages are a few that repeat.
    pub(super) aliased: bool,
}

/// What must be undone when it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A block of the allocator, whose pages others get next.
    Heap,
    /// A mapping of its own.
    Mapping,
    /// An array of a module; it stays.
    Static,
    /// A mapping of a file.
    File,
}

struct Entry {
    address: AtomicU64,
    words: [AtomicU64; 5],
}

/// The table.
pub(super) struct Objects([Entry; ENTRIES]);

/// The objects of this process.
pub(super) static OBJECTS: Mapped<Objects> = Mapped::nothing();

// SAFETY: all fields are atomics, and 0 means a free entry.
unsafe impl Zeroed for Objects {}

impl Objects {
    /// Adds an object; `false` where there is no room.
    pub(super) fn insert(&self, object: &Object) -> bool {
        let claim = |entry: &&Entry| {
            entry.address.load(Ordering::Relaxed) == FREE
                && entry.address.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(entry) = self.near(object.address).find(claim) else { return false };
        for (word, value) in entry.words.iter().zip(object.words()) {
            word.store(value, Ordering::Relaxed);
        }
        entry.address.store(!object.address, Ordering::Release);
        true
    }

    /// Takes an object out.
    pub(super) fn remove(&self, address: u64) -> Option<Object> {
        let claim = |entry: &&Entry| {
            entry.address.load(Ordering::Relaxed) == !address
                && entry.address.compare_exchange(!address, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let entry = self.near(address).find(claim)?;
        let object = entry.read(address);
        entry.address.store(FREE, Ordering::Release);
        Some(object)
    }

    /// Calls `each` for all objects that are there.
    pub(super) fn for_each(&self, mut each: impl FnMut(&Object)) {
        for entry in &self.0 {
            let address = entry.address.load(Ordering::Acquire);
            if address > CLAIMED {
                each(&entry.read(!address));
            }
        }
    }

    fn near(&self, address: u64) -> impl Iterator<Item = &Entry> {
        #[allow(clippy::cast_possible_truncation)]
        let index = (scatter(address / 16) >> (64 - ENTRIES.trailing_zeros())) as usize;
        (0..PROBES).map(move |probe| &self.0[(index + probe) % ENTRIES])
    }
}

impl Entry {
    fn read(&self, address: u64) -> Object {
        let [turned, bytes, rule, unit, rest] = [0, 1, 2, 3, 4].map(|at| self.words[at].load(Ordering::Relaxed));
        #[allow(clippy::cast_possible_truncation)]
        let (low, high) = (rule as u32, (rule >> 32) as u32);
        #[allow(clippy::cast_possible_truncation)]
        let stripes = (rest >> 8) as u32;
        let kind = match rest & 3 {
            0 => Kind::Heap,
            1 => Kind::Mapping,
            2 => Kind::Static,
            _ => Kind::File,
        };
        let start = !turned;
        let [held, populated, aliased] = [4, 8, 16].map(|flag| rest & flag != 0);
        Object { address, start, bytes, rule: low, plan: high, unit, stripes, kind, held, populated, aliased }
    }
}

impl Object {
    /// Behind its last whole page.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// It is a mapping of the program's all of whose pages are a few that repeat.
    pub(super) fn is_aliased_mapping(&self) -> bool {
        self.aliased && self.kind == Kind::Mapping
    }

    fn words(&self) -> [u64; 5] {
        let flags = u64::from(self.held) << 2 | u64::from(self.populated) << 3 | u64::from(self.aliased) << 4;
        let rest = self.kind as u64 | flags | u64::from(self.stripes) << 8;
        [!self.start, self.bytes, u64::from(self.rule) | u64::from(self.plan) << 32, self.unit, rest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Box<Objects> {
        // SAFETY: all fields are atomics, for which zero is valid.
        unsafe { Box::<Objects>::new_zeroed().assume_init() }
    }

    fn object(address: u64) -> Object {
        let (start, bytes) = (address.next_multiple_of(4096), 8192);
        let (rule, plan, unit, stripes) = (7, u32::MAX, 2 << 20, u32::MAX);
        let (held, populated, aliased) = (true, true, true);
        Object { address, start, bytes, rule, plan, unit, stripes, kind: Kind::File, held, populated, aliased }
    }

    #[test]
    fn what_went_in_comes_out_once() {
        let table = fresh();
        let (held, populated, aliased) = (false, false, false);
        let heap = Object { kind: Kind::Heap, held, populated, aliased, stripes: 3, ..object(0x1010) };
        assert!(table.insert(&object(0x9000)) && table.insert(&heap));
        let mut seen = 0;
        table.for_each(|_| seen += 1);
        assert_eq!(seen, 2);
        assert_eq!(table.remove(0x1010), Some(heap));
        assert_eq!(table.remove(0x1010), None);
        assert_eq!(table.remove(0x9000), Some(object(0x9000)));
    }

    #[test]
    fn a_hundred_thousand_objects_have_room() {
        let table = fresh();
        let addresses = || (1..=100_000_u64).map(|block| block * (36 << 10) + 16);
        assert!(addresses().all(|address| table.insert(&object(address))));
        assert!(addresses().all(|address| table.remove(address).is_some()));
        assert!(addresses().all(|address| table.remove(address).is_none()));
    }
}
