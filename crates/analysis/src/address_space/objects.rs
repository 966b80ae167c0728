//! The program's data objects: every allocation site, static array and mapped file, once.
//!
//! The address spaces report who got and who gave back how much; this keeps the books.
//! Objects are numbered in the order in which they first appear, so numbers are reproducible.

use std::collections::BTreeMap;

use index_vec::{IndexVec, define_index_type};
use tierloom_binary::code::CodePlace;
use tierloom_model::ObjectKind;
use tierloom_model::units::{PAGE_BYTES, round_to_u64};
use tierloom_recording::FAULTS_PER_RECORD;

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
    /// Nobody allocates or releases it.
    pub(crate) is_lasting: bool,
    pub(crate) live_bytes: u64,
    pub(crate) most_bytes: u64,
    pub(crate) allocations: u64,
    pub(crate) first_ns: u64,
    /// Last release; only meaningful while nothing is alive.
    pub(crate) released_ns: u64,
    /// When it was first seen touched by the program.
    touched_ns: Option<u64>,
    /// When it got its pages.
    pub(crate) filling: Filling,
    /// How many of its bytes had pages when somebody looked.
    looked: Option<Looked>,
    grown: Option<Grown>,
    /// Most memory that it had at once, bytes; known when the books are closed.
    pub(crate) memory_bytes: u64,
}

/// A look at an object when it had more bytes by this part tells more than all earlier ones, one when it had less nothing.
const ALIKE: f64 = 0.9;

/// Looks at an object when it had about as many bytes as ever while somebody looked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Looked {
    live_bytes: u64,
    most_bytes: u64,
    /// When the last two looks were, and what they found; the first one stands against its first allocation.
    before: (u64, u64),
    last: (u64, u64),
    /// Page faults until the last look.
    faults: u64,
}

impl Looked {
    /// Of each byte that it has, how many have pages when it has been filled until then, 0 to 1.
    fn fullness(&self, filling: &Filling, until_ns: u64) -> f64 {
        let since = if filling.faults > 0 { self.by_faults(filling) } else { self.by_time(until_ns) };
        let bytes = (self.most_bytes as f64).max(self.last.1 as f64 + since);
        (bytes / self.live_bytes as f64).min(1.0)
    }

    /// Bytes since the last look, by page faults: each brought as many as those before.
    fn by_faults(&self, filling: &Filling) -> f64 {
        /// Fewer do not tell how large pages are.
        const TELLING: u64 = 8;
        let by_kernel = (FAULTS_PER_RECORD * PAGE_BYTES) as f64;
        let each = if self.faults < TELLING { by_kernel } else { self.last.1 as f64 / self.faults as f64 };
        (filling.faults - self.faults) as f64 * each
    }

    /// The same where no faults are seen: what grew between the last two looks is taken to grow on.
    fn by_time(&self, until_ns: u64) -> f64 {
        let (passed, grown) = (self.last.0 - self.before.0, self.last.1.saturating_sub(self.before.1));
        grown as f64 * until_ns.saturating_sub(self.last.0) as f64 / passed.max(1) as f64
    }
}

/// Looks that found more pages of an object than all before: what the kernel fills, as `read` does, has no page faults.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Grown {
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
}

/// Page faults of memory that made an object larger than it had been.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Filling {
    faults: u64,
    sum_ns: u128,
}

impl DataObject {
    /// Most memory that it had at once until a moment, bytes: the pages of its addresses, where somebody looked. One that
    /// was touched and never had any when somebody did was looked at in the wrong moments.
    fn memory_until(&self, until_ns: u64) -> u64 {
        let alive_ns = if self.live_bytes > 0 { until_ns } else { self.released_ns };
        let telling = self.looked.filter(|looked| looked.most_bytes > 0 || self.touched_ns.is_none());
        telling.map_or(self.most_bytes, |looked| {
            let bytes = round_to_u64(looked.fullness(&self.filling, alive_ns) * self.most_bytes as f64);
            // Nobody looked while it was largest: its page faults were seen, if it had pages then.
            let is_missed = (looked.live_bytes as f64) < ALIKE * self.most_bytes as f64;
            let faulted = if is_missed { self.filling.faults * FAULTS_PER_RECORD * PAGE_BYTES } else { 0 };
            bytes.max(faulted).max(PAGE_BYTES).min(self.most_bytes)
        })
    }

