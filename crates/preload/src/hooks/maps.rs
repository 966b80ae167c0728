//! Mappings that the program makes, moves, resizes and takes away itself, and the heap by `brk`.
//!
//! A range that stays where it is keeps its identity: of a mapping that is shortened only the tail is
//! gone, of one that grows in place only the new part is new.

use std::ffi::c_int;

use tierloom_wire::{Event, Stamp};

use super::{Block, allocated};
use crate::policy::{self, Fate, Handed};
use crate::unwind::Entry;
use crate::{real, report, settings};

fn is_large(bytes: usize) -> bool {
    bytes >= settings::min_bytes()
}

/// Records that a range was unmapped after this time. Small ones too: they may be parts of a large one.
fn unmapped(stamp: Stamp, address: u64, bytes: usize) {
    if bytes > 0 {
        report::send(stamp, Event::Unmap { address, bytes: bytes as u64 });
    }
}

/// The time, if anybody wants to know it.
fn before() -> Option<Stamp> {
    report::region().map(|_| report::now())
}

/// # Safety
/// That of `mmap`.
pub(crate) unsafe extern "C" fn on_mmap(
    hint: Block,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    entry: Entry,
) -> Block {
    let is_over_others = flags & libc::MAP_FIXED != 0;
    let since = if is_over_others { before() } else { None };
    if is_over_others {
        policy::release_range(hint as u64, bytes as u64, Fate::Goes);
    }
    // SAFETY: the program's call, passed on.
    let start = unsafe { real::mmap(hint, bytes, access, flags, file, offset) };
    if start == libc::MAP_FAILED {
        return start;
    }
    if is_large(bytes) {
        let handed = match (flags & libc::MAP_ANONYMOUS != 0, access) {
            (true, libc::PROT_NONE) => Handed::Addresses(flags),
            (true, _) => Handed::Mapping(flags),
            (false, _) => Handed::File(file),
        };
        allocated(start as u64, bytes as u64, entry, handed);
    } else if let Some(stamp) = since {
        unmapped(stamp, start as u64, bytes);
    }
    start
}

/// # Safety
/// That of `munmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn munmap(start: Block, bytes: usize) -> c_int {
    let since = before();
    policy::release_range(start as u64, bytes as u64, Fate::Goes);
    // SAFETY: the program's call, passed on.
    let refused = unsafe { real::munmap(start, bytes) };
    if let Some(stamp) = since.filter(|_| refused == 0) {
        unmapped(stamp, start as u64, bytes);
    }
    refused
}

/// `mprotect`: addresses that were only reserved become memory so, and memory that again.
///
/// # Safety
/// That of libc.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mprotect(start: Block, bytes: usize, access: c_int) -> c_int {
    let since = if is_large(bytes) { before() } else { None };
    // SAFETY: the program's call, passed on.
    let refused = unsafe { real::mprotect(start, bytes, access) };
    if let Some(stamp) = since.filter(|_| refused == 0) {
        let accessible = access != libc::PROT_NONE;
        let event = Event::Protect { address: start as u64, bytes: bytes as u64, accessible };
        report::send(stamp, event);
    }
    refused
}

/// # Safety
/// That of `mremap`; `at` is looked at only where the flags say so.
pub(crate) unsafe extern "C" fn on_mremap(
    old: Block,
    from: usize,
    to: usize,
    flags: c_int,
    at: Block,
    entry: Entry,
) -> Block {
    let since = before();
    policy::release_range(old as u64, from as u64, Fate::Moves);
    if flags & libc::MREMAP_FIXED != 0 {
        policy::release_range(at as u64, to as u64, Fate::Goes);
    }
    // SAFETY: the program's call, passed on.
    let new = unsafe { real::mremap(old, from, to, flags, at) };
    if let Some(stamp) = since.filter(|_| new != libc::MAP_FAILED) {
        let stays = flags & libc::MREMAP_DONTUNMAP != 0;
        remapped(stamp, (old as u64, from), (new as u64, to), stays, entry);
    }
    new
}

fn remapped(stamp: Stamp, (old, from): (u64, usize), (new, to): (u64, usize), stays: bool, entry: Entry) {
    if old == new && to <= from {
        return unmapped(stamp, old + to as u64, from - to);
    }
    let kept = if old == new { from } else { 0 };
    if old != new && !stays {
        unmapped(stamp, old, from);
    }
    if is_large(to) {
        allocated(new + kept as u64, (to - kept) as u64, entry, Handed::Mapping(0));
    }
}

/// # Safety
/// That of `sbrk`.
pub(crate) unsafe extern "C" fn on_sbrk(by: isize, entry: Entry) -> Block {
    let since = before();
    // SAFETY: the program's call, passed on.
    let end = unsafe { real::sbrk(by) };
    if let Some(stamp) = since.filter(|_| end != libc::MAP_FAILED) {
        broken(stamp, end as u64, (end as u64).wrapping_add_signed(by as i64), entry);
    }
    end
}

/// # Safety
/// That of `brk`.
pub(crate) unsafe extern "C" fn on_brk(to: Block, entry: Entry) -> c_int {
    let since = before();
    // SAFETY: asks where the heap ends.
    let end = unsafe { real::sbrk(0) };
    // SAFETY: the program's call, passed on.
    let refused = unsafe { real::brk(to) };
    if let Some(stamp) = since.filter(|_| refused == 0) {
        broken(stamp, end as u64, to as u64, entry);
    }
    refused
}

/// The end of the heap moved.
fn broken(stamp: Stamp, from: u64, to: u64, entry: Entry) {
    if to < from {
        report::send(stamp, Event::Unmap { address: to, bytes: from - to });
    } else if is_large(usize::try_from(to - from).unwrap_or(0)) {
        allocated(from, to - from, entry, Handed::Mapping(0));
    }
}
