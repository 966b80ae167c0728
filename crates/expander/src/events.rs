//! The event queue: what happens next, in order of time and, at one time, in order of scheduling.
//!
//! A timing wheel (Varghese and Lauck 1987, scheme 6 with an overflow): events of the next
//! microsecond lie in buckets of a quarter of a nanosecond, each a short list in order. Those
//! further ahead wait in a heap, and come to the wheel as soon as its window reaches them, which is
//! before anything scheduled later could stand beside them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::time::Ps;

/// A bucket is this power of two of picoseconds wide.
const WIDTH: u32 = 8;
const BUCKETS: usize = WORDS * 64;
/// Words of a bit a bucket, as many as one word has bits.
const WORDS: usize = 64;
const NONE: u32 = u32::MAX;

/// Events that wait for their time. Promises: `next` never goes back in time, and events of one
/// time come in the order in which they were scheduled, so a run repeats bit for bit.
#[derive(Debug)]
pub(crate) struct Events<E> {
    /// First event of each bucket of the window, which begins at bucket number `first`.
    buckets: Box<[u32; BUCKETS]>,
    /// A bit for every bucket that holds something.
    filled: [u64; WORDS],
    /// A bit for every word of `filled` with a bit in it.
    filled_words: u64,
    first: u64,
    nodes: Vec<Node<E>>,
    /// Nodes that are not in use, in a list.
    free: u32,
    far: BinaryHeap<Far<E>>,
    /// Bucket number of the first of them.
    far_from: u64,
    scheduled: u64,
}

#[derive(Debug)]
struct Node<E> {
    time: Ps,
    next: u32,
    event: E,
}

/// An event beyond the window.
#[derive(Debug)]
struct Far<E> {
    time: Ps,
    order: u64,
    event: E,
}

impl<E: Copy> Events<E> {
    pub(crate) fn new() -> Self {
        Self {
            buckets: Box::new([NONE; BUCKETS]),
            filled: [0; WORDS],
            filled_words: 0,
            first: 0,
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            far_from: u64::MAX,
            scheduled: 0,
        }
    }

    /// Lets `event` happen at `time`, which is not before the time of the event that came last.
    pub(crate) fn at(&mut self, time: Ps, event: E) {
        debug_assert!(time >> WIDTH >= self.first, "an event of the past");
        if time >> WIDTH < self.first + BUCKETS as u64 {
            self.put(time, event);
        } else {
            self.scheduled += 1;
            self.far_from = self.far_from.min(time >> WIDTH);
            self.far.push(Far { time, order: self.scheduled, event });
        }
    }

    /// The earliest event and its time.
    pub(crate) fn next(&mut self) -> Option<(Ps, E)> {
        if self.filled_words == 0 {
            self.move_window(self.far.peek()?.time);
        }
        let bucket = self.first_filled()?;
        let (time, event) = self.take(bucket);
        self.move_window(time);
        Some((time, event))
    }

    /// Lets the window begin at `time`, and what it now reaches come in.
    fn move_window(&mut self, time: Ps) {
        self.first = time >> WIDTH;
        if self.far_from < self.first + BUCKETS as u64 {
            self.bring_in();
        }
    }

    fn bring_in(&mut self) {
        while let Some(next) = self.far.peek()
            && next.time >> WIDTH < self.first + BUCKETS as u64
        {
            if let Some(Far { time, event, .. }) = self.far.pop() {
                self.put(time, event);
            }
        }
        self.far_from = self.far.peek().map_or(u64::MAX, |next| next.time >> WIDTH);
    }

    /// Puts an event behind those of its bucket that are not later.
    fn put(&mut self, time: Ps, event: E) {
        let bucket = (time >> WIDTH) as usize % BUCKETS;
        let (mut before, mut after) = (NONE, self.buckets[bucket]);
        while after != NONE && self.nodes[after as usize].time <= time {
            (before, after) = (after, self.nodes[after as usize].next);
        }
        let node = self.node(Node { time, next: after, event });
        if before == NONE {
            self.buckets[bucket] = node;
            self.filled[bucket / 64] |= 1 << (bucket % 64);
            self.filled_words |= 1 << (bucket / 64);
        } else {
            self.nodes[before as usize].next = node;
        }
    }

    fn node(&mut self, node: Node<E>) -> u32 {
        if self.free == NONE {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        let place = self.free;
        self.free = std::mem::replace(&mut self.nodes[place as usize], node).next;
        place
    }

    /// Takes the first event out of a bucket that has one.
    fn take(&mut self, bucket: usize) -> (Ps, E) {
        let bucket = bucket % BUCKETS;
        let place = self.buckets[bucket];
        let node = &mut self.nodes[place as usize];
        self.buckets[bucket] = std::mem::replace(&mut node.next, self.free);
        self.free = place;
        if self.buckets[bucket] == NONE {
            self.filled[bucket / 64] &= !(1 << (bucket % 64));
            self.filled_words &= !(u64::from(self.filled[bucket / 64] == 0) << (bucket / 64));
        }
        (node.time, node.event)
    }

    /// The first bucket with something in it, in the order of the window.
    fn first_filled(&self) -> Option<usize> {
        let (word, bit) = ((self.first / 64) as usize % WORDS, self.first % 64);
        let ahead = self.filled[word] & (!0 << bit);
        if ahead != 0 {
            return Some(word * 64 + ahead.trailing_zeros() as usize);
        }
        if self.filled_words == 0 {
            return None;
        }
        // The words after this one, and at last what of this one the window reaches again.
        let turn = self.filled_words.rotate_right(word as u32 + 1).trailing_zeros() as usize;
        let word = (word + 1 + turn) % WORDS;
        Some(word * 64 + self.filled[word].trailing_zeros() as usize)
    }
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.order) == (other.time, other.order)
    }
}

impl<E> Eq for Far<E> {}

impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Far<E> {
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
        /// Within a bucket, within the window, and far beyond it; scheduled while others are taken.
        #[test]
        fn events_come_by_time_and_then_in_the_order_of_scheduling(
            steps in prop::collection::vec((prop_oneof![0_u64..600, 0..(1_u64 << 21), 0..(1_u64 << 30)], any::<bool>()), 0..300)
        ) {
            let (mut events, mut waiting, mut now) = (Events::new(), std::collections::BTreeSet::new(), 0);
            for (order, &(ahead, take)) in steps.iter().enumerate() {
                events.at(now + ahead, order);
                waiting.insert((now + ahead, order));
                if take {
                    let found = events.next();
                    prop_assert_eq!(found, waiting.pop_first());
                    now = found.map_or(now, |(time, _)| time);
                }
            }
            let found: Vec<_> = std::iter::from_fn(|| events.next()).collect();
            prop_assert_eq!(found, waiting.into_iter().collect::<Vec<_>>());
        }
    }
}
