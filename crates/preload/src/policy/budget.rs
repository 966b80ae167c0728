//! What placed objects cost, within what the recorder allows: mappings of the kernel's, and bytes that were brought
//! in before the program touched them. The program may not find itself out of either because of us.

use std::sync::atomic::{AtomicU64, Ordering};

use tierloom_wire::Facts;

use super::kernel;
use super::objects::{OBJECTS, Object};

/// Mappings of the kernel's that a range with a policy of its own costs: itself, and what it parts.
pub(super) const PARTS: u32 = 2;
/// Mappings that placed ranges have cost.
static STRIPES: AtomicU64 = AtomicU64::new(0);
/// Bytes that were brought in before they were touched.
static EAGER: AtomicU64 = AtomicU64::new(0);

/// Mappings that are always in the cache.
static ALIASED: AtomicU64 = AtomicU64::new(0);

/// Stripes that the process may still have.
pub(super) fn stripes_left(facts: &Facts) -> u64 {
    facts.stripes.saturating_sub(STRIPES.load(Ordering::Relaxed))
}

/// Bytes that may still be brought in: of what is free now, half.
pub(super) fn eager_left(facts: &Facts) -> u64 {
    facts.eager_bytes.saturating_sub(EAGER.load(Ordering::Relaxed)).min(kernel::free_bytes() / 2)
}

/// Enters an object into the books, in place of one that had its address; `false` where there is no room.
pub(super) fn enter(object: &Object) -> bool {
    STRIPES.fetch_add(u64::from(object.stripes), Ordering::Relaxed);
    EAGER.fetch_add(eager_bytes(object), Ordering::Relaxed);
    forget(object.address);
    let is_entered = OBJECTS.get().is_some_and(|objects| objects.insert(object));
    if is_entered && object.is_aliased_mapping() {
        ALIASED.fetch_add(1, Ordering::Relaxed);
    }
    is_entered
}

/// The address of a mapping that is always in the cache and has pages in this range. There are few of them, or none: then
/// nobody looks.
pub(super) fn aliased_mapping_in(start: u64, end: u64) -> Option<u64> {
    let objects = OBJECTS.get().filter(|_| ALIASED.load(Ordering::Relaxed) > 0)?;
    let mut found = None;
    objects.for_each(|object| {
        if object.is_aliased_mapping() && object.start < end && start < object.end() {
            found = Some(object.address);
        }
    });
    found
}

/// Takes an object out of the books.
pub(super) fn forget(address: u64) -> Option<Object> {
    let object = OBJECTS.get()?.remove(address)?;
    STRIPES.fetch_sub(u64::from(object.stripes), Ordering::Relaxed);
    EAGER.fetch_sub(eager_bytes(&object), Ordering::Relaxed);
    if object.is_aliased_mapping() {
        ALIASED.fetch_sub(1, Ordering::Relaxed);
    }
    Some(object)
}

fn eager_bytes(object: &Object) -> u64 {
    if object.populated { object.bytes } else { 0 }
}
