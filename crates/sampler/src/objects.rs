//! The program's data objects: every allocation site, static array and mapped file, once.
//!
//! The world (see `world.rs`) reports who got and who gave back how much; this keeps the books.
//! Objects are numbered in the order in which they first appear, so numbers are reproducible.

use std::collections::BTreeMap;

use tierloom_model::ObjectKind;

/// Position of an object in the books.
pub(crate) type ObjectId = usize;

/// Where an address of code lies: module and virtual address, or no module and the address itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodePlace {
    pub(crate) module: Option<usize>,
    pub(crate) address: u64,
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
pub(crate) struct Entry {
    pub(crate) identity: Identity,
    pub(crate) kind: ObjectKind,
    pub(crate) live_bytes: u64,
    pub(crate) most_bytes: u64,
    pub(crate) allocations: u64,
    pub(crate) first_ns: u64,
    /// Last release; only meaningful while nothing is alive.
    pub(crate) released_ns: u64,
    /// First sample that touched it.
    pub(crate) touched_ns: Option<u64>,
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    by_identity: BTreeMap<Identity, ObjectId>,
    pub(crate) entries: Vec<Entry>,
}

impl Objects {
    /// The object of an identity; opens its books when it is new.
    pub(crate) fn find(&mut self, identity: Identity, kind: ObjectKind, time_ns: u64) -> ObjectId {
        if let Some(id) = self.by_identity.get(&identity) {
            return *id;
        }
        let id = self.entries.len();
        self.by_identity.insert(identity.clone(), id);
        self.entries.push(Entry {
            identity,
            kind,
            live_bytes: 0,
            most_bytes: 0,
            allocations: 0,
            first_ns: time_ns,
            released_ns: time_ns,
            touched_ns: None,
        });
        id
    }

    /// The object got more memory.
    pub(crate) fn gain(&mut self, id: ObjectId, bytes: u64) {
        let entry = &mut self.entries[id];
        entry.allocations += 1;
        entry.live_bytes += bytes;
        entry.most_bytes = entry.most_bytes.max(entry.live_bytes);
    }

    /// The object gave memory back.
    pub(crate) fn lose(&mut self, id: ObjectId, bytes: u64, time_ns: u64) {
        let entry = &mut self.entries[id];
        entry.live_bytes = entry.live_bytes.saturating_sub(bytes);
        entry.released_ns = time_ns;
    }

    /// A sample touched the object.
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
        assert_eq!((entry.most_bytes, entry.allocations, entry.first_ns, entry.released_ns), (110, 3, 5, 7));
    }
}
