//! Lanes: pages of places that one thread at a time fills by itself, so that a record costs it plain
//! stores where the ring costs a locked reservation.
//!
//! A thread takes a lane with one compare-and-swap of its owner, and the next one when it is full. A
//! place has four words: a tag, the stamp, and two words of an event without a list; what happens
//! rarely goes through the ring, and so does everything when no lane is free. The tag is stored last
//! and carries the number of times that the lane was in use before, so what an earlier owner left is
//! never taken for new. A writer that was interrupted (a signal, a kill) leaves a place without a tag:
//! the reader goes on behind it, and comes back to it.
//!
//! The reader frees a lane when it has read all of it, or knows that its owner is gone. Whoever finds none free
//! leaves word of it, so that nobody looks again before one is.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{PLACE_WORDS, PLACES};
use crate::record::{Event, Stamp, kind, tag};
use crate::region::Region;
use crate::scatter::scatter;

/// All places that hold records.
const ALL: u128 = !1;
/// Bits of a tag that hold the use of the lane, above those of the kind.
const USE_BITS: u32 = 24;
const USE_SHIFT: u32 = 8;
/// Places without a tag behind which the reader still looks: every signal handler that records and
/// interrupted a record leaves one. Beyond, it comes back when they are filled.
const LOOK_AHEAD: u32 = 4;

/// Where a thread writes next: the position of a place among all, and above it the use of its lane, so that
/// one word says it all. The place at the head of a lane says that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor(pub u64);

impl Cursor {
    /// No place.
    pub const NONE: Self = Self(0);

    fn at(lane: u64, used: u64) -> Self {
        Self((used << 32) | (lane * PLACES + 1))
    }

    /// Whether there is no place at it.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0.is_multiple_of(PLACES)
    }

    /// The next place.
    #[inline]
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    fn position(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }

    fn used(self) -> u64 {
        self.0 >> 32
    }
}

/// Whose a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

impl Owner {
    fn word(self) -> u64 {
        u64::from(self.pid) | u64::from(self.tid) << 32
    }

    #[allow(clippy::cast_possible_truncation)]
    fn of(word: u64) -> Option<Self> {
        (word != 0).then_some(Self { pid: word as u32, tid: (word >> 32) as u32 })
    }
}

/// What the reader has read of a lane since it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneRead(u128);

impl LaneRead {
    /// Records that were begun and are not there, while later ones are.
    pub fn gaps(self) -> u32 {
        (ALL & !self.0 & (self.0.checked_ilog2().map_or(0, |last| (1 << last) - 1))).count_ones()
    }

    /// All that it can hold.
    pub fn is_all(self) -> bool {
        self.0 == ALL
    }
}

fn tag_of(used: u64, kind: u16, small: u32) -> u64 {
    u64::from(kind) | used << USE_SHIFT | u64::from(small) << 32
}

