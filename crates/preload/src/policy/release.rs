//! The end of a placed object: where its pages are is told, and what its next owner must not inherit is undone.

use tierloom_wire::{Event, MAX_RESIDENT_NODES, PAGE_BYTES, RuleReader};

use super::objects::{Kind, OBJECTS, Object};
use super::{alias, budget, kernel, mempolicy, residency};
use crate::report;

/// An object, if there is one at this address, is about to be given back.
#[cold]
pub(super) fn release(address: u64) {
    let Some(object) = budget::forget(address) else { return };
    tell_residency(&object, residency::AT_RELEASE);
    if object.aliased {
        alias::undo(object.start, object.bytes);
    } else if object.kind == Kind::Heap {
        if object.held {
            kernel::unlock(object.start, object.bytes);
        }
        kernel::mbind(object.start, object.bytes, libc::MPOL_DEFAULT, 0, false);
    }
}

/// What becomes of a range that the program had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is unmapped, or another mapping takes its place.
    Goes,
    /// It moves or changes its size, and has to be one mapping for that.
    Moves,
}

/// A range is about to go or to move. Mappings that are always in the cache are cut where it begins and ends: what is left of
/// them stays as it is, and nobody takes what comes here next for theirs.
#[cold]
pub(super) fn release_range(start: u64, bytes: u64, fate: Fate) {
    let end = start.saturating_add(bytes.next_multiple_of(PAGE_BYTES));
    while let Some(address) = budget::aliased_mapping_in(start, end) {
        if let Some(object) = budget::forget(address) {
            cut(&object, (start, end), fate);
        }
    }
    release(start);
}

fn cut(object: &Object, (start, end): (u64, u64), fate: Fate) {
    let (from, to, object_end) = (start.max(object.start), end.min(object.end()), object.end());
    if fate == Fate::Moves {
        alias::undo(from, to - from);
    }
    if (from, to) == (object.start, object_end) {
        return tell_residency(object, residency::AT_RELEASE);
    }
    let left = [(object.address, object.start, from), (to, to, object_end)];
    for (address, start, end) in left.into_iter().filter(|(_, start, end)| start < end) {
        let bytes = end - start;
        let stripes = u128::from(object.stripes) * u128::from(bytes) / u128::from(object.bytes);
        let stripes = u32::try_from(stripes).unwrap_or(object.stripes);
        budget::enter(&Object { address, start, bytes, stripes, ..*object });
    }
}

/// Tells where the pages of all placed objects are.
pub(super) fn tell_all() {
    if let Some(objects) = OBJECTS.get() {
        objects.for_each(|object| tell_residency(object, residency::AT_EXIT));
    }
}

/// Tells where an object's pages are, held against the rule that placed it; nothing once another plan is in force.
fn tell_residency(object: &Object, most: u64) {
    let Some(region) = report::region() else { return };
    if u64::from(object.plan) != region.plan() & u64::from(u32::MAX) {
        return;
    }
    let mut reader = RuleReader::new(region.rules().1);
    for _ in 0..object.rule {
        if reader.read().is_none() {
            return;
        }
    }
    let Some(meant) = reader.read().and_then(|rule| mempolicy::meant(rule.policy, object.unit)) else { return };
    let found = residency::look(object.start, object.bytes, meant, most);
    let mut nodes = [0; MAX_RESIDENT_NODES];
    let count = found.pack(&mut nodes);
    let event =
        Event::Resident { rule: object.rule, address: object.start, pages: found.pages, nodes: &nodes[..count] };
    report::send(report::now(), event);
}