    fn look(&mut self, time_ns: u64, present_bytes: u64) {
        let (live, present) = (self.live_bytes, present_bytes.min(self.live_bytes));
        if present as f64 * ALIKE > self.grown.map_or(0.0, |grown| grown.bytes as f64) {
            let first_ns = self.grown.map_or(time_ns, |grown| grown.first_ns);
            self.grown = Some(Grown { bytes: present, first_ns, last_ns: time_ns });
        }
        let last = (time_ns, present);
        let first =
            Looked { live_bytes: 0, most_bytes: 0, before: last, last: (self.first_ns.min(time_ns), 0), faults: 0 };
        let earlier = self.looked.unwrap_or(first);
        if (live as f64) < ALIKE * earlier.live_bytes as f64 {
            return;
        }
        let is_larger = live as f64 * ALIKE > earlier.live_bytes as f64;
        let most_bytes = if is_larger { present } else { earlier.most_bytes.max(present) };
        let (live_bytes, before, faults) = (earlier.live_bytes.max(live), earlier.last, self.filling.faults);
        self.looked = Some(Looked { live_bytes, most_bytes, before, last, faults });
    }

    /// When its first page was there, at the latest: the program was seen to touch it, or somebody to look at it.
    pub(crate) fn first_page_ns(&self) -> Option<u64> {
        [self.touched_ns, self.grown.map(|grown| grown.first_ns)].into_iter().flatten().min()
    }

    /// When its pages were all there, if they came evenly from its first touch on and around the mean
    /// time of their faults; where too few were seen of many pages, by looks. One page that comes late moves it little.
    pub(crate) fn populated_ns(&self) -> Option<u64> {
        /// Below this the mean says no more than the first.
        const TELLING: u64 = 4;
        let first = self.first_page_ns()?;
        if self.filling.faults >= TELLING {
            let mean = u64::try_from(self.filling.sum_ns / u128::from(self.filling.faults)).unwrap_or(u64::MAX);
            return Some(first + 2 * mean.saturating_sub(first));
        }
        let grown = self.grown.filter(|grown| grown.bytes >= TELLING * FAULTS_PER_RECORD * PAGE_BYTES)?;
        Some(grown.last_ns).filter(|last_ns| *last_ns > first)
    }
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    by_identity: BTreeMap<Identity, ObjectId>,
    pub(crate) entries: IndexVec<ObjectId, DataObject>,
    live: Live,
}

/// What was allocated when much was.
#[derive(Debug, Default)]
struct Live {
    bytes: u64,
    most_bytes: u64,
    /// Bytes by object at moments at which there were more than ever.
    moments: Vec<Vec<(ObjectId, u64)>>,
}

/// So many times the most bytes at the last moment are worth another one.
const MORE: f64 = 1.02;

impl Objects {
    /// The object of an identity; opens its books when it is new.
    pub(crate) fn find(&mut self, identity: Identity, kind: ObjectKind, time_ns: u64) -> ObjectId {
        if let Some(id) = self.by_identity.get(&identity) {
            return *id;
        }
        let id = self.entries.push(DataObject {
            identity: identity.clone(),
            kind,
            is_lasting: false,
            live_bytes: 0,
            most_bytes: 0,
            allocations: 0,
            first_ns: time_ns,
            released_ns: time_ns,
            touched_ns: None,
            filling: Filling::default(),
            looked: None,
            grown: None,
            memory_bytes: 0,
        });
        self.by_identity.insert(identity, id);
        id
    }

