//! The preload library's ring, from the recorder's side.

use std::path::Path;

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::shared::SharedFile;
use tierloom_wire::{Event, Facts, MAX_RECORD_WORDS, Popped, Record, Region, Settings, words_needed};

use crate::error::SamplerError;

/// 2^15 slots of 64 bytes: 2 MiB. At one visit every [`BUSY_TICK_MS`] that is sixteen million events a
/// second, more than we take out; the library waits for us where the ring is full. A longer ring costs
/// the program a page fault every 64 events on its first lap, and its cache on every one.
const SLOTS: u64 = 1 << 15;
/// Time after which an unpublished record is given up: its writer was killed, or is stopped.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Time between visits while little happens, and after a visit that found much, ms.
const TICK_MS: i32 = 20;
const BUSY_TICK_MS: i32 = 2;
/// Records of one visit that are much.
const MUCH: u64 = SLOTS / 16;

/// The shared file with its ring.
#[derive(Debug)]
pub(crate) struct PreloadRing {
    file: SharedFile,
    /// Since when the next record is reserved and not there.
    waiting_since_ns: Option<u64>,
    /// Records of the last visit.
    found: u64,
    skipped: u64,
    attached: bool,
}

impl PreloadRing {
    /// A fresh ring, with room behind it for rules of so many words.
    pub(crate) fn create(min_bytes: u64, rule_words: u64) -> Result<Self, SamplerError> {
        let settings = Settings { slots: SLOTS, min_bytes, sigprof_hz: 0, rule_words };
        let words = words_needed(&settings).unwrap_or(usize::MAX);
        let file = SharedFile::create(words)?;
        Region::create(file.words(), &settings);
        Ok(Self { file, waiting_since_ns: None, found: 0, skipped: 0, attached: false })
    }

    /// Tells the library what the machine is like; before the program starts.
    pub(crate) fn tell(&self, facts: &Facts) {
        if let Some(region) = self.region() {
            region.tell(facts);
        }
    }

    /// Puts rules in force; `false` where there is no room for them.
    pub(crate) fn publish(&self, rules: &[u64]) -> bool {
        self.region().is_some_and(|region| region.publish_rules(rules))
    }

    /// Puts the rules of the plan in force once more, with what was found out since.
    pub(crate) fn publish_again(&self, rules: &[u64]) {
        let _fits = self.region().is_some_and(|region| region.publish_again(rules));
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Asks the library for samples and mappings, before the program starts.
    pub(crate) fn ask(&self, sigprof_hz: u32, modules: bool) {
        let Some(region) = self.region() else { return };
        region.ask_for_sigprof(u64::from(sigprof_hz));
        if modules {
            region.ask_for_modules();
        }
    }

    /// Whether the library came up in any process.
    pub(crate) fn attached(&self) -> bool {
        self.attached
    }

    pub(crate) fn lost_events(&self) -> u64 {
        self.region().map_or(0, |region| region.lost_events()) + self.skipped
    }

    pub(crate) fn lost_samples(&self) -> u64 {
        self.region().map_or(0, |region| region.lost_samples())
    }

    /// How long to sleep before the next visit.
    pub(crate) fn tick_ms(&self) -> i32 {
        if self.found > MUCH { BUSY_TICK_MS } else { TICK_MS }
    }

    /// Takes out what is published, up to one ring's worth, so that a program that never pauses cannot
    /// keep us here. At the end of the program (`last`) nobody is waited for.
    pub(crate) fn drain(&mut self, last: bool, mut each: impl FnMut(Record)) {
        let mut words = [0; MAX_RECORD_WORDS];
        self.found = 0;
        while self.found < SLOTS {
            let Some(region) = Region::open(self.file.words()) else { return };
            match region.pop(&mut words) {
                Popped::Record(length) => {
                    self.waiting_since_ns = None;
                    self.found += 1;
                    let Some(record) = Record::decode(&words[..length]) else { continue };
                    self.attached |= record.event == Event::Start;
                    each(record);
                }
                Popped::Empty => return,
                Popped::Pending if last || waited_ns(&mut self.waiting_since_ns) >= PATIENCE_NS => {
                    region.skip();
                    self.skipped += 1;
                    self.waiting_since_ns = None;
                }
                Popped::Pending => return,
            }
        }
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
