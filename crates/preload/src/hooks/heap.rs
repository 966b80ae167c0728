//! Blocks of `malloc` and its family that are large, or were when they were handed out.

use std::ffi::c_int;

use tierloom_wire::{self as wire, Event, Stamp};

use super::{Block, allocated};
use crate::policy::{self, Handed};
use crate::tracked::{forget, note};
use crate::unwind::Entry;
use crate::{real, report, settings};

/// Passes a fresh block on, recorded if it is large.
#[inline]
fn noted(block: Block, bytes: usize, entry: Entry) -> Block {
    if bytes >= settings::min_bytes() && !block.is_null() {
        if !note(block as u64) {
            report::count_lost();
        }
        allocated(block as u64, bytes as u64, entry, Handed::Block);
    }
    block
}

/// What is known of a block that is about to be given back.
enum Released {
    /// Nobody was told of it.
    Ours(wire::Block),
    /// When it lost its place.
    Told(Stamp),
}

/// A recorded block is about to go: its pages lose our policy.
#[inline(always)]
#[allow(clippy::inline_always)]
fn released(block: Block) -> Released {
    if let Some(ours) = policy::take_back(block as u64) {
        return Released::Ours(ours);
    }
    policy::release(block as u64);
    Released::Told(report::now())
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn freed(block: Block, released: &Released) {
    if let Released::Told(stamp) = released {
        report::send(*stamp, Event::Free { address: block as u64 });
    }
}

/// It was not given back after all.
#[cold]
fn lives_on(block: Block, released: &Released) {
    note(block as u64);
    if let Released::Ours(ours) = released {
        policy::keep_again(ours);
    }
}

/// # Safety
/// That of `malloc`.
pub(crate) unsafe extern "C" fn on_malloc(bytes: usize, entry: Entry) -> Block {
    // SAFETY: the program's call, passed on.
    noted(unsafe { real::malloc(bytes) }, bytes, entry)
}

/// # Safety
/// That of `calloc`.
pub(crate) unsafe extern "C" fn on_calloc(count: usize, bytes: usize, entry: Entry) -> Block {
    // SAFETY: the program's call, passed on; it refuses a product that overflows.
    let block = unsafe { real::calloc(count, bytes) };
    noted(block, count.saturating_mul(bytes), entry)
}

/// # Safety
/// That of `realloc`.
pub(crate) unsafe extern "C" fn on_realloc(old: Block, bytes: usize, entry: Entry) -> Block {
    // Out of the set first: as soon as the block is gone, another thread may get its address.
    // SAFETY: the program gives it back, if all goes well.
    let since = unsafe { forget(old as u64) }.then(|| released(old));
    // SAFETY: the program's call, passed on.
    let new = unsafe { real::realloc(old, bytes) };
    match since {
        // It failed, so the old block lives on.
        Some(released) if new.is_null() && bytes > 0 => lives_on(old, &released),
        Some(released) => freed(old, &released),
        None => {}
    }
    noted(new, bytes, entry)
}

/// What comes before every kind of `free`.
///
/// # Safety
/// The block is the program's to give back.
unsafe fn before_free(block: Block) {
    // SAFETY: the caller's promise.
    if unsafe { forget(block as u64) } {
        freed(block, &released(block));
    }
}

/// # Safety
/// That of `free`.
pub(crate) unsafe extern "C" fn on_free(block: Block) {
    // SAFETY: the program's call, noted and passed on.
    unsafe { before_free(block) };
    // SAFETY: as above.
    unsafe { real::free(block) };
}

/// # Safety
/// That of `free_sized` (C23 7.24.3.4).
pub(crate) unsafe extern "C" fn on_free_sized(block: Block, bytes: usize) {
    // SAFETY: the program's call, noted and passed on.
    unsafe { before_free(block) };
    // SAFETY: as above.
    unsafe { real::free_sized(block, bytes) };
}

/// # Safety
/// That of `free_aligned_sized` (C23 7.24.3.5).
pub(crate) unsafe extern "C" fn on_free_aligned_sized(block: Block, alignment: usize, bytes: usize) {
    // SAFETY: the program's call, noted and passed on.
    unsafe { before_free(block) };
    // SAFETY: as above.
    unsafe { real::free_aligned_sized(block, alignment, bytes) };
}

/// `reallocarray` of what no memory can hold.
pub(crate) extern "C" fn on_overflow() -> Block {
    // SAFETY: errno is an int of this thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    std::ptr::null_mut()
}

/// # Safety
/// That of `posix_memalign`.
pub(crate) unsafe extern "C" fn on_posix_memalign(
    out: *mut Block,
    alignment: usize,
    bytes: usize,
    entry: Entry,
) -> c_int {
    // SAFETY: the program's call, passed on.
    let refused = unsafe { real::posix_memalign(out, alignment, bytes) };
    if refused == 0 {
        // SAFETY: the call succeeded, so it wrote a pointer there.
        noted(unsafe { *out }, bytes, entry);
    }
    refused
}

/// # Safety
/// That of `aligned_alloc`.
pub(crate) unsafe extern "C" fn on_aligned_alloc(alignment: usize, bytes: usize, entry: Entry) -> Block {
    // SAFETY: the program's call, passed on.
    noted(unsafe { real::aligned_alloc(alignment, bytes) }, bytes, entry)
}

/// # Safety
/// That of `memalign`.
pub(crate) unsafe extern "C" fn on_memalign(alignment: usize, bytes: usize, entry: Entry) -> Block {
    // SAFETY: the program's call, passed on.
    noted(unsafe { real::memalign(alignment, bytes) }, bytes, entry)
}

/// # Safety
/// That of `valloc`.
pub(crate) unsafe extern "C" fn on_valloc(bytes: usize, entry: Entry) -> Block {
    // SAFETY: the program's call, passed on.
    noted(unsafe { real::valloc(bytes) }, bytes, entry)
}

/// # Safety
/// That of `pvalloc`.
pub(crate) unsafe extern "C" fn on_pvalloc(bytes: usize, entry: Entry) -> Block {
    // SAFETY: the program's call, passed on.
    noted(unsafe { real::pvalloc(bytes) }, bytes, entry)
}
