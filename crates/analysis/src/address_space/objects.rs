//! The program's data objects: every allocation site, static array and mapped file, once.
//!
//! The address spaces report who got and who gave back how much; this keeps the books.
//! Objects are numbered in the order in which they first appear, so numbers are reproducible.

use std::collections::BTreeMap;

use index_vec::{IndexVec, define_index_type};
use tierloom_binary::code::CodePlace;
use tierloom_model::ObjectKind;

define_index_type! {
    /// Position of an object in the books.
    pub(crate) struct ObjectId = u32;
}

/// What makes two pieces of memory the same object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identity {
    /// Return addresses of the allocation, innermost first.
    Stack(Vec<CodePlace>),
    /// A static array.
    Symbol { module: usize, name: String },
    /// A mapped file.
    File(String),
    /// Memory that cannot be told apart further.
    Name(String),
}

/// The books of one object.
#[derive(Debug, Clone)]
pub(crate) struct DataObject {
    pub(crate) identity: Identity,
    pub(crate) kind: ObjectKind,
    pub(crate) live_bytes: u64,
    pub(crate) most_bytes: u64,
    pub(crate) allocations: u64,
    pub(crate) first_ns: u64,
    /// Last release; only meaningful while nothing is alive.
    pub(crate) released_ns: u64,
    /// When it was first seen touched.
    pub(crate) touched_ns: Option<u64>,
    /// When it got its pages.
    pub(crate) filling: Filling,
}

/// Page faults of memory that made an object larger than it had been.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Filling {
    faults: u64,
    sum_ns: u128,
}

impl DataObject {
    /// When its pages were all there, if they came evenly from its first touch on and around the mean
    /// time of their faults; `None` where too few were seen. One page that comes late moves it little.
    pub(crate) fn populated_ns(&self) -> Option<u64> {
        /// Below this the mean says no more than the first.
        const TELLING: u64 = 4;
        let touched = self.touched_ns.filter(|_| self.filling.faults >= TELLING)?;
        let mean = u64::try_from(self.filling.sum_ns / u128::from(self.filling.faults)).unwrap_or(u64::MAX);
        Some(touched + 2 * mean.saturating_sub(touched))
    }
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    by_identity: BTreeMap<Identity, ObjectId>,
    pub(crate) entries: IndexVec<ObjectId, DataObject>,
}

impl Objects {
    /// The object of an identity; opens its books when it is new.
    pub(crate) fn find(&mut self, identity: Identity, kind: ObjectKind, time_ns: u64) -> ObjectId {
        if let Some(id) = self.by_identity.get(&identity) {
            return *id;
        }
        let id = self.entries.push(DataObject {
            identity: identity.clone(),
            kind,
            live_bytes: 0,
            most_bytes: 0,
            allocations: 0,
            first_ns: time_ns,
            released_ns: time_ns,
            touched_ns: None,
            filling: Filling::default(),
        });
        self.by_identity.insert(identity, id);
        id
    }

    /// The object got more memory; tells whether it is larger now than it ever was.
    pub(crate) fn gain(&mut self, id: ObjectId, bytes: u64) -> bool {
        let entry = &mut self.entries[id];
        let most = entry.most_bytes;
        entry.allocations += 1;
        entry.live_bytes += bytes;
        entry.most_bytes = most.max(entry.live_bytes);
        entry.most_bytes > most
    }

    /// The object gave memory back.
    pub(crate) fn lose(&mut self, id: ObjectId, bytes: u64, time_ns: u64) {
        let entry = &mut self.entries[id];
        entry.live_bytes = entry.live_bytes.saturating_sub(bytes);
        entry.released_ns = time_ns;
    }

    /// A page of the object was missing; `new` where it is one that the object did not have before.
    pub(crate) fn fault(&mut self, id: ObjectId, time_ns: u64, new: bool) {
        self.touch(id, time_ns);
        if new {
            let filling = &mut self.entries[id].filling;
            filling.faults += 1;
            filling.sum_ns += u128::from(time_ns);
        }
    }

    /// The object was touched.
    pub(crate) fn touch(&mut self, id: ObjectId, time_ns: u64) {
        let touched = &mut self.entries[id].touched_ns;
        *touched = Some(touched.map_or(time_ns, |known| known.min(time_ns)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_counts_its_most_bytes_at_once() {
        let mut objects = Objects::default();
        let site = Identity::Name("site".to_owned());
        let id = objects.find(site.clone(), ObjectKind::Heap, 5);
        objects.gain(id, 100);
        objects.lose(id, 100, 7);
        objects.gain(id, 60);
        objects.gain(id, 50);
        assert_eq!(objects.find(site, ObjectKind::Heap, 9), id);
        let entry = &objects.entries[id];
        assert_eq!(entry.populated_ns(), None);
        assert_eq!((entry.most_bytes, entry.allocations, entry.first_ns, entry.released_ns), (110, 3, 5, 7));
    }

    #[test]
    fn pages_that_replace_others_do_not_fill_an_object() {
        let mut objects = Objects::default();
        let id = objects.find(Identity::Name("site".to_owned()), ObjectKind::Heap, 0);
        assert!(objects.gain(id, 100));
        for time_ns in [10, 20, 30, 40] {
            objects.fault(id, time_ns, true);
        }
        objects.lose(id, 100, 50);
        assert!(!objects.gain(id, 100));
        objects.fault(id, 900, false);
        assert_eq!((objects.entries[id].touched_ns, objects.entries[id].populated_ns()), (Some(10), Some(40)));
    }
}
