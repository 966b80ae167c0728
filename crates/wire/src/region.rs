//! The shared file as a whole: header, ring, lanes, rules.
//!
//! Words of the header sit on cache lines of their own where both sides write them.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{HEADER_WORDS, Layout, Settings};

/// Version of everything in this crate; raised with every change of the layout.
pub const VERSION: u64 = 7;

const MAGIC: u64 = u64::from_le_bytes(*b"tierloom");

/// Positions in the header. A cache line has 8 words.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 1;
    pub(super) const SLOTS: usize = 2;
    pub(super) const MIN_BYTES: usize = 3;
    pub(super) const RULE_WORDS: usize = 5;
    pub(super) const MODULES: usize = 6;
    pub(super) const TICKS: usize = 7;
    pub(super) const HEAD: usize = 8;
    pub(super) const TAIL: usize = 16;
    pub(super) const LOST_EVENTS: usize = 24;
    pub(super) const WAITED_NS: usize = 25;
    pub(super) const NEXT_STACK: usize = 32;
    pub(super) const GENERATION: usize = 40;
    pub(super) const HUGE_BYTES: usize = 41;
    pub(super) const STRIPES: usize = 42;
    pub(super) const EAGER_BYTES: usize = 43;
    pub(super) const PLAN: usize = 44;
    pub(super) const LANES: usize = 45;
    pub(super) const NAMESPACE: usize = 46;
    pub(super) const RECORDER: usize = 47;
    pub(super) const HOLDING: usize = 48;
    pub(super) const LANES_FREED: usize = 56;
    pub(super) const LANES_OUT: usize = 57;
    pub(super) const CLOSED: usize = 58;
    pub(super) const LEAVING: usize = 64;
    pub(super) const LEAVING_END: usize = super::HEADER_WORDS;
}

/// What the library must know of the machine to place memory, and cannot ask cheaply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of the huge pages that the kernel gives any large range by itself; 0 = it does not.
    pub huge_bytes: u64,
    /// Stripes, each a mapping of the kernel's, that a process may have in all.
    pub stripes: u64,
    /// Bytes that a process may bring in before they are touched, in all.
    pub eager_bytes: u64,
}

/// The shared file, mapped.
#[derive(Debug, Clone, Copy)]
pub struct Region<'a> {
    header: &'a [AtomicU64],
    pub(crate) slots: &'a [AtomicU64],
    pub(crate) mask: u64,
    pub(crate) owners: &'a [AtomicU64],
    pub(crate) lanes: &'a [AtomicU64],
    rules: &'a [AtomicU64],
}

impl<'a> Region<'a> {
    /// Lays a fresh region out over zeroed words; `None` where they are too few for the settings.
    pub fn create(words: &'a [AtomicU64], settings: &Settings) -> Option<Self> {
        if words.len() < Layout::of(settings)?.end {
            return None;
        }
        let fields = [
            (at::VERSION, VERSION),
            (at::SLOTS, settings.slots),
            (at::LANES, settings.lanes),
            (at::MIN_BYTES, settings.min_bytes),
            (at::RULE_WORDS, settings.rule_words),
        ];
        for (position, value) in fields {
            words[position].store(value, Ordering::Relaxed);
        }
        words[at::MAGIC].store(MAGIC, Ordering::Release);
        Self::open(words)
    }

    /// Finds a region in mapped words; `None` where it is not one, or one of another version.
    pub fn open(words: &'a [AtomicU64]) -> Option<Self> {
        let header = words.get(..HEADER_WORDS)?;
        if header[at::MAGIC].load(Ordering::Acquire) != MAGIC || load(header, at::VERSION) != VERSION {
            return None;
        }
        let settings = settings_of(header);
        let layout = Layout::of(&settings)?;
        let rules = words.get(layout.rules..layout.end)?;
        let lanes = &words[layout.lanes..layout.rules];
        let owners = words[layout.owners..].get(..usize::try_from(settings.lanes).ok()?)?;
        let slots = &words[HEADER_WORDS..layout.owners];
        Some(Self { header, slots, mask: settings.slots - 1, owners, lanes, rules })
    }

    /// What the recorder asked for.
    pub fn settings(&self) -> Settings {
        settings_of(self.header)
    }

    /// Words of the rules in force, and their generation; 0 = there were never any.
    pub fn rules(&self) -> (u64, &'a [AtomicU64]) {
        let generation = self.header[at::GENERATION].load(Ordering::Acquire);
        (generation, self.half(generation))
    }

