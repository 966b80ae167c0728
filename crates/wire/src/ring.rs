//! The ring of slots: many processes append, one recorder takes out.
//!
//! A slot is one cache line: a stamp and seven words. A record takes as many slots in a row as it
//! needs. A writer reserves its slots with one compare-and-swap of the head, fills them, and
//! publishes each by its stamp: the slot's position since the beginning, so a stamp of an earlier lap
//! is never mistaken for a new one. A writer that is interrupted (a signal, a kill) between the two
//! leaves unpublished slots; the reader waits for them, or skips them when it knows that nobody
//! will come back ([`Region::skip`]).

use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{SLOT_WORDS, STAMP_WORDS};
use crate::record::MAX_RECORD_WORDS;
use crate::region::Region;

/// What the reader found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popped {
    /// A record of this many words.
    Record(usize),
    /// Nothing was reserved since the last record.
    Empty,
    /// The next record is reserved and not yet published.
    Pending,
}

/// Stamp of a published slot; never 0, which fresh memory holds.
fn stamp(position: u64, continues: bool) -> u64 {
    (position.wrapping_add(1) << 1) | u64::from(continues)
}

impl Region<'_> {
    /// Appends a record of at most [`MAX_RECORD_WORDS`] words; `false` where there is no room.
    /// Lock-free, and safe in a signal handler that interrupted another `push`.
    pub fn push(&self, record: &[u64]) -> bool {
        if record.is_empty() || record.len() > MAX_RECORD_WORDS {
            return false;
        }
        let Some(first) = self.reserve(record.len().div_ceil(SLOT_WORDS) as u64) else { return false };
        for (position, chunk) in (first..).zip(record.chunks(SLOT_WORDS)) {
            let (slot_stamp, words) = self.slot(position);
            for (word, value) in words.iter().zip(chunk) {
                word.store(*value, Ordering::Relaxed);
            }
            slot_stamp.store(stamp(position, position != first), Ordering::Release);
        }
        true
    }

    fn reserve(&self, slots: u64) -> Option<u64> {
        let mut head = self.head().load(Ordering::Relaxed);
        loop {
            let used = head.wrapping_sub(self.tail().load(Ordering::Acquire));
            if used.saturating_add(slots) > self.mask + 1 {
                return None;
            }
            match self.head().compare_exchange_weak(head, head + slots, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(head),
                Err(now) => head = now,
            }
        }
    }

    /// Takes the next record out, into `record`. Only the recorder calls this.
    pub fn pop(&self, record: &mut [u64; MAX_RECORD_WORDS]) -> Popped {
        let first = self.tail().load(Ordering::Relaxed);
        let head = self.head().load(Ordering::Relaxed);
        if first == head {
            return Popped::Empty;
        }
        let (first_stamp, words) = self.slot(first);
        if first_stamp.load(Ordering::Acquire) != stamp(first, false) {
            return Popped::Pending;
        }
        let length = usize::from(crate::record::length(words[0].load(Ordering::Relaxed)));
        let length = length.clamp(1, MAX_RECORD_WORDS);
        for (offset, chunk) in (0..).zip(record[..length].chunks_mut(SLOT_WORDS)) {
            let position = first.wrapping_add(offset);
            let (slot_stamp, words) = self.slot(position);
            if position != first && slot_stamp.load(Ordering::Acquire) != stamp(position, true) {
                return Popped::Pending;
            }
            for (value, word) in chunk.iter_mut().zip(words) {
                *value = word.load(Ordering::Relaxed);
            }
        }
        self.tail().store(first.wrapping_add(length.div_ceil(SLOT_WORDS) as u64), Ordering::Release);
        Popped::Record(length)
    }

    /// Gives up on the slots at the tail that [`Region::pop`] called pending, up to the next
    /// published beginning of a record. Only the recorder calls this, when the writer is gone. A program can
    /// write anything over the head and the tail; between them there are never more slots than the ring has.
    pub fn skip(&self) {
        let head = self.head().load(Ordering::Relaxed);
        let begins = |position: u64| self.slot(position).0.load(Ordering::Acquire) == stamp(position, false);
        let tail = self.tail().load(Ordering::Relaxed);
        let held = tail.saturating_add(1)..head.min(tail.saturating_add(self.mask + 1));
        let next = held.into_iter().find(|position| begins(*position)).unwrap_or(head);
        self.tail().store(next, Ordering::Release);
    }

    fn slot(&self, position: u64) -> (&AtomicU64, &[AtomicU64]) {
        // The mask keeps the index below the number of slots, which was a usize when it was mapped.
        #[allow(clippy::cast_possible_truncation)]
        let index = (position & self.mask) as usize * (STAMP_WORDS + SLOT_WORDS);
        (&self.slots[index], &self.slots[index + STAMP_WORDS..index + STAMP_WORDS + SLOT_WORDS])
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::{Settings, words_needed};

    const SETTINGS: Settings = Settings { slots: 16, lanes: 0, min_bytes: 0, rule_words: 0 };

    fn memory() -> Vec<AtomicU64> {
        (0..words_needed(&SETTINGS).unwrap()).map(|_| AtomicU64::new(0)).collect()
    }

    /// A record of `length` words whose first word holds its length where records hold it.
    fn record(length: usize, seed: u64) -> Vec<u64> {
        (0..length as u64).map(|at| if at == 0 { crate::record::tag(1, length) } else { seed ^ at }).collect()
    }

    fn pop(region: &Region) -> Option<Vec<u64>> {
        let mut words = [0; MAX_RECORD_WORDS];
        match region.pop(&mut words) {
            Popped::Record(length) => Some(words[..length].to_vec()),
            Popped::Empty | Popped::Pending => None,
        }
    }

    proptest! {
        #[test]
        fn records_come_out_whole_and_in_order(lengths in prop::collection::vec(1_usize..=40, 1..60)) {
            let memory = memory();
            let region = Region::create(&memory, &SETTINGS).unwrap();
            let mut waiting = std::collections::VecDeque::new();
            for (seed, length) in (1..).zip(lengths) {
                let record = record(length, seed << 32);
                while !region.push(&record) {
                    prop_assert_eq!(pop(&region), waiting.pop_front());
                }
                waiting.push_back(record);
            }
            while let Some(record) = waiting.pop_front() {
                prop_assert_eq!(pop(&region), Some(record));
            }
            prop_assert_eq!(pop(&region), None);
        }

        #[test]
        fn any_content_of_the_ring_is_survived(noise in prop::collection::vec(any::<u64>(), 200)) {
            let memory = memory();
            let region = Region::create(&memory, &SETTINGS).unwrap();
            for (word, value) in memory[64..].iter().zip(&noise) {
                word.store(*value, Ordering::Relaxed);
            }
            region.head().store(noise[0] % 64, Ordering::Relaxed);
            let mut words = [0; MAX_RECORD_WORDS];
            for _ in 0..32 {
                match region.pop(&mut words) {
                    Popped::Record(length) => prop_assert!(length <= MAX_RECORD_WORDS),
                    Popped::Pending => region.skip(),
                    Popped::Empty => break,
                }
            }
        }
    }

    #[test]
    fn a_writer_that_died_is_skipped() {
        let memory = memory();
        let region = Region::create(&memory, &SETTINGS).unwrap();
        region.reserve(3).unwrap();
        assert!(region.push(&record(9, 7)));
        let mut words = [0; MAX_RECORD_WORDS];
        assert_eq!(region.pop(&mut words), Popped::Pending);
        region.skip();
        assert_eq!(pop(&region), Some(record(9, 7)));
        assert_eq!(region.pop(&mut words), Popped::Empty);
    }

    /// The program has the words too: whatever it writes over head and tail, the recorder comes to an end.
    #[test]
    fn a_ring_whose_ends_were_overwritten_ends() {
        for (tail, head) in [(0, u64::MAX), (0, 1 << 62), (1 << 40, 5), (u64::MAX, 3), (u64::MAX, u64::MAX - 1)] {
            let memory = memory();
            let region = Region::create(&memory, &SETTINGS).unwrap();
            assert!(region.push(&record(9, 7)));
            region.tail().store(tail, Ordering::Relaxed);
            region.head().store(head, Ordering::Relaxed);
            let mut words = [0; MAX_RECORD_WORDS];
            let steps = (0..=2 * SETTINGS.slots).take_while(|_| match region.pop(&mut words) {
                Popped::Empty => false,
                Popped::Pending => {
                    region.skip();
                    true
                }
                Popped::Record(_) => true,
            });
            assert!(steps.count() as u64 <= 2 * SETTINGS.slots, "tail {tail}, head {head}");
        }
    }

    #[test]
    fn many_writers_lose_nothing_that_fits() {
        let memory = memory();
        let region = Region::create(&memory, &SETTINGS).unwrap();
        let written = AtomicU64::new(0);
        let mut sums = [0_u64; 4];
        std::thread::scope(|scope| {
            for writer in 0..4_u64 {
                let (region, written) = (&region, &written);
                scope.spawn(move || {
                    for value in 0..2000 {
                        while !region.push(&[crate::record::tag(1, 3), writer, value]) {
                            std::thread::yield_now();
                        }
                    }
                    written.fetch_add(1, Ordering::SeqCst);
                });
            }
            let mut taken = 0;
            while taken < 8000 {
                match pop(&region) {
                    Some(record) => {
                        sums[usize::try_from(record[1]).unwrap()] += record[2];
                        taken += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        assert_eq!(sums, [1999 * 2000 / 2; 4]);
    }
}
