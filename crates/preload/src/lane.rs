//! The lane of a thread: where it writes what happens often, by itself (see the wire's `lane`).
//!
//! A lane is taken with a thread's first record and when the last one is full, and never given back: the
//! recorder sees when the thread is gone. So nothing has to be done when threads end, however they do.

use std::sync::atomic::{AtomicBool, Ordering};

use tierloom_wire::{Cursor, Event, Owner, Region, Stamp};

use crate::{forked, thread};

/// Whether this process may take lanes: the recorder must be able to see that their owners are gone.
static MAY_TAKE: AtomicBool = AtomicBool::new(false);

/// Finds out whether this process may take lanes: when it comes up, and when it was forked.
pub(crate) fn ask(region: &Region) {
    let ours = namespace();
    MAY_TAKE.store(ours != 0 && ours == region.namespace(), Ordering::Relaxed);
}

/// Whether the recorder's process ids are ours.
pub(crate) fn is_near_recorder() -> bool {
    MAY_TAKE.load(Ordering::Relaxed)
}

/// No lane is read any more.
pub(crate) fn leave() {
    MAY_TAKE.store(false, Ordering::Relaxed);
}

/// The namespace of process ids, by the number of its file; 0 where there is no `/proc`.
fn namespace() -> u64 {
    // SAFETY: `status` is plain numbers for which zero is valid, the path a C string. By number, because
    // programs bring a `stat` of their own.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let path = c"/proc/self/ns/pid".as_ptr();
        let failed = libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, &raw mut status, 0);
        if failed == 0 { status.st_ino } else { 0 }
    }
}

/// Writes what happened at this time; `false` where the event or the thread is one for the ring.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(crate) fn write(region: &Region, stamp: Stamp, event: &Event) -> bool {
    if !event.is_brief() {
        return false;
    }
    let mut cursor = thread::take_place();
    if cursor.is_none() {
        cursor = enter(region);
    }
    !cursor.is_none() && region.write(cursor, stamp, event)
}

/// The first place of another lane.
#[cold]
fn enter(region: &Region) -> Cursor {
    if forked::pid() == 0 || !MAY_TAKE.load(Ordering::Relaxed) {
        return Cursor::NONE;
    }
    let (pid, tid) = thread::identity();
    let here = thread::take_place();
    if !here.is_none() {
        return here;
    }
    let Some(first) = region.take_lane(Owner { pid, tid }, thread::place()) else { return Cursor::NONE };
    if !thread::enter_lane(first) {
        region.return_lane(first);
    }
    thread::take_place()
}