    /// How many times rules were published.
    pub fn generation(&self) -> u64 {
        self.header[at::GENERATION].load(Ordering::Acquire)
    }

    /// How many plans were put in force; 0 = there was never any.
    pub fn plan(&self) -> u64 {
        self.header[at::PLAN].load(Ordering::Acquire)
    }

    /// Puts a plan's rules in force in place of those before; `false` where they are too long.
    pub fn publish_rules(&self, words: &[u64]) -> bool {
        self.publish(words, self.plan() + 1)
    }

    /// Puts the same plan's rules in force once more, with what was unknown about them found since:
    /// each keeps its position and what it asks for.
    pub fn publish_again(&self, words: &[u64]) -> bool {
        self.publish(words, self.plan())
    }

    /// There are two places for rules: a reader that is still at the old ones is only surprised by the
    /// next but one, and survives that.
    fn publish(&self, words: &[u64], plan: u64) -> bool {
        let next = self.generation() + 1;
        let half = self.half(next);
        if words.len() > half.len() {
            return false;
        }
        for (word, value) in half.iter().zip(words.iter().copied().chain(core::iter::repeat(0))) {
            word.store(value, Ordering::Relaxed);
        }
        self.header[at::PLAN].store(plan, Ordering::Release);
        self.header[at::GENERATION].store(next, Ordering::Release);
        true
    }

    fn half(&self, generation: u64) -> &'a [AtomicU64] {
        let (even, odd) = self.rules.split_at(self.rules.len() / 2);
        if generation.is_multiple_of(2) { even } else { odd }
    }

    /// Tells what the machine is like; before any other process is there.
    pub fn tell(&self, facts: &Facts) {
        self.header[at::HUGE_BYTES].store(facts.huge_bytes, Ordering::Relaxed);
        self.header[at::STRIPES].store(facts.stripes, Ordering::Relaxed);
        self.header[at::EAGER_BYTES].store(facts.eager_bytes, Ordering::Relaxed);
    }

    /// What the machine is like.
    pub fn facts(&self) -> Facts {
        let [huge_bytes, stripes, eager_bytes] =
            [at::HUGE_BYTES, at::STRIPES, at::EAGER_BYTES].map(|position| load(self.header, position));
        Facts { huge_bytes, stripes, eager_bytes }
    }

    /// Asks every process to tell which files it has mapped; before any other process is there.
    pub fn ask_for_modules(&self) {
        self.header[at::MODULES].store(1, Ordering::Relaxed);
    }

    /// Whether a process is to tell which files it has mapped.
    pub fn wants_modules(&self) -> bool {
        load(self.header, at::MODULES) != 0
    }

    /// Asks for times in ticks of the processor's time-stamp counter; before any other process is there.
    pub fn ask_for_ticks(&self) {
        self.header[at::TICKS].store(1, Ordering::Relaxed);
    }

    /// Whether times are such ticks; else they are `CLOCK_MONOTONIC`, ns.
    pub fn wants_ticks(&self) -> bool {
        load(self.header, at::TICKS) != 0
    }

    /// Says which process the recorder is, and in which namespace of process ids; before any other is there.
    pub fn tell_recorder(&self, pid: u32, namespace: u64) {
        self.header[at::RECORDER].store(u64::from(pid), Ordering::Relaxed);
        self.header[at::NAMESPACE].store(namespace, Ordering::Relaxed);
    }

    /// The recorder, by its number in [`Region::namespace`].
    pub fn recorder(&self) -> u32 {
        u32::try_from(load(self.header, at::RECORDER)).unwrap_or(0)
    }

    /// The namespace of process ids of the recorder, which can see there whether the owner of a lane is
    /// gone: only processes of the same one may take lanes. 0 = it does not know.
    pub fn namespace(&self) -> u64 {
        load(self.header, at::NAMESPACE)
    }

    /// Takes the next free stack id.
    pub fn take_stack_id(&self) -> u32 {
        // The id has 32 bits in a record; more stacks than that do not fit in the ring's lifetime.
        #[allow(clippy::cast_possible_truncation)]
        let id = self.header[at::NEXT_STACK].fetch_add(1, Ordering::Relaxed) as u32;
        id
    }

    /// How far the recorder is: slots that it has emptied and lanes that it has freed since the beginning.
    pub fn progress(&self) -> u64 {
        self.tail().load(Ordering::Relaxed).wrapping_add(self.lanes_freed().load(Ordering::Relaxed))
    }

    /// Allocation events that found no room.
    pub fn lost_events(&self) -> u64 {
        load(self.header, at::LOST_EVENTS)
    }

    /// Time that threads slept until the recorder had made room, of all together, ns.
    pub fn waited_ns(&self) -> u64 {
        load(self.header, at::WAITED_NS)
    }

    /// A thread slept for so long.
    pub fn count_waited(&self, ns: u64) {
        self.header[at::WAITED_NS].fetch_add(ns, Ordering::Relaxed);
    }

    /// Processes that may tell nothing any more, because they gave up system calls.
    pub fn closed(&self) -> u64 {
        load(self.header, at::CLOSED)
    }

    /// Counts such a process.
    pub fn count_closed(&self) {
        self.header[at::CLOSED].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a record that is lost.
    pub fn count_lost(&self) {
        self.header[at::LOST_EVENTS].fetch_add(1, Ordering::Relaxed);
    }

    /// Not 0 while a tracer holds a thread.
    pub(crate) fn holding(&self) -> &'a AtomicU64 {
        &self.header[at::HOLDING]
    }

    /// Processes that are about to end; 0 = a free place.
    pub(crate) fn leaving(&self) -> &'a [AtomicU64] {
        &self.header[at::LEAVING..at::LEAVING_END]
    }

    pub(crate) fn head(&self) -> &'a AtomicU64 {
        &self.header[at::HEAD]
    }

    /// How many times a lane was freed.
    pub(crate) fn lanes_freed(&self) -> &'a AtomicU64 {
        &self.header[at::LANES_FREED]
    }

    /// 1 + that number when somebody last found no lane.
    pub(crate) fn lanes_out(&self) -> &'a AtomicU64 {
        &self.header[at::LANES_OUT]
    }

    pub(crate) fn tail(&self) -> &'a AtomicU64 {
        &self.header[at::TAIL]
    }
}

