//! The shared file, from the program's side: what happens often goes into the thread's lane, the rest into
//! the ring.

use std::arch::x86_64::__rdtscp;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{ptr, slice};

use tierloom_wire::{Event, MAX_RECORD_WORDS, Record, Region, Stamp};

use crate::{forked, lane, recorder, settings, thread};

/// The mapped file; not set until attached, and in programs that nobody records.
static REGION: OnceLock<Region<'static>> = OnceLock::new();
/// Nobody may be told anything any more. It lies on the page of the next library's functions, which every call reads.
#[unsafe(link_section = ".data")]
static CLOSED: AtomicBool = AtomicBool::new(false);
/// `TIERLOOM_REGION` with the zero byte that C wants; a test holds it to the name that the wire gives.
const VARIABLE: &CStr = c"TIERLOOM_REGION";

/// The shared file, once attached.
#[inline]
pub(crate) fn region() -> Option<&'static Region<'static>> {
    if CLOSED.load(Ordering::Relaxed) { None } else { REGION.get() }
}

/// Nothing is recorded or placed from now on: this process is about to give up the processor's clock, or system
/// calls. It makes none here.
pub(crate) fn close() {
    if let Some(region) = region() {
        region.count_closed();
    }
    CLOSED.store(true, Ordering::Relaxed);
    settings::record_none();
}

/// Opens the file that the environment names, and says that this process is there; `None` where nobody records.
pub(crate) fn attach() -> Option<()> {
    // SAFETY: the environment is not changed while constructors run; the name is a C string.
    let path = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if path.is_null() {
        return None;
    }
    // SAFETY: getenv returned a C string.
    let path = unsafe { CStr::from_ptr(path) };
    let region = Region::open(map(path)?)?;
    recorder::remember(path);
    forked::watch();
    settings::take_clock(&region);
    lane::ask(&region);
    // Before any record of any thread: the recorder takes older lanes of this process for another program's.
    let begun = now();
    REGION.set(region).ok()?;
    settings::take_size(&region);
    // SAFETY: registers a function that lives as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    send(begun, Event::Start);
    Some(())
}

/// Maps the file for good.
fn map(path: &CStr) -> Option<&'static [AtomicU64]> {
    if !recorder::is_memory(path) {
        return None;
    }
    // SAFETY: `path` is a C string, `status` plain numbers for which zero is valid; the mapping is a
    // new one at an address of the kernel's choice.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(file, &raw mut status);
        let bytes = usize::try_from(status.st_size).unwrap_or(0);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let start = crate::real::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0);
        libc::close(file);
        // Every side accesses the words as atomics only.
        (start != libc::MAP_FAILED).then(|| slice::from_raw_parts(start.cast(), bytes / size_of::<AtomicU64>()))
    }
}

extern "C" fn after_fork() {
    let parent = forked::learn();
    if let Some(region) = region().filter(|_| !is_gone()) {
        lane::ask(region);
    }
    send(now(), Event::Fork { parent });
}

/// Sends what happened at this time; counts it as lost where there is no room. In line, so that the kind of
/// event is known here and the record goes from registers to its place.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(crate) fn send(stamp: Stamp, event: Event) -> bool {
    let Some(region) = region() else { return false };
    lane::write(region, stamp, &event) || thread::quietly(|| send_by_ring(region, stamp, &event))
}

#[cold]
#[inline(never)]
fn send_by_ring(region: &Region, stamp: Stamp, event: &Event) -> bool {
    if forked::pid() == 0 {
        after_fork();
    }
    let (pid, tid) = thread::identity();
    let record = Record { pid, tid, stamp, event: *event };
    let mut words = [0; MAX_RECORD_WORDS];
    let words = record.encode(&mut words);
    let sent = region.push(words) || {
        let since_ns = monotonic_ns();
        let sent = wait_for(region, || lane::write(region, stamp, event) || region.push(words));
        region.count_waited(monotonic_ns().saturating_sub(since_ns));
        sent
    };
    if !sent {
        region.count_lost();
    }
    sent
}

/// Counts a block whose end will not be seen.
pub(crate) fn count_lost() {
    if let Some(region) = region() {
        region.count_lost();
    }
}

/// How long a thread sleeps before it looks again for room, ns: at first a tenth of the time between two visits of
/// a busy recorder, then twice as long each time, so that a thousand threads that wait leave it the processor.
const SHORTEST_NAP_NS: i64 = 200_000;
const LONGEST_NAP_NS: i64 = 20_000_000;
/// How long a recorder may not move at all before it counts as stopped, ns: longer than it waits for a processor
/// where many want one.
const PATIENCE_NS: i64 = 1_000_000_000;
/// How far the recorder was when it was last waited for in vain.
static STUCK_AT: AtomicU64 = AtomicU64::new(u64::MAX);
/// It was killed: nothing is recorded any more.
static GONE: AtomicBool = AtomicBool::new(false);

fn is_gone() -> bool {
    GONE.load(Ordering::Relaxed)
}

/// Waits for the recorder to make room, until `write` finds some: a burst costs time and no record. A recorder that
/// did not move at all is stopped, and not waited for again; one that is gone is not waited for.
#[cold]
fn wait_for(region: &Region, write: impl Fn() -> bool) -> bool {
    let (mut nap_ns, mut waited_ns, mut seen_at) = (SHORTEST_NAP_NS, 0, region.progress());
    if is_gone() || STUCK_AT.load(Ordering::Relaxed) == seen_at {
        return false;
    }
    while waited_ns < PATIENCE_NS {
        if recorder::is_gone(region) {
            give_up(region);
            return false;
        }
        let nap = libc::timespec { tv_sec: 0, tv_nsec: nap_ns };
        // SAFETY: the time is valid; a signal may cut it short. Async-signal-safe (POSIX.1-2017 2.4.3).
        unsafe { libc::syscall(libc::SYS_nanosleep, &raw const nap, ptr::null_mut::<libc::timespec>()) };
        if write() {
            return true;
        }
        let now_at = region.progress();
        waited_ns = if now_at == seen_at { waited_ns + nap_ns } else { 0 };
        seen_at = now_at;
        nap_ns = LONGEST_NAP_NS.min(2 * nap_ns);
    }
    STUCK_AT.store(seen_at, Ordering::Relaxed);
    false
}

/// Nobody reads any more: blocks are as small as before the file was mapped, but for what rules place.
#[cold]
fn give_up(region: &Region) {
    GONE.store(true, Ordering::Relaxed);
    lane::leave();
    if region.settings().rule_words == 0 {
        settings::record_none();
    }
}

/// The time of a record: the time-stamp counter where the recorder asks for it, else `CLOCK_MONOTONIC` by the
/// vDSO; either way without entering the kernel.
///
/// `RDTSCP` reads the counter when all loads before it are done (Intel SDM 2B; AMD APM 3): a thread that gives a
/// block back has seen it handed out, and so must its time have. What comes after it need not wait, as behind a
/// fence.
#[inline]
pub(crate) fn now() -> Stamp {
    if settings::in_ticks() {
        let mut processor = 0;
        // SAFETY: the recorder asks for ticks only where the processor has the instruction; `processor` is an int.
        Stamp(unsafe { __rdtscp(&raw mut processor) })
    } else {
        Stamp(monotonic_ns())
    }
}

#[cold]
#[inline(never)]
fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_mean_the_same_variable() {
        assert_eq!(VARIABLE.to_str(), Ok(tierloom_wire::REGION_VARIABLE));
    }
}
