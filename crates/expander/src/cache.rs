//! A set-associative cache with least-recently-used replacement: the GPU's last-level cache and an
//! SSD endpoint's internal DRAM. It knows which lines are there and which are dirty, nothing of time.

use tierloom_model::hash::scatter;

const EMPTY: u32 = u32::MAX;

/// What an insertion pushed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) tag: u32,
    pub(crate) dirty: bool,
}

/// Tags of one cache; the order within a set is the order of use, the latest first.
#[derive(Debug)]
pub(crate) struct Cache {
    sets: u64,
    ways: usize,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u32,
    dirty: bool,
}

impl Cache {
    /// A cache of `capacity` entries, at least one set of `ways`.
    pub(crate) fn new(capacity: u64, ways: u32) -> Self {
        let ways = ways.max(1) as usize;
        let sets = (capacity / ways as u64).max(1);
        Self { sets, ways, entries: vec![Entry { tag: EMPTY, dirty: false }; sets as usize * ways] }
    }

    /// Whether `tag` is there; counts as a use.
    pub(crate) fn touch(&mut self, tag: u32) -> bool {
        let set = self.set(tag);
        let Some(at) = set.iter().position(|entry| entry.tag == tag) else { return false };
        if at > 0 {
            let entry = set[at];
            set.copy_within(..at, 1);
            set[0] = entry;
        }
        true
    }

    /// Whether `tag` is there; does not count as a use.
    pub(crate) fn holds(&self, tag: u32) -> bool {
        let start = self.start(tag);
        self.entries[start..start + self.ways].iter().any(|entry| entry.tag == tag)
    }

    /// Marks `tag` as dirty if it is there, which counts as a use.
    pub(crate) fn soil(&mut self, tag: u32) -> bool {
        let found = self.touch(tag);
        if found {
            self.set(tag)[0].dirty = true;
        }
        found
    }

    /// What inserting `tag` would push out.
    pub(crate) fn victim(&self, tag: u32) -> Option<Evicted> {
        let last = self.entries[self.start(tag) + self.ways - 1];
        (last.tag != EMPTY).then_some(Evicted { tag: last.tag, dirty: last.dirty })
    }

    /// Puts `tag`, which is not there, at the front of its set.
    pub(crate) fn insert(&mut self, tag: u32, dirty: bool) -> Option<Evicted> {
        let evicted = self.victim(tag);
        let ways = self.ways;
        let set = self.set(tag);
        set.copy_within(..ways - 1, 1);
        set[0] = Entry { tag, dirty };
        evicted
    }

    /// Takes `tag` out; says whether it was there and dirty.
    pub(crate) fn remove(&mut self, tag: u32) -> Option<Evicted> {
        let set = self.set(tag);
        let at = set.iter().position(|entry| entry.tag == tag)?;
        let dirty = set[at].dirty;
        set[at..].rotate_left(1);
        set[set.len() - 1] = Entry { tag: EMPTY, dirty: false };
        Some(Evicted { tag, dirty })
    }

    fn set(&mut self, tag: u32) -> &mut [Entry] {
        let start = self.start(tag);
        &mut self.entries[start..start + self.ways]
    }

    fn start(&self, tag: u32) -> usize {
        // The high half times the sets: a division without dividing.
        (((scatter(u64::from(tag)) >> 32) * self.sets) >> 32) as usize * self.ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::new(2, 2);
        assert_eq!(cache.insert(1, false), None);
        assert_eq!(cache.insert(2, true), None);
        assert!(cache.touch(1));
        assert_eq!(cache.insert(3, false), Some(Evicted { tag: 2, dirty: true }));
        assert!(cache.holds(1) && cache.holds(3) && !cache.holds(2));
    }

    #[test]
    fn what_is_removed_leaves_room() {
        let mut cache = Cache::new(2, 2);
        cache.insert(1, false);
        cache.insert(2, false);
        assert!(cache.soil(1));
        assert_eq!(cache.remove(1), Some(Evicted { tag: 1, dirty: true }));
        assert_eq!(cache.remove(1), None);
        assert_eq!(cache.insert(3, false), None);
        assert!(cache.holds(2));
    }
}
