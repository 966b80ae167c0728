//! Records of the ring and of all lanes, handed on in the order of their times.
//!
//! Whoever gives a block back has seen it handed out, and by then that was written: so what was written
//! before a record of this time is there when the ring and the lanes are emptied after it. A visit therefore
//! hands on what happened before it began, in order, and keeps the rest for the next: no block goes before it
//! came, whichever threads did that. What comes late (its writer was interrupted between looking at the clock
//! and writing) follows with the next visit; nothing that was handed on can have come of it.

use tierloom_wire::{Record, Stamp};

/// Records on their way.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    words: Vec<u64>,
    records: Vec<Waiting>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    stamp: Stamp,
    start: usize,
    length: usize,
}

impl Merge {
    /// Takes a record, in words.
    pub(crate) fn add(&mut self, record: &[u64]) {
        let stamp = Record::stamp_of(record);
        self.records.push(Waiting { stamp, start: self.words.len(), length: record.len() });
        self.words.extend_from_slice(record);
    }

    /// Hands on what happened up to then, in order; what happened at once as it came.
    pub(crate) fn hand_on(&mut self, until: Stamp, mut each: impl FnMut(&[u64])) {
        self.records.sort_by_key(|record| record.stamp);
        let words = std::mem::take(&mut self.words);
        for Waiting { stamp, start, length } in std::mem::take(&mut self.records) {
            let record = &words[start..start + length];
            if stamp <= until { each(record) } else { self.add(record) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU64;

    use proptest::prelude::*;
    use tierloom_wire::{
        Cursor, Event, LaneRead, MAX_RECORD_WORDS, NO_STACK, Owner, Popped, Region, Settings, Source, words_needed,
    };

    use super::*;

    const SETTINGS: Settings = Settings { slots: 256, lanes: 16, min_bytes: 0, rule_words: 0 };

    /// A life of a block: its address, and the how-manieth there.
    type Life = (u64, u64);

    /// A thread between two steps: it has looked at the clock and not written yet.
    #[derive(Debug, Clone, Copy)]
    struct Stamped {
        time: u64,
        life: Life,
        frees: bool,
        /// The address is another's before that is written, as `realloc` and `munmap` have it.
        early: bool,
    }

    /// Threads that hand blocks to each other, and a recorder that visits them, step by step.
    struct World<'a> {
        region: Region<'a>,
        now: u64,
        threads: [(Option<Stamped>, Cursor); 4],
        free: Vec<Life>,
        alive: Vec<Life>,
        written: Vec<(u64, bool, Life)>,
        reads: Vec<LaneRead>,
        merge: Merge,
        /// When the visit began that is under way, and the lane that it comes to.
        visit: Option<(u64, u64)>,
        out: Vec<(u64, bool, Life)>,
    }

    impl World<'_> {
        fn step(&mut self, thread: usize, choice: u8) {
            self.now += 1;
            let Some(stamped) = self.threads[thread].0.take() else { return self.begin(thread, choice) };
            self.write(thread, &stamped, choice);
            let Stamped { life: (address, count), frees, early, .. } = stamped;
            match (frees, early) {
                (false, _) => self.alive.push((address, count)),
                (true, false) => self.free.push((address, count + 1)),
                (true, true) => {}
            }
        }

        fn begin(&mut self, thread: usize, choice: u8) {
            let early = choice.is_multiple_of(3);
            let frees = !self.alive.is_empty() && (self.free.is_empty() || choice.is_multiple_of(2));
            let from = if frees { &mut self.alive } else { &mut self.free };
            if from.is_empty() {
                return;
            }
            let life = from.swap_remove(usize::from(choice) % from.len());
            self.threads[thread].0 = Some(Stamped { time: self.now, life, frees, early });
            if frees && early {
                self.free.push((life.0, life.1 + 1));
            }
        }

        /// Into the lane, and now and then into the ring, as when no lane is free.
        fn write(&mut self, thread: usize, stamped: &Stamped, choice: u8) {
            let Stamped { time, life: (address, bytes), frees, .. } = *stamped;
            let alloc = Event::Alloc { address, bytes, stack: NO_STACK, source: Source::Heap };
            let event = if frees { Event::Unmap { address, bytes } } else { alloc };
            self.written.push((time, frees, stamped.life));
            let cursor = &mut self.threads[thread].1;
            if cursor.is_none() {
                let tid = 1 + u32::try_from(thread).unwrap();
                *cursor = self.region.take_lane(Owner { pid: 1, tid }, *cursor).unwrap_or(Cursor::NONE);
            }
            if choice % 7 == 1 || !self.region.write(*cursor, Stamp(time), &event) {
                let record = Record { pid: 1, tid: 9, stamp: Stamp(time), event };
                assert!(self.region.push(record.encode(&mut [0; MAX_RECORD_WORDS])));
            } else {
                *cursor = cursor.next();
            }
        }

        /// One step of a visit: the clock, the ring, a lane, or handing on.
        fn visit(&mut self, all: bool) {
            self.now += 1;
            let (began, lane) = self.visit.unwrap_or((self.now, 0));
            if lane == 0 {
                let mut words = [0; MAX_RECORD_WORDS];
                while let Popped::Record(length) = self.region.pop(&mut words) {
                    self.merge.add(&words[..length]);
                }
            }
            if lane < SETTINGS.lanes {
                let read = &mut self.reads[usize::try_from(lane).unwrap()];
                self.region.read_lane(lane, read, all, |record| self.merge.add(record));
                self.visit = Some((began, lane + 1));
                return;
            }
            let out = &mut self.out;
            self.merge.hand_on(Stamp(if all { u64::MAX } else { began }), |words| {
                let record = Record::decode(words).unwrap();
                out.push(match record.event {
                    Event::Alloc { address, bytes, .. } => (record.stamp.0, false, (address, bytes)),
                    Event::Unmap { address, bytes } => (record.stamp.0, true, (address, bytes)),
                    other => panic!("nobody wrote {other:?}"),
                });
            });
            self.visit = None;
        }
    }

    proptest! {
        #[test]
        fn no_block_goes_before_it_came_and_none_is_lost(
            steps in prop::collection::vec((0_usize..6, any::<u8>()), 1..1500)
        ) {
            let memory: Vec<AtomicU64> = (0..words_needed(&SETTINGS).unwrap()).map(|_| AtomicU64::new(0)).collect();
            let mut world = World {
                region: Region::create(&memory, &SETTINGS).unwrap(),
                now: 0,
                threads: [(None, Cursor::NONE); 4],
                free: (1..=3).map(|address| (address, 0)).collect(),
                alive: Vec::new(),
                written: Vec::new(),
                reads: vec![LaneRead::default(); 16],
                merge: Merge::default(),
                visit: None,
                out: Vec::new(),
            };
            for (who, choice) in steps {
                if who < 4 { world.step(who, choice) } else { world.visit(false) }
            }
            for thread in 0..4 {
                if world.threads[thread].0.is_some() {
                    world.step(thread, 0);
                }
            }
            world.visit = None;
            (0..=SETTINGS.lanes).for_each(|_| world.visit(true));
            let World { mut written, mut out, .. } = world;

            let mut came = BTreeMap::new();
            for (at, (_, frees, life)) in out.iter().enumerate() {
                if *frees {
                    prop_assert!(came.contains_key(life), "{life:?} went first");
                } else {
                    came.insert(*life, at);
                }
            }
            written.sort_unstable();
            out.sort_unstable();
            prop_assert_eq!(&out, &written);
            // By time, the lives at an address come one after the other.
            let mut last: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
            for (_, frees, (address, count)) in out {
                let expected = last.get(&address).map_or((0, false), |(count, freed)| (count + u64::from(*freed), !freed));
                prop_assert_eq!((count, frees), expected);
                last.insert(address, (count, frees));
            }
        }
    }
}
