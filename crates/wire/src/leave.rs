//! Processes that end, and the tracer that halts threads: they keep out of each other's way.
//!
//! At its end a program may trace itself: a leak checker halts all threads to look at what they hold, and there
//! can be one tracer only. So a process says that it is about to end and waits until nobody is held; the
//! tracer says that it holds, looks who is about to end, and leaves those alone. Each writes before it reads, in one
//! order for all (sequential consistency), so at least one of them sees the other.
//!
//! A thread that is about to unmap code says the same for a moment: a thread that is held may be in a copy of it.

use core::sync::atomic::Ordering::SeqCst;

use crate::Region;

impl Region<'_> {
    /// The process is about to end; `false` where there is no place left to say so.
    pub fn leave(&self, pid: u32) -> bool {
        let pid = u64::from(pid);
        let free = |place: &core::sync::atomic::AtomicU64| place.compare_exchange(0, pid, SeqCst, SeqCst).is_ok();
        self.leaving().iter().any(|place| place.load(SeqCst) == pid || free(place))
    }

    /// The process is left alone until this thread of it takes that back; `false` where there is no place left to say so.
    pub fn pause(&self, pid: u32, tid: u32) -> bool {
        let by = u64::from(pid) | u64::from(tid) << PID_BITS;
        self.leaving().iter().any(|place| place.compare_exchange(0, by, SeqCst, SeqCst).is_ok())
    }

    /// Takes it back.
    pub fn resume(&self, pid: u32, tid: u32) {
        let by = u64::from(pid) | u64::from(tid) << PID_BITS;
        for place in self.leaving() {
            // It is another's, or free.
            let _other = place.compare_exchange(by, 0, SeqCst, SeqCst);
        }
    }

    /// Whether a tracer holds a thread at this moment.
    pub fn is_holding(&self) -> bool {
        self.holding().load(SeqCst) != 0
    }

    /// The tracer is about to hold threads, or holds none any more.
    pub fn hold(&self, holds: bool) {
        self.holding().store(u64::from(holds), SeqCst);
    }

    /// Whether this process is about to end, or to be left alone for a moment.
    pub fn is_leaving(&self, pid: u32) -> bool {
        self.leaving().iter().any(|place| pid_of(place.load(SeqCst)) == pid)
    }

    /// Frees the places of processes that are gone.
    pub fn forget_left(&self, is_gone: impl Fn(u32) -> bool) {
        for place in self.leaving() {
            let by = place.load(SeqCst);
            if by != 0 && is_gone(pid_of(by)) {
                // Who takes it back meanwhile is not gone.
                let _changed = place.compare_exchange(by, 0, SeqCst, SeqCst);
            }
        }
    }
}

/// A place holds the id of a process, and above it that of a thread, or 0.
const PID_BITS: u32 = 32;

#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn pid_of(place: u64) -> u32 {
    place as u32
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::sync::atomic::AtomicU64;
    use std::vec::Vec;

    use super::*;
    use crate::{Settings, words_needed};

    const SETTINGS: Settings = Settings { slots: 2, lanes: 0, min_bytes: 0, rule_words: 0 };

    fn words() -> Vec<AtomicU64> {
        (0..words_needed(&SETTINGS).unwrap()).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn who_leaves_is_seen_until_it_is_gone() {
        let words = words();
        let region = Region::create(&words, &SETTINGS).unwrap();
        assert!(!region.is_leaving(7));
        assert!(region.leave(7) && region.leave(8) && region.leave(7));
        assert!(region.is_leaving(7) && region.is_leaving(8));
        region.forget_left(|pid| pid == 7);
        assert!(!region.is_leaving(7) && region.is_leaving(8));
    }

    #[test]
    fn a_crowd_that_leaves_is_told_when_there_is_no_place() {
        let words = words();
        let region = Region::create(&words, &SETTINGS).unwrap();
        let placed = (1..=100).filter(|pid| region.leave(*pid)).count();
        assert_eq!(placed, 64);
        region.forget_left(|_| true);
        assert!(region.leave(101));
    }

    #[test]
    fn who_pauses_is_left_alone_until_all_of_its_threads_are_done() {
        let words = words();
        let region = Region::create(&words, &SETTINGS).unwrap();
        assert!(region.pause(7, 7) && region.pause(7, 9));
        region.resume(7, 7);
        assert!(region.is_leaving(7) && !region.is_leaving(9));
        region.resume(7, 9);
        assert!(!region.is_leaving(7));
        assert!(region.pause(7, 7));
        region.forget_left(|pid| pid == 7);
        assert!(!region.is_leaving(7));
    }

    #[test]
    fn holding_is_seen() {
        let words = words();
        let region = Region::create(&words, &SETTINGS).unwrap();
        assert!(!region.is_holding());
        region.hold(true);
        assert!(region.is_holding());
        region.hold(false);
        assert!(!region.is_holding());
    }
}
