//! A profile as if some of its objects were always in the core's caches: what a program would take without waiting for them.
//!
//! Their accesses stay, and so does what they compute; their lines never come from memory, and nobody waits for them, from
//! memory or from a cache further away. Other objects have their bandwidth. That others might have their share of the
//! caches, too, is left out: nobody has seen what that would bring.
//!
//! The factors of an anchored profile are made from all of a run's waiting, so a profile is anchored first.

use std::collections::BTreeSet;

use tierloom_model::{Access, Profile};

/// The profile without the waiting for objects of these names and without their traffic.
#[must_use]
pub fn ablated(profile: &Profile, names: &BTreeSet<&str>) -> Profile {
    let mut ablated = profile.clone();
    for phase in &mut ablated.phases {
        for access in phase.accesses.iter_mut().filter(|access| names.contains(access.object.as_str())) {
            phase.compute_s -= access.touched.map_or(0.0, |touched| touched.cache_wait_s);
            *access = without_memory(access);
        }
        phase.compute_s = phase.compute_s.max(0.0);
    }
    ablated
}

fn without_memory(access: &Access) -> Access {
    Access {
        dram_read_bytes: 0.0,
        dram_write_bytes: 0.0,
        // Another cache makes no difference.
        touched: None,
        wait_s: access.wait_s.map(|_| 0.0),
        ..access.clone()
    }
}
