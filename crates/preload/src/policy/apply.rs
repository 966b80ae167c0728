//! One rule for one range: its whole pages, within the budget; the kernel's answer is told, and what was placed kept.

use tierloom_wire::{Event, Facts, How, Options, PAGE_BYTES, Policy, Rule, TOO_MANY_MAPPINGS};

use super::mempolicy::{self, Outcome, Range};
use super::objects::{Kind, Object};
use super::{budget, weighted_interleave};
use crate::report;

/// Asks for a range what a rule wants. `mapped_with`: the size of its pages, where it was mapped with a certain one.
pub(super) fn apply(index: u32, rule: &Rule, address: u64, bytes: u64, kind: Kind, mapped_with: Option<u64>) {
    if rule.policy == Policy::FirstTouch && rule.options == Options::default() {
        return;
    }
    let Some(region) = report::region() else { return };
    let Some((start, bytes)) = whole_pages(address, bytes, mapped_with.unwrap_or(PAGE_BYTES)) else { return };
    let Some(range) = range(&region.facts(), (start, bytes), kind, mapped_with) else {
        return answer(index, start, bytes, TOO_MANY_MAPPINGS, How::Policy);
    };
    let outcome = mempolicy::apply(rule.policy, rule.options, range);
    tell(index, start, bytes, &outcome);
    if outcome.errno != 0 {
        return;
    }
    #[allow(clippy::cast_possible_truncation)]
    let plan = region.plan() as u32;
    let (unit, stripes) = (outcome.unit, outcome.stripes.max(budget::PARTS));
    let held = outcome.held == Some(0);
    let (populated, aliased) = (outcome.how == How::Populate, outcome.how == How::Alias);
    let object = Object { address, start, bytes, rule: index, plan, unit, stripes, kind, held, populated, aliased };
    if !budget::enter(&object) {
        report::count_lost();
    }
}

/// The range as the policy needs to know it; `None` where there are no mappings left for it.
fn range(facts: &Facts, (start, bytes): (u64, u64), kind: Kind, mapped_with: Option<u64>) -> Option<Range> {
    let page_bytes = weighted_interleave::page_bytes(facts, start, bytes, mapped_with);
    let stripes_left = budget::stripes_left(facts);
    if stripes_left < u64::from(budget::PARTS) {
        return None;
    }
    let eager_bytes = if kind == Kind::File { 0 } else { budget::eager_left(facts) };
    Some(Range { start, bytes, page_bytes, stripes_left, eager_bytes })
}

/// The whole pages inside a range.
fn whole_pages(address: u64, bytes: u64, page: u64) -> Option<(u64, u64)> {
    let start = address.checked_next_multiple_of(page)?;
    let end = address.checked_add(bytes)? / page * page;
    (end > start).then(|| (start, end - start))
}

fn tell(rule: u32, start: u64, bytes: u64, outcome: &Outcome) {
    let shift = if outcome.unit == 0 { 0 } else { outcome.unit.trailing_zeros() };
    let event = Event::Placed { rule, address: start, bytes, errno: outcome.errno, how: outcome.how, shift };
    report::send(report::now(), event);
    if outcome.moved.went > 0 {
        answer(rule, start, outcome.moved.went * PAGE_BYTES, 0, How::Move);
    }
    if outcome.moved.stuck > 0 {
        answer(rule, start, outcome.moved.stuck * PAGE_BYTES, outcome.moved.errno.max(1), How::Move);
    }
    if let Some(errno) = outcome.held {
        answer(rule, start, bytes, errno, How::Hold);
    }
}

/// Tells what the kernel answered.
pub(super) fn answer(rule: u32, address: u64, bytes: u64, errno: u32, how: How) {
    report::send(report::now(), Event::Placed { rule, address, bytes, errno, how, shift: 0 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_are_placed() {
        assert_eq!(whole_pages(4096, 8192, PAGE_BYTES), Some((4096, 8192)));
        assert_eq!(whole_pages(4097, 8192, PAGE_BYTES), Some((8192, 4096)));
        assert_eq!(whole_pages(4097, 4096, PAGE_BYTES), None);
        assert_eq!(whole_pages(u64::MAX, 4096, PAGE_BYTES), None);
        assert_eq!(whole_pages(4096, 8 << 20, 2 << 20), Some((2 << 20, 6 << 20)));
    }
}
