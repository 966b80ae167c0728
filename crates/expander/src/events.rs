//! The event queue: what happens next, in order of time and, at one time, in order of scheduling.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::time::Ps;

/// Events that wait for their time. Promises: `next` never goes back in time, and events of one
/// time come in the order in which they were scheduled, so a run repeats bit for bit.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: BinaryHeap<Scheduled<E>>,
    scheduled: u64,
}

#[derive(Debug)]
struct Scheduled<E> {
    time: Ps,
    order: u64,
    event: E,
}

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::with_capacity(1024), scheduled: 0 }
    }

    /// Lets `event` happen at `time`.
    pub(crate) fn at(&mut self, time: Ps, event: E) {
        self.scheduled += 1;
        self.heap.push(Scheduled { time, order: self.scheduled, event });
    }

    /// The earliest event and its time.
    pub(crate) fn next(&mut self) -> Option<(Ps, E)> {
        self.heap.pop().map(|scheduled| (scheduled.time, scheduled.event))
    }
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.order) == (other.time, other.order)
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    /// Reversed: the heap gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.order).cmp(&(self.time, self.order))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_then_in_the_order_of_scheduling(times in prop::collection::vec(0_u64..50, 0..200)) {
            let mut events = Events::new();
            for (order, &time) in times.iter().enumerate() {
                events.at(time, order);
            }
            let mut expected: Vec<(Ps, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort_unstable();
            let found: Vec<_> = std::iter::from_fn(|| events.next()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
