//! Bookings of equal slots of a bus: the first free slot at or after a time, in O(1).

const SLOTS: u64 = 1 << 16;
const WORDS: usize = (SLOTS / 64) as usize;

/// A bit for every slot of a window that moves forward with time; a set bit is taken.
#[derive(Debug)]
pub(crate) struct Calendar {
    taken: Vec<u64>,
    /// First slot of the window, a multiple of 64.
    base: u64,
    /// Slots before this one are not given any more: those beyond the window are given in order.
    floor: u64,
}

impl Calendar {
    pub(crate) fn new() -> Self {
        Self { taken: vec![0; WORDS], base: 0, floor: 0 }
    }

    /// Forgets the slots before `slot`: nobody will ask for them again.
    pub(crate) fn advance(&mut self, slot: u64) {
        let to = slot & !63;
        if to >= self.base + SLOTS {
            self.taken.fill(0);
            self.base = to;
        }
        while self.base < to {
            self.taken[word(self.base)] = 0;
            self.base += 64;
        }
    }

    /// Takes the first free slot at or after `from`.
    pub(crate) fn take(&mut self, from: u64) -> u64 {
        let slot = self.first_free(from);
        if slot < self.base + SLOTS {
            self.taken[word(slot)] |= 1 << (slot % 64);
        } else {
            // A backlog longer than the window is served in the order in which it came.
            self.floor = slot + 1;
        }
        slot
    }

    /// The first free slot at or after `from`.
    pub(crate) fn first_free(&self, from: u64) -> u64 {
        let from = from.max(self.floor).max(self.base);
        let end = self.base + SLOTS;
        let mut start = from & !63;
        let mut skipped = !0 << (from % 64);
        while start < end {
            let free = !self.taken[word(start)] & skipped;
            if free != 0 {
                return start + u64::from(free.trailing_zeros());
            }
            start += 64;
            skipped = !0;
        }
        from.max(end)
    }
}

fn word(slot: u64) -> usize {
    (slot / 64) as usize % WORDS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_slot_is_given_twice_and_none_before_its_time(steps in prop::collection::vec((0_u64..40, 0_u64..300), 1..300)) {
            let (mut calendar, mut given, mut now) = (Calendar::new(), BTreeSet::new(), 0);
            for (pause, ahead) in steps {
                now += pause;
                calendar.advance(now);
                let slot = calendar.take(now + ahead);
                prop_assert!(slot >= now + ahead);
                prop_assert!((now + ahead..slot).all(|before| given.contains(&before)), "a free slot was passed over");
                prop_assert!(given.insert(slot));
            }
        }
    }

    #[test]
    fn a_backlog_beyond_the_window_is_served_in_order() {
        let mut calendar = Calendar::new();
        assert_eq!(calendar.take(3 * SLOTS), 3 * SLOTS);
        assert_eq!(calendar.take(5), 3 * SLOTS + 1);
        calendar.advance(4 * SLOTS);
        assert_eq!(calendar.take(0), 4 * SLOTS);
    }
}