fn load(header: &[AtomicU64], position: usize) -> u64 {
    header[position].load(Ordering::Relaxed)
}

fn settings_of(header: &[AtomicU64]) -> Settings {
    Settings {
        slots: load(header, at::SLOTS),
        lanes: load(header, at::LANES),
        min_bytes: load(header, at::MIN_BYTES),
        rule_words: load(header, at::RULE_WORDS),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::words_needed;

    const SMALL: Settings = Settings { slots: 8, lanes: 3, min_bytes: 32768, rule_words: 4 };

    fn zeroed(words: usize) -> Vec<AtomicU64> {
        (0..words).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn what_was_created_is_found_again() {
        let words = zeroed(words_needed(&SMALL).unwrap());
        Region::create(&words, &SMALL).unwrap();
        let region = Region::open(&words).unwrap();
        assert_eq!(region.settings(), SMALL);
        assert_eq!(region.rules().1.len(), 4);
        let facts = Facts { huge_bytes: 2 << 20, stripes: 7, eager_bytes: 9 };
        region.tell(&facts);
        assert_eq!(region.facts(), facts);
    }

    #[test]
    fn rules_take_turns_in_two_places() {
        let words = zeroed(words_needed(&SMALL).unwrap());
        let region = Region::create(&words, &SMALL).unwrap();
        assert_eq!(region.generation(), 0);
        assert!(!region.publish_rules(&[1; 5]));
        assert!(region.publish_rules(&[1, 2, 3, 4]));
        let (first, old) = region.rules();
        assert!(region.publish_rules(&[9]));
        let read = |words: &[AtomicU64]| words.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert_eq!((first, read(old)), (1, [1, 2, 3, 4].to_vec()));
        assert_eq!((region.generation(), read(region.rules().1)), (2, [9, 0, 0, 0].to_vec()));
        assert!(region.publish_again(&[8]));
        assert_eq!((region.generation(), region.plan(), read(region.rules().1)), (3, 2, [8, 0, 0, 0].to_vec()));
    }

    #[test]
    fn foreign_or_short_memory_is_no_region() {
        let words = zeroed(words_needed(&SMALL).unwrap());
        assert!(Region::open(&words).is_none());
        Region::create(&words, &SMALL).unwrap();
        assert!(Region::open(&words[..words.len() - 1]).is_none());
        words[at::VERSION].store(VERSION + 1, Ordering::Relaxed);
        assert!(Region::open(&words).is_none());
    }

    #[test]
    fn a_header_of_nonsense_is_no_region() {
        let words = zeroed(words_needed(&SMALL).unwrap());
        Region::create(&words, &SMALL).unwrap();
        for slots in [0, 3, u64::MAX, 1 << 63] {
            words[at::SLOTS].store(slots, Ordering::Relaxed);
            assert!(Region::open(&words).is_none());
        }
    }
}
