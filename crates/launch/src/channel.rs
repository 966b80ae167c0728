//! The file that recorder and preload library share, from the recorder's side: rules go in, and the records
//! of the ring and of all lanes come out, in the order of time.

use std::path::Path;
use std::sync::Arc;

use tierloom_linux::clock::{is_by_counter, monotonic_ns};
use tierloom_linux::root::Root;
use tierloom_linux::shared::SharedFile;
use tierloom_linux::threads;
use tierloom_model::Warning;
use tierloom_wire::{Event, Facts, MAX_RECORD_WORDS, Popped, Record, Region, Settings, Stamp, words_needed};

use crate::error::LaunchError;
use crate::lanes::Lanes;
use crate::merge::Merge;
use crate::tsc::Clock;

/// 2^14 slots of 64 bytes: 1 MiB, for what happens rarely, and for bursts that the lanes do not hold; the
/// library waits for us where the ring is full.
const SLOTS: u64 = 1 << 14;
/// Lanes of 4 KiB: 4 MiB. Every thread that records holds one, and at one visit every [`BUSY_TICK_MS`] those of
/// a busy one are free again after 130 thousand events, sixty million a second.
const LANES: u64 = 1 << 10;
/// Time after which an unpublished record is given up: its writer was killed, or is stopped.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Time between visits while little happens, and after a visit that found much, ms.
const TICK_MS: i32 = 20;
const BUSY_TICK_MS: i32 = 2;
/// Records of one visit that are much.
const MUCH: u64 = SLOTS / 4;

/// The shared file, and how far it was read.
#[derive(Debug)]
pub struct PreloadChannel {
    file: Arc<SharedFile>,
    clock: Clock,
    lanes: Lanes,
    merge: Merge,
    /// Since when the next record is reserved and not there.
    waiting_since_ns: Option<u64>,
    /// Records of the last visit.
    found: u64,
    skipped: u64,
    attached: bool,
}

impl PreloadChannel {
    /// A fresh one, with room behind it for rules of so many words.
    pub fn create(min_bytes: u64, rule_words: u64, root: &Root) -> Result<Self, LaunchError> {
        let settings = Settings { slots: SLOTS, lanes: LANES, min_bytes, rule_words };
        let words = words_needed(&settings).unwrap_or(usize::MAX);
        let file = Arc::new(SharedFile::create(words)?);
        let clock = Clock::new(root);
        if let Some(region) = Region::create(file.words(), &settings) {
            region.tell_recorder(std::process::id(), threads::pid_namespace(root));
            if clock.ticks() {
                region.ask_for_ticks();
            }
        }
        let (lanes, merge) = (Lanes::default(), Merge::default());
        Ok(Self { file, clock, lanes, merge, waiting_since_ns: None, found: 0, skipped: 0, attached: false })
    }

    /// Tells the library what the machine is like; before the program starts.
    pub fn tell(&self, facts: &Facts) {
        if let Some(region) = self.region() {
            region.tell(facts);
        }
    }

    /// Puts rules in force; `false` where there is no room for them.
    pub fn publish(&self, rules: &[u64]) -> bool {
        self.region().is_some_and(|region| region.publish_rules(rules))
    }

    /// Puts the rules of the plan in force once more, with what was found out since.
    pub fn publish_again(&self, rules: &[u64]) {
        let _fits = self.region().is_some_and(|region| region.publish_again(rules));
    }

    /// File of the shared memory, by which the program's processes find it.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The memory itself, for who reads and writes other parts of it.
    pub fn file(&self) -> Arc<SharedFile> {
        Arc::clone(&self.file)
    }

    /// By which the memory is known among the mappings of a process.
    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Asks the library for the files that each process has mapped, before the program starts.
    pub fn ask_for_modules(&self) {
        if let Some(region) = self.region() {
            region.ask_for_modules();
        }
    }

    /// Whether the library came up in any process.
    pub fn attached(&self) -> bool {
        self.attached
    }

    /// Records of the library that never came.
    pub fn lost_events(&self) -> u64 {
        self.region().map_or(0, |region| region.lost_events()) + self.skipped + self.lanes.unwritten
    }

    /// Time that threads of the program slept until there was room for their records, of all together, ns.
    pub fn waited_ns(&self) -> u64 {
        self.region().map_or(0, |region| region.waited_ns())
    }

    /// How long to sleep before the next visit.
    pub fn tick_ms(&self) -> i32 {
        if self.found > MUCH { BUSY_TICK_MS } else { TICK_MS }
    }

    /// Takes out what is published, in the order of time, each with its `CLOCK_MONOTONIC`, ns. At the end of the
    /// program (`last`) nobody is waited for.
    pub fn drain(&mut self, last: bool, mut each: impl FnMut(u64, &Record)) {
        // Looked at first: see `merge`.
        let now = self.clock.now();
        let begun = self.empty_ring(last);
        let Self { file, clock, lanes, merge, found, attached, .. } = self;
        let Some(region) = Region::open(file.words()) else { return };
        lanes.drain(&region, last, &begun, |record| {
            *found += 1;
            merge.add(record);
        });
        merge.hand_on(if last { Stamp(u64::MAX) } else { now }, |words| {
            let Some(record) = Record::decode(words) else { return };
            *attached |= record.event == Event::Start;
            each(clock.ns(record.stamp), &record);
        });
    }

    /// Up to one ring's worth, so that a program that never pauses cannot keep us here. Returns the processes
    /// that the library came up in, and when.
    fn empty_ring(&mut self, last: bool) -> Vec<(u32, Stamp)> {
        let mut words = [0; MAX_RECORD_WORDS];
        let mut begun = Vec::new();
        self.found = 0;
        while self.found < SLOTS {
            let Some(region) = Region::open(self.file.words()) else { break };
            match region.pop(&mut words) {
                Popped::Record(length) => {
                    self.waiting_since_ns = None;
                    self.found += 1;
                    let record = Record::decode(&words[..length]);
                    begun.extend(record.filter(|it| it.event == Event::Start).map(|it| (it.pid, it.stamp)));
                    self.merge.add(&words[..length]);
                }
                Popped::Empty => break,
                Popped::Pending if last || waited_ns(&mut self.waiting_since_ns) >= PATIENCE_NS => {
                    region.skip();
                    self.skipped += 1;
                    self.waiting_since_ns = None;
                }
                Popped::Pending => break,
            }
        }
        begun
    }

    /// What a reader must know about processes that could not be recorded to their end.
    pub fn closed(&self) -> Option<Warning> {
        let times = self.region().map_or(0, |region| region.closed());
        (times > 0).then_some(Warning::Sandboxed { times })
    }

    /// What a reader must know about the times of this run.
    pub fn doubt(&self, root: &Root) -> Option<Warning> {
        (self.clock.ticks() && !is_by_counter(root)).then_some(Warning::ClockLost)
    }

    fn region(&self) -> Option<Region<'_>> {
        Region::open(self.file.words())
    }
}

/// Time since this was first asked, and from now on where it was not.
fn waited_ns(since_ns: &mut Option<u64>) -> u64 {
    let now = monotonic_ns();
    now - *since_ns.get_or_insert(now)
}
