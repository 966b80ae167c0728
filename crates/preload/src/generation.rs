//! By what notes grow old: how many times rules came into force, and how many times stacks were forgotten.
//!
//! A stack is forgotten when new rules hold, because it was held against the old ones, and when libraries were
//! unloaded, because its addresses may mean other code then. Both counts lie on the page of the next library's
//! functions, which every call reads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::modules;

/// Generation of the rules that hold for threads and static arrays; 0 = nothing was ever placed.
#[unsafe(link_section = ".data")]
pub(crate) static RULES: AtomicU64 = AtomicU64::new(0);
/// How many times libraries were unloaded, as the loader counts, and rules changed, when stacks were last looked at.
#[unsafe(link_section = ".data")]
static STACKS: AtomicU32 = AtomicU32::new(0);
/// How many times libraries were unloaded, as the loader counted when it was last asked: asking takes its lock.
static UNLOADS: AtomicU64 = AtomicU64::new(0);

/// The generation that what is known of stacks must have.
#[inline]
pub(crate) fn of_stacks() -> u32 {
    STACKS.load(Ordering::Acquire)
}

/// A library may have been unloaded: by who has just held the loader's lock for it.
pub(crate) fn look_for_unloads() {
    UNLOADS.store(modules::unloads(), Ordering::Relaxed);
    forget_stacks();
}

/// The rules that stacks were held against have changed, or libraries.
pub(crate) fn forget_stacks() {
    // It may wrap around: nobody keeps a stack for that long.
    #[allow(clippy::cast_possible_truncation)]
    let generation = UNLOADS.load(Ordering::Relaxed).wrapping_add(RULES.load(Ordering::Relaxed)) as u32;
    STACKS.store(generation, Ordering::Release);
}
