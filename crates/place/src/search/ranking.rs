//! A list in order of which only the beginning is looked at.
//!
//! With thousands of objects most of a search would be sorting what nobody asks for. Here the
//! smallest items are put in order piece by piece, as far as somebody reads: the cost is that of the
//! items read, and one look at each of the others.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;

/// Items that are put in order at first; each time that these do not do, twice as many (assumed).
const FIRST: usize = 64;

/// Numbers by a key, from the least on, sorted as far as they were read.
#[derive(Debug)]
pub(super) struct Ranking {
    items: RefCell<Vec<(f64, usize)>>,
    /// How many of them are in order.
    sorted: Cell<usize>,
}

impl Ranking {
    /// Pairs of a key and a number; those with equal keys go by their numbers.
    pub(super) fn new(items: impl Iterator<Item = (f64, usize)>) -> Self {
        Self { items: RefCell::new(items.collect()), sorted: Cell::new(0) }
    }

    /// All pairs in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (f64, usize)> + '_ {
        (0..).map_while(|rank| self.get(rank))
    }

    fn get(&self, rank: usize) -> Option<(f64, usize)> {
        if rank >= self.sorted.get() && rank < self.items.borrow().len() {
            self.sort_beyond(rank);
        }
        self.items.borrow().get(rank).copied()
    }

    fn sort_beyond(&self, rank: usize) {
        let items = &mut *self.items.borrow_mut();
        let (from, to) = (self.sorted.get(), (2 * rank).max(FIRST).min(items.len()));
        if to < items.len() {
            items[from..].select_nth_unstable_by(to - from, by_key);
        }
        items[from..to].sort_unstable_by(by_key);
        self.sorted.set(to);
    }
}

pub(super) fn by_key(left: &(f64, usize), right: &(f64, usize)) -> Ordering {
    left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_what_a_stable_sort_makes(keys in prop::collection::vec(0u8..40, 0..1000), read in 0usize..1000) {
            let mut sorted: Vec<(f64, usize)> = keys.iter().map(|key| f64::from(*key)).zip(0..).collect();
            let ranking = Ranking::new(sorted.clone().into_iter());
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            prop_assert!(ranking.iter().take(read).eq(sorted.iter().copied().take(read)));
            prop_assert!(ranking.iter().eq(sorted.iter().copied()));
        }
    }
}