    /// The object of an identity, if it has books.
    pub(crate) fn known(&self, identity: &Identity) -> Option<ObjectId> {
        self.by_identity.get(identity).copied()
    }

    /// The object got more memory; tells whether it is larger now than it ever was.
    pub(crate) fn gain(&mut self, id: ObjectId, bytes: u64) -> bool {
        let entry = &mut self.entries[id];
        let most = entry.most_bytes;
        entry.allocations += 1;
        entry.live_bytes += bytes;
        entry.most_bytes = most.max(entry.live_bytes);
        let is_larger = entry.most_bytes > most;
        self.live.bytes += bytes;
        if self.live.bytes as f64 > MORE * self.live.most_bytes as f64 {
            let live = self.entries.iter_enumerated().filter(|(_, entry)| entry.live_bytes > 0 && !entry.is_lasting);
            self.live.moments.push(live.map(|(id, entry)| (id, entry.live_bytes)).collect());
            self.live.most_bytes = self.live.bytes;
        }
        is_larger
    }

    /// Most memory that all had at once, bytes, when the books are closed: what is there from some moment on, and of the
    /// others the part of their addresses that is memory; `None` where no allocations were seen.
    pub(crate) fn at_once_bytes(&self) -> Option<u64> {
        let lasting: f64 =
            self.entries.iter().filter(|entry| entry.is_lasting).map(|entry| entry.memory_bytes as f64).sum();
        let memory = |(id, live_bytes): &(ObjectId, u64)| {
            let entry = &self.entries[*id];
            *live_bytes as f64 * entry.memory_bytes as f64 / entry.most_bytes.max(1) as f64
        };
        let moments = self.live.moments.iter().map(|live| live.iter().map(memory).sum::<f64>());
        moments.reduce(f64::max).map(|most: f64| round_to_u64(most * MORE + lasting))
    }

