//! A profile as if some of its objects were always in the core's caches: what a program would take without waiting for them.
//!
//! Their accesses stay, and so does what they compute; their lines never come from memory, and nobody waits for them, from
//! memory or from a cache further away. Other objects have their bandwidth. That others might have their share of the
//! caches, too, is left out: nobody has seen what that would bring.
//!
//! Misses of several objects may have been waited for at once. Samples then saw other objects waited for less than the model
//! gives them alone, and without this object they may be waited for as long as that. Whether they were short for this
//! reason, or the model gives them too much, nobody has seen either: so that is where the range ends.
//!
//! The factors of an anchored profile are made from all of a run's waiting, so a profile is anchored first.

use std::collections::BTreeSet;

use tierloom_model::{Access, Profile};

/// A profile without what some objects cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Ablated {
    /// Others are waited for as they were seen to be.
    pub likely: Profile,
    /// Others are waited for as long as the model gives them alone, and all together no longer than all were before.
    pub uncovered: Profile,
}

/// The profile without the waiting for objects of these names and without their traffic.
#[must_use]
pub fn ablated(profile: &Profile, names: &BTreeSet<&str>) -> Ablated {
    let is_ablated = |access: &Access| names.contains(access.object.as_str());
    let mut likely = profile.clone();
    for phase in &mut likely.phases {
        for access in phase.accesses.iter_mut().filter(|access| is_ablated(access)) {
            phase.compute_s -= access.touched.map_or(0.0, |touched| touched.cache_wait_s);
            *access = without_memory(access);
        }
        phase.compute_s = phase.compute_s.max(0.0);
    }
    let mut uncovered = likely.clone();
    for (phase, before) in uncovered.phases.iter_mut().zip(&profile.phases) {
        let waits = before.accesses.iter().filter(|access| is_ablated(access)).filter_map(|access| access.wait_s);
        uncover(&mut phase.accesses, waits.sum());
    }
    Ablated { likely, uncovered }
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

/// Has accesses waited for as long as they are alone, but for no more than `free_s` longer.
fn uncover(accesses: &mut [Access], free_s: f64) {
    let covered_s = |access: &Access| match (access.wait_s, access.wait_factor) {
        (Some(seen_s), Some(factor)) if factor > 0.0 && factor < 1.0 => seen_s / factor - seen_s,
        _ => 0.0,
    };
    let all_s: f64 = accesses.iter().map(covered_s).sum();
    let part = if all_s > free_s { free_s / all_s } else { 1.0 };
    for access in accesses.iter_mut() {
        let longer_s = covered_s(access) * part;
        if let (Some(seen_s), Some(factor)) = (&mut access.wait_s, &mut access.wait_factor)
            && longer_s > 0.0
        {
            *factor *= (*seen_s + longer_s) / *seen_s;
            *seen_s += longer_s;
        }
    }
}
