//! The lanes of the program's threads, from the recorder's side: what is new in them, and when they are
//! free again.

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::threads;
use tierloom_wire::{LaneRead, Owner, Record, Region, Stamp};

/// Time between two looks for threads that are gone, ns; at every visit where lanes are scarce.
const BETWEEN_LOOKS_NS: u64 = 1_000_000_000;

/// What is known of each lane.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    known: Vec<Known>,
    looked_ns: u64,
    /// Records that were begun and never ended, in lanes that are free again.
    pub unwritten: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    read: LaneRead,
    /// When the first record was made.
    since: Option<Stamp>,
}

impl Lanes {
    /// Takes out what is new; at the end of the program (`last`) behind every gap. `begun` are the processes
    /// that became another program, and when: lanes of what they were are nobody's.
    pub(crate) fn drain(&mut self, region: &Region, last: bool, begun: &[(u32, Stamp)], mut each: impl FnMut(&[u64])) {
        self.known.resize_with(usize::try_from(region.lane_count()).unwrap_or(0), Known::default);
        let looks = self.is_time_to_look();
        let mut taken = 0;
        for (lane, known) in (0..).zip(&mut self.known) {
            let Some(owner) = region.lane_owner(lane) else { continue };
            taken += 1;
            // Asked first and read after: what it wrote before its end is there by then.
            let gone = last || (looks && threads::is_gone(owner.pid, owner.tid));
            known.take(region, lane, gone, &mut each);
            let is_nobodys = gone || known.is_of_before(owner, begun);
            // One that was gone did not return its lane since.
            if (is_nobodys && region.lane_owner(lane) == Some(owner)) || known.read.is_all() {
                self.unwritten += u64::from(known.read.gaps());
                *known = Known::default();
                region.free_lane(lane);
            }
        }
        if taken > region.lane_count() / 2 {
            self.looked_ns = 0;
        }
    }

    fn is_time_to_look(&mut self) -> bool {
        let now = monotonic_ns();
        let is_time = now >= self.looked_ns + BETWEEN_LOOKS_NS;
        if is_time {
            self.looked_ns = now;
        }
        is_time
    }
}

impl Known {
    fn take(&mut self, region: &Region, lane: u64, all: bool, each: &mut impl FnMut(&[u64])) {
        let (mut read, mut since) = (self.read, self.since);
        region.read_lane(lane, &mut read, all, |record| {
            since.get_or_insert(Record::stamp_of(record));
            each(record);
        });
        *self = Self { read, since };
    }

    /// Whether the lane is of the program that its process was before.
    fn is_of_before(&self, owner: Owner, begun: &[(u32, Stamp)]) -> bool {
        self.since.is_some_and(|since| begun.iter().any(|(pid, stamp)| *pid == owner.pid && since < *stamp))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};
    use std::sync::atomic::AtomicU64;

    use tierloom_wire::{Cursor, Event, Settings, words_needed};

    use super::*;

    const SETTINGS: Settings = Settings { slots: 2, lanes: 4, min_bytes: 0, rule_words: 0 };

    /// Lanes of these processes, each with a record of this stamp in it; how many records come out of a visit, and
    /// whose lanes are held after it.
    fn visited(owners: &[(u32, u64)], last: bool, begun: &[(u32, Stamp)]) -> (usize, Vec<u32>) {
        let memory: Vec<AtomicU64> = (0..words_needed(&SETTINGS).unwrap()).map(|_| AtomicU64::new(0)).collect();
        let region = Region::create(&memory, &SETTINGS).unwrap();
        for (pid, stamp) in owners {
            let cursor = region.take_lane(Owner { pid: *pid, tid: *pid }, Cursor::NONE).unwrap();
            assert!(region.write(cursor, Stamp(*stamp), &Event::Free { address: 1 }));
        }
        let (mut lanes, mut found) = (Lanes::default(), 0);
        lanes.drain(&region, last, begun, |_| found += 1);
        let mut held: Vec<u32> = (0..4).filter_map(|lane| region.lane_owner(lane)).map(|owner| owner.pid).collect();
        held.sort_unstable();
        (found, held)
    }

    #[test]
    fn lanes_of_who_is_gone_are_read_and_free_again() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(visited(&[(id(), 5), (child.id(), 6)], false, &[]), (2, vec![id()]));
    }

    #[test]
    fn a_process_that_is_another_program_now_keeps_only_its_new_lanes() {
        let begun = [(id(), Stamp(10))];
        assert_eq!(visited(&[(id(), 5), (id(), 15), (1, 5)], false, &begun), (3, vec![1, id()]));
    }

    #[test]
    fn at_the_end_all_is_read() {
        assert_eq!(visited(&[(id(), 5), (1, 6)], true, &[]), (2, vec![]));
    }
}
