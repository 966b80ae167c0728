//! Pages of one cell that are protected, by when they were.
//!
//! A page faults at the first visit after it was protected, so pages protected at different times are in different
//! stages of the same decay. Only the last few times are told apart: a cell has no more than a cache line of them.

use super::scale::DUST;
use crate::workload::sweep::LastSweep;

/// Most protections at different times that are told apart; older ones are joined.
const GENERATIONS: usize = 4;

/// A time, and how far the program was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) s: f64,
    pub(super) progress: f64,
}

/// Pages protected at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Protection {
    pub(super) since_s: f64,
    /// How far the program was then.
    pub(super) from: f64,
    /// When a sweep last passed by them.
    pub(super) swept: LastSweep,
    pub(super) pages: f64,
}

/// Pages of one generation that fault, and how long after they were protected, on average, s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Due {
    pub(super) pages: f64,
    pub(super) latency_s: f64,
}

/// All protected pages of a cell, the oldest first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Protections {
    list: [Protection; GENERATIONS],
    count: usize,
}

impl Protections {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Protection> {
        self.list[..self.count].iter()
    }

    /// Pages of all times.
    pub(super) fn pages(&self) -> f64 {
        self.iter().map(|protection| protection.pages).sum()
    }

    /// Takes out what is due, by generation.
    #[inline]
    pub(super) fn take_due(&mut self, mut due: impl FnMut(&Protection) -> Due) -> [Due; GENERATIONS] {
        let (mut taken, mut gone) = ([Due::default(); GENERATIONS], false);
        for (generation, taken) in self.list[..self.count].iter_mut().zip(&mut taken) {
            *taken = due(generation);
            generation.pages -= taken.pages;
            gone |= generation.pages <= DUST;
        }
        if gone {
            self.drop_empty();
        }
        taken
    }

    fn drop_empty(&mut self) {
        let mut kept = 0;
        for at in 0..self.count {
            self.list[kept] = self.list[at];
            kept += usize::from(self.list[at].pages > DUST);
        }
        self.count = kept;
    }

    /// Adds pages that were protected no earlier than those that are there.
    pub(super) fn push(&mut self, new: Protection) {
        if let Some(youngest) = self.list[..self.count].last_mut().filter(|last| last.since_s >= new.since_s) {
            *youngest = youngest.joined(&new);
            return;
        }
        if self.count == GENERATIONS {
            self.join_oldest();
        }
        self.list[self.count] = new;
        self.count += 1;
    }

    /// The two oldest become one.
    fn join_oldest(&mut self) {
        let joined = self.list[0].joined(&self.list[1]);
        self.list.copy_within(1.., 0);
        self.list[0] = joined;
        self.count -= 1;
    }
}

impl Protection {
    /// Both at once, as old as their pages are on average.
    fn joined(&self, other: &Self) -> Self {
        let pages = self.pages + other.pages;
        let mean = |a: f64, b: f64| (a * self.pages + b * other.pages) / pages;
        Self {
            since_s: mean(self.since_s, other.since_s),
            from: mean(self.from, other.from),
            swept: self.swept.joined(self.pages, &other.swept, other.pages),
            pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(since_s: f64, pages: f64) -> Protection {
        Protection { since_s, from: since_s, swept: LastSweep::default(), pages }
    }

    #[test]
    fn pages_of_one_time_are_one_entry_and_the_oldest_are_joined() {
        let mut all = Protections::default();
        for (since_s, pages) in [(1.0, 30.0), (2.0, 5.0), (2.0, 5.0), (3.0, 1.0), (4.0, 1.0), (5.0, 1.0)] {
            all.push(at(since_s, pages));
        }
        let found: Vec<Protection> = all.iter().copied().collect();
        assert_eq!(found, [at(1.25, 40.0), at(3.0, 1.0), at(4.0, 1.0), at(5.0, 1.0)]);
        assert!((all.pages() - 43.0).abs() < 1e-12 && !all.is_empty());
    }

    #[test]
    fn what_is_due_leaves_and_what_is_left_stays_in_order() {
        let mut all = Protections::default();
        for since_s in [1.0, 2.0, 3.0] {
            all.push(at(since_s, 8.0));
        }
        let taken =
            all.take_due(|each| Due { pages: if each.since_s < 1.5 { 8.0 } else { 2.0 }, latency_s: each.from });
        for (due, pages) in taken.iter().zip([8.0, 2.0, 2.0, 0.0]) {
            assert!((due.pages - pages).abs() < 1e-12, "{} and not {pages}", due.pages);
        }
        assert_eq!(all.iter().copied().collect::<Vec<_>>(), [at(2.0, 6.0), at(3.0, 6.0)]);
    }
}