    /// The object gave memory back.
    pub(crate) fn lose(&mut self, id: ObjectId, bytes: u64, time_ns: u64) {
        let entry = &mut self.entries[id];
        let lost = bytes.min(entry.live_bytes);
        entry.live_bytes -= lost;
        entry.released_ns = time_ns;
        self.live.bytes = self.live.bytes.saturating_sub(lost);
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

    /// What somebody saw who looked at all memory: by object, bytes that have pages.
    pub(crate) fn look(&mut self, time_ns: u64, present: &BTreeMap<ObjectId, u64>) {
        let there = self.entries.iter_mut_enumerated().filter(|(_, entry)| entry.live_bytes > 0);
        there.for_each(|(id, entry)| entry.look(time_ns, present.get(&id).copied().unwrap_or(0)));
    }

    /// The run has ended: what its objects came to.
    pub(crate) fn close(&mut self, end_ns: u64) {
        self.entries.iter_mut().for_each(|entry| entry.memory_bytes = entry.memory_until(end_ns));
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
    fn memory_is_what_has_pages() {
        const PAGE: u64 = PAGE_BYTES;
        let mut objects = Objects::default();
        let id = objects.find(Identity::Name("site".to_owned()), ObjectKind::Heap, 0);
        let look = |objects: &mut Objects, time_ns, pages| objects.look(time_ns, &BTreeMap::from([(id, pages * PAGE)]));
        let pages = |objects: &Objects, until_ns| objects.entries[id].memory_until(until_ns) / PAGE;
        assert_eq!(pages(&objects, 100), 0);
        objects.gain(id, 1000 * PAGE);
        assert_eq!(pages(&objects, 100), 1000, "nobody looked");
        look(&mut objects, 5, 0);
        assert_eq!(pages(&objects, 100), 1, "a size of nothing is none");
        look(&mut objects, 10, 100);
        assert_eq!(pages(&objects, 100), 1000, "it is filled ever more");
        look(&mut objects, 20, 200);
        assert_eq!(pages(&objects, 40), 400);
        objects.fault(id, 25, true);
        assert_eq!(pages(&objects, 40), 217, "one page fault in so many is recorded");
        look(&mut objects, 30, 200);
        assert_eq!(pages(&objects, 100), 200);
        objects.lose(id, 990 * PAGE, 40);
        look(&mut objects, 50, 10);
        assert_eq!(pages(&objects, 100), 200, "it has little now");
        objects.gain(id, 1990 * PAGE);
        look(&mut objects, 60, 1000);
        look(&mut objects, 70, 1000);
        assert_eq!(pages(&objects, 100), 1000);
    }

    #[test]
    fn what_was_touched_has_memory_even_if_nobody_saw_it() {
        let mut objects = Objects::default();
        let id = objects.find(Identity::Name("site".to_owned()), ObjectKind::Heap, 0);
        objects.gain(id, 1 << 20);
        objects.look(10, &BTreeMap::new());
        assert_eq!(objects.entries[id].memory_until(100), PAGE_BYTES);
        objects.touch(id, 20);
        assert_eq!(objects.entries[id].memory_until(100), 1 << 20);
    }

    #[test]
    fn page_faults_tell_what_looks_came_too_late_for() {
        let mut objects = Objects::default();
        let id = objects.find(Identity::Name("site".to_owned()), ObjectKind::Heap, 0);
        objects.gain(id, 1000 * PAGE_BYTES);
        (0..50).for_each(|time_ns| objects.fault(id, time_ns, true));
        objects.lose(id, 500 * PAGE_BYTES, 60);
        objects.look(70, &BTreeMap::from([(id, 400 * PAGE_BYTES)]));
        assert_eq!(objects.entries[id].memory_until(100), 850 * PAGE_BYTES);
        objects.gain(id, 480 * PAGE_BYTES);
        objects.look(80, &BTreeMap::from([(id, 700 * PAGE_BYTES)]));
        assert!(objects.entries[id].memory_until(100) < 850 * PAGE_BYTES, "somebody looked while it was large");
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
        assert_eq!((objects.entries[id].first_page_ns(), objects.entries[id].populated_ns()), (Some(10), Some(40)));
    }

    #[test]
    fn objects_that_take_turns_are_not_there_at_once() {
        let mut objects = Objects::default();
        let [old, new] = ["old", "new"].map(|name| objects.find(Identity::Name(name.to_owned()), ObjectKind::Heap, 0));
        assert_eq!(objects.at_once_bytes(), None);
        objects.gain(old, 1 << 20);
        for time_ns in 1..10 {
            objects.gain(new, 1 << 20);
            objects.lose(old, 1 << 20, time_ns);
            objects.gain(old, 1 << 20);
            objects.lose(new, 1 << 20, time_ns);
        }
        // Each has up to a MiB, and both have two now and then.
        objects.gain(old, 1 << 20);
        objects.close(20);
        assert_eq!(objects.at_once_bytes(), Some(round_to_u64(MORE * 2.0 * f64::from(1 << 20))));
        assert_eq!(objects.entries.iter().map(|entry| entry.memory_bytes).sum::<u64>(), 3 << 20);
    }

    #[test]
    fn what_the_kernel_fills_has_its_pages_when_somebody_sees_them() {
        let mut objects = Objects::default();
        let id = objects.find(Identity::Name("site".to_owned()), ObjectKind::Heap, 0);
        objects.gain(id, 1000 * PAGE_BYTES);
        for (time_ns, pages) in [(10, 0), (20, 300), (40, 960), (50, 1000), (60, 1000)] {
            objects.look(time_ns, &BTreeMap::from([(id, pages * PAGE_BYTES)]));
        }
        objects.touch(id, 70);
        assert_eq!((objects.entries[id].first_page_ns(), objects.entries[id].populated_ns()), (Some(20), Some(40)));
    }
}