impl<'a> Region<'a> {
    /// Takes a lane for a thread that has filled the one before this cursor, or none yet; `None` where all are
    /// taken.
    pub fn take_lane(&self, owner: Owner, after: Cursor) -> Option<Cursor> {
        let freed = self.lanes_freed().load(Ordering::Acquire);
        if self.lanes_out().load(Ordering::Relaxed) == freed.wrapping_add(1) {
            return None;
        }
        let count = self.owners.len() as u64;
        if count == 0 {
            return None;
        }
        // Each thread begins somewhere else and comes back there: the lanes that it uses stay few. While it is
        // faster than the recorder, those that it filled long ago are free first, and the next one is of those.
        let home = (scatter(u64::from(owner.tid)) >> 32) % count;
        let next = if after.0 == 0 { home } else { after.position() / PLACES % count };
        let mut lanes = core::iter::once(home).chain(next..count).chain(0..next);
        let found = lanes.find(|lane| {
            let word = self.owner(*lane);
            word.load(Ordering::Relaxed) == 0
                && word.compare_exchange(0, owner.word(), Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        if found.is_none() {
            self.lanes_out().store(freed.wrapping_add(1), Ordering::Relaxed);
        }
        found.map(|lane| Cursor::at(lane, self.uses(lane).load(Ordering::Relaxed)))
    }

    /// Gives back a lane that its owner wrote nothing into.
    pub fn return_lane(&self, cursor: Cursor) {
        self.owner(cursor.position() / PLACES).store(0, Ordering::Release);
        self.lanes_out().store(0, Ordering::Relaxed);
    }

    /// Writes a record into the place at a cursor, which is the caller's alone; `false` where the event
    /// is one for the ring.
    #[inline]
    pub fn write(&self, cursor: Cursor, stamp: Stamp, event: &Event) -> bool {
        let Some((kind, small, body)) = event.brief() else { return false };
        // A position is below the number of words, which was a usize when they were mapped.
        #[allow(clippy::cast_possible_truncation)]
        let first = (cursor.position() * PLACE_WORDS) as usize;
        let Some([tag, when, a, b]) = self.lanes.get(first..first + 4) else { return false };
        when.store(stamp.0, Ordering::Relaxed);
        a.store(body[0], Ordering::Relaxed);
        b.store(body[1], Ordering::Relaxed);
        tag.store(tag_of(cursor.used(), kind, small), Ordering::Release);
        true
    }

    /// How many lanes there are.
    pub fn lane_count(&self) -> u64 {
        self.owners.len() as u64
    }

    /// Whose a lane is now; `None` where it is free.
    pub fn lane_owner(&self, lane: u64) -> Option<Owner> {
        Owner::of(self.owner(lane).load(Ordering::Acquire))
    }

    /// Reads what is new in a lane, in the order in which it was begun, as records of the ring; with `all`
    /// behind any gap. Only the recorder calls this.
    pub fn read_lane(&self, lane: u64, read: &mut LaneRead, all: bool, mut each: impl FnMut(&[u64])) {
        let Some(owner) = self.lane_owner(lane) else { return };
        let used = self.uses(lane).load(Ordering::Relaxed);
        let mut missing = 0;
        for place in 1..PLACES {
            let bit = 1 << place;
            if read.0 & bit != 0 {
                continue;
            }
            let [word, time, a, b] = self.place(lane * PLACES + place);
            let found = word.load(Ordering::Acquire);
            if found == 0 || (found >> USE_SHIFT) & ((1 << USE_BITS) - 1) != used {
                missing += 1;
                if missing > LOOK_AHEAD && !all {
                    return;
                }
                continue;
            }
            // A lane that was returned unused may have another owner by now.
            if self.lane_owner(lane) != Some(owner) {
                return;
            }
            read.0 |= bit;
            let [time, a, b] = [time, a, b].map(|word| word.load(Ordering::Relaxed));
            // The lowest byte.
            let kind = (found & 0xff) as u16;
            let length = if kind == kind::FREE { 4 } else { 5 };
            let first = tag(kind, length) | u64::from(owner.pid) << 32;
            let third = u64::from(owner.tid) | found >> 32 << 32;
            each(&[first, time, third, a, b][..length]);
        }
    }

    /// Gives a lane to whoever wants it next. Only the recorder calls this, when all of it was read and
    /// nobody writes into it any more.
    pub fn free_lane(&self, lane: u64) {
        let uses = self.uses(lane);
        uses.store(uses.load(Ordering::Relaxed).wrapping_add(1) & ((1 << USE_BITS) - 1), Ordering::Relaxed);
        self.owner(lane).store(0, Ordering::Release);
        let freed = self.lanes_freed();
        freed.store(freed.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    #[allow(clippy::cast_possible_truncation)]
    fn owner(&self, lane: u64) -> &'a AtomicU64 {
        &self.owners[lane as usize]
    }

    fn uses(&self, lane: u64) -> &'a AtomicU64 {
        self.place(lane * PLACES)[0]
    }

    #[allow(clippy::cast_possible_truncation)]
    fn place(&self, position: u64) -> [&'a AtomicU64; 4] {
        let first = (position * PLACE_WORDS) as usize;
        let words = &self.lanes[first..first + 4];
        [&words[0], &words[1], &words[2], &words[3]]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::{Record, Settings, Source, words_needed};

    const SETTINGS: Settings = Settings { slots: 2, lanes: 3, min_bytes: 0, rule_words: 4 };
    const MINE: Owner = Owner { pid: 7, tid: 9 };

    fn memory() -> Vec<AtomicU64> {
        (0..words_needed(&SETTINGS).unwrap()).map(|_| AtomicU64::new(0)).collect()
    }

    /// One of the events that a lane takes, by number.
    fn event(number: u64) -> Event<'static> {
        let (address, bytes) = (number << 16, !number);
        let sources = [Source::Heap, Source::Anonymous, Source::File, Source::Reserved];
        match number % 7 {
            0 => Event::Free { address },
            1 => Event::Unmap { address, bytes },
            2 => Event::Protect { address, bytes, accessible: number.is_multiple_of(2) },
            // Below four.
            #[allow(clippy::cast_possible_truncation)]
            kind => Event::Alloc { address, bytes, stack: number as u32, source: sources[kind as usize - 3] },
        }
    }

    /// What a lane brings: the numbers in the times, each beside the event that belongs to it.
    fn read(region: &Region, lane: u64, read: &mut LaneRead, all: bool) -> Vec<u64> {
        let mut numbers = Vec::new();
        region.read_lane(lane, read, all, |words| {
            let record = Record::decode(words).unwrap();
            assert_eq!((record.pid, record.tid, record.event), (7, 9, event(record.stamp.0)));
            numbers.push(record.stamp.0);
        });
        numbers
    }

    fn lane_of(cursor: Cursor) -> u64 {
        cursor.position() / PLACES
    }

    #[test]
    fn a_lane_is_taken_once_and_full_after_so_many_records() {
        let memory = memory();
        let region = Region::create(&memory, &SETTINGS).unwrap();
        let taken: Vec<Cursor> = (0..3).map(|_| region.take_lane(MINE, Cursor::NONE).unwrap()).collect();
        assert_eq!(region.take_lane(MINE, Cursor::NONE), None);
        let mut lanes: Vec<u64> = taken.iter().map(|cursor| lane_of(*cursor)).collect();
        lanes.sort_unstable();
        assert_eq!(lanes, [0, 1, 2]);
        region.return_lane(taken[1]);
        let (mut cursor, mut number) = (region.take_lane(MINE, Cursor::NONE).unwrap(), 0);
        assert_eq!(cursor, taken[1]);
        while !cursor.is_none() {
            assert!(region.write(cursor, Stamp(number), &event(number)));
            (cursor, number) = (cursor.next(), number + 1);
        }
        assert_eq!(number, PLACES - 1);
        let mut known = LaneRead::default();
        assert_eq!(read(&region, lane_of(taken[1]), &mut known, false), (0..number).collect::<Vec<_>>());
        assert!(known.is_all() && known.gaps() == 0);
        assert!(read(&region, lane_of(taken[0]), &mut LaneRead::default(), true).is_empty());
    }

    #[test]
    fn an_event_with_a_list_is_for_the_ring() {
        let memory = memory();
        let region = Region::create(&memory, &SETTINGS).unwrap();
        let cursor = region.take_lane(MINE, Cursor::NONE).unwrap();
        assert!(!region.write(cursor, Stamp(1), &Event::Stack { id: 1, frames: &[] }));
        assert!(!region.write(cursor, Stamp(1), &Event::Start));
    }

    #[test]
    fn nothing_of_an_earlier_use_is_new() {
        let memory = memory();
        let region = Region::create(&memory, &SETTINGS).unwrap();
        for number in 0..5 {
            let cursor = region.take_lane(MINE, Cursor::NONE).unwrap();
            let (lane, mut known) = (lane_of(cursor), LaneRead::default());
            assert!(read(&region, lane, &mut known, true).is_empty());
            for (place, number) in (0..=number).zip([40, 41, 42, 43, 44]) {
                assert!(region.write(Cursor(cursor.0 + place), Stamp(number), &event(number)));
            }
            assert_eq!(read(&region, lane, &mut known, false).len(), usize::try_from(number).unwrap() + 1);
            assert_eq!((lane_of(cursor), region.lane_owner(lane)), (lane, Some(MINE)));
            region.free_lane(lane);
            assert_eq!(region.lane_owner(lane), None);
        }
    }

    proptest! {
        /// Records of a thread whose signal handlers record as well: each place is filled at some time or,
        /// where the writer is killed or left by `longjmp`, never. Whenever it is read, every record comes
        /// out once, and a gap keeps none back for good.
        #[test]
        fn every_written_record_comes_out_once(
            order in Just((0..PLACES - 1).collect::<Vec<u64>>()).prop_shuffle(),
            written in 0_usize..127,
            visits in prop::collection::vec(0_usize..127, 0..10),
        ) {
            let memory = memory();
            let region = Region::create(&memory, &SETTINGS).unwrap();
            let cursor = region.take_lane(MINE, Cursor::NONE).unwrap();
            let (lane, mut known, mut out) = (lane_of(cursor), LaneRead::default(), Vec::new());
            for (step, place) in order.iter().enumerate().take(written) {
                prop_assert!(region.write(Cursor(cursor.0 + place), Stamp(*place), &event(*place)));
                if visits.contains(&step) {
                    out.extend(read(&region, lane, &mut known, false));
                }
            }
            out.extend(read(&region, lane, &mut known, true));
            out.sort_unstable();
            let mut all: Vec<u64> = order.iter().copied().take(written).collect();
            all.sort_unstable();
            let last = all.last().map_or(0, |last| last + 1);
            prop_assert_eq!(u64::from(known.gaps()), last - all.len() as u64);
            prop_assert_eq!(out, all);
        }

        #[test]
        fn a_few_gaps_keep_nothing_back(gaps in prop::collection::btree_set(0_u64..100, 0..=4)) {
            let memory = memory();
            let region = Region::create(&memory, &SETTINGS).unwrap();
            let cursor = region.take_lane(MINE, Cursor::NONE).unwrap();
            let filled = || (0..100).filter(|place| !gaps.contains(place));
            for place in filled() {
                prop_assert!(region.write(Cursor(cursor.0 + place), Stamp(place), &event(place)));
            }
            prop_assert!(read(&region, lane_of(cursor), &mut LaneRead::default(), false).into_iter().eq(filled()));
        }

        #[test]
        fn any_content_of_the_lanes_is_survived(noise in prop::collection::vec(any::<u64>(), 1600)) {
            let memory = memory();
            let region = Region::create(&memory, &SETTINGS).unwrap();
            for (word, value) in memory[64 + 16..].iter().zip(&noise) {
                word.store(*value, Ordering::Relaxed);
            }
            for lane in 0..3 {
                region.read_lane(lane, &mut LaneRead::default(), true, |words| {
                    let _record = Record::decode(words);
                });
                region.free_lane(lane);
            }
            prop_assert!(region.take_lane(MINE, Cursor::NONE).is_some());
            let nowhere = Cursor(noise[0] | 1 << 31);
            prop_assert!(!region.write(nowhere, Stamp(1), &Event::Free { address: 1 }), "there is no such place");
        }
    }
}
