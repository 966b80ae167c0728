//! When a sweep passes by the pages of a run.
//!
//! A sweep comes by once a round, at the same place in each. So pages that it has just visited have a whole round
//! before them, and pages that have been idle for long are met soon.

/// A stretch of the program's progress.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Stretch {
    from: f64,
    to: f64,
}

/// When a sweep last passed by some pages, as far as it is known: evenly over a stretch of the program's progress,
/// which begins infinitely long ago where it may have been at any time in the round before its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LastSweep(Stretch);

/// Pages parted by whether they were visited in a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Parted {
    /// Share of them that were.
    pub(crate) share: f64,
    /// When a sweep last passed by those.
    pub(crate) visited: LastSweep,
    /// And by those that were not.
    pub(crate) others: LastSweep,
}

impl Stretch {
    fn length(&self) -> f64 {
        (self.to - self.from).max(0.0)
    }

    /// Share of it that lies before a time; all of a stretch without length does, or none.
    fn share_before(&self, at: f64) -> f64 {
        let length = self.length();
        if length > 0.0 { ((at - self.from) / length).clamp(0.0, 1.0) } else { f64::from(u8::from(self.to <= at)) }
    }

    #[inline]
    fn later(&self, by: f64) -> Self {
        Self { from: self.from + by, to: self.to + by }
    }

    #[inline]
    fn before(&self, at: f64) -> Self {
        Self { from: self.from.min(at), to: self.to.min(at) }
    }

    #[inline]
    fn after(&self, at: f64) -> Self {
        Self { from: self.from.max(at), to: self.to.max(at) }
    }

    /// Both where they touch, the longer of the two otherwise.
    fn with(&self, next: &Self) -> Self {
        if self.length() > 0.0 && next.length() > 0.0 && next.from <= self.to {
            Self { from: self.from, to: next.to }
        } else if self.length() > next.length() {
            *self
        } else {
            *next
        }
    }
}

impl LastSweep {
    /// At some time, but not after this.
    pub(crate) fn by(to: f64) -> Self {
        Self::between(f64::NEG_INFINITY, to)
    }

    pub(crate) fn between(from: f64, to: f64) -> Self {
        Self(Stretch { from, to })
    }

    /// Of pages of both, so many of each: as early on average and as far apart as they are.
    pub(crate) fn joined(&self, pages: f64, other: &Self, others: f64) -> Self {
        if self.0.from.is_infinite() || other.0.from.is_infinite() {
            return Self::by(self.0.to.max(other.0.to));
        }
        let mean = |a: f64, b: f64| (a * pages + b * others) / (pages + others);
        let [middle, next] = [self, other].map(|last| f64::midpoint(last.0.from, last.0.to));
        let middle_of_both = mean(middle, next);
        let squares = |last: &Self, middle: f64| last.0.length().powi(2) / 12.0 + (middle - middle_of_both).powi(2);
        let half = (3.0 * mean(squares(self, middle), squares(other, next))).sqrt();
        Self::between(middle_of_both - half, middle_of_both + half)
    }

    /// Whether the two are as good as one, where times less than `near` apart are.
    pub(crate) fn is_like(&self, other: &Self, near: f64) -> bool {
        let unknown = self.0.from.is_infinite() && other.0.from.is_infinite();
        (unknown || (self.0.from - other.0.from).abs() < near) && (self.0.to - other.0.to).abs() < near
    }

    /// No longer than a round: a sweep that comes by once in `round`.
    #[inline]
    fn within(&self, round: f64) -> Stretch {
        Stretch { from: self.0.from.max(self.0.to - round), to: self.0.to }
    }

    /// Share of the pages that are met between two times, of those that were not met before the first.
    #[inline]
    pub(crate) fn met(&self, round: f64, after: f64, until: f64) -> f64 {
        let due = self.within(round).later(round);
        if until < due.from {
            return 0.0;
        }
        let from = due.from.max(after);
        if due.to <= from { 1.0 } else { (until.min(due.to) - from) / (due.to - from) }
    }

    /// How far between two times those of them are met on average that are met there.
    #[inline]
    pub(crate) fn met_at(&self, round: f64, after: f64, until: f64) -> f64 {
        let due = self.within(round).later(round).after(after).before(until);
        if until > after { (f64::midpoint(due.from, due.to) - after) / (until - after) } else { 0.5 }
    }

    /// Pages that are visited between two times less than a round apart, and the others.
    pub(crate) fn parted(&self, round: f64, after: f64, until: f64) -> Parted {
        let first = self.within(round);
        let rounds = ((until - first.from) / round).floor().max(0.0);
        let last = first.later(rounds * round);
        // Where the sweep is among them, those that it has not met in this round it met in the one before.
        let behind = last.before(until);
        let ahead = last.after(until).later(-round);
        let visited = [ahead.after(after), behind.after(after)];
        let share = if last.length() > 0.0 {
            (visited[0].length() + visited[1].length()) / last.length()
        } else {
            1.0 - behind.share_before(after)
        };
        let others = [ahead.before(after), behind.before(after)];
        let joined = |[one, other]: [Stretch; 2]| Self(one.with(&other));
        Parted { share: share.min(1.0), visited: joined(visited), others: joined(others) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: f64 = 0.25;

    /// The same by pages: each of many with its own time.
    fn pages(last: &LastSweep) -> Vec<f64> {
        let Stretch { from, to } = last.within(ROUND);
        (0..1000).map(|page| from + (to - from) * (f64::from(page) + 0.5) / 1000.0).collect()
    }

    fn visited(page: f64, after: f64, until: f64) -> bool {
        let rounds = |at: f64| ((at - page) / ROUND).floor().max(0.0);
        rounds(until) > rounds(after)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 2e-3, "{a} against {b}");
    }

    #[test]
    fn shares_are_those_of_many_pages() {
        for last in [LastSweep::by(0.3), LastSweep::between(0.28, 0.3), LastSweep::between(0.1, 0.3)] {
            for (after, until) in [(0.3, 0.34), (0.34, 0.5), (0.4, 0.55), (0.53, 0.54), (0.9, 1.1), (1.0, 1.03)] {
                let all = pages(&last);
                let share = |of: usize| of as f64 / all.len() as f64;
                let found = all.iter().filter(|page| visited(**page, after, until)).count();
                near(last.parted(ROUND, after, until).share, share(found));
                let left = all.iter().filter(|page| !visited(**page, 0.3, after)).count();
                let met = all.iter().filter(|page| !visited(**page, 0.3, after) && visited(**page, 0.3, until)).count();
                if left > 0 {
                    near(last.met(ROUND, after, until), share(met) / share(left));
                }
            }
        }
    }

    #[test]
    fn what_was_visited_at_any_time_is_known_better_once_it_is_parted() {
        let Parted { share, visited, others } = LastSweep::by(0.3).parted(ROUND, 0.4, 0.5);
        near(share, 0.4);
        assert!(visited.is_like(&LastSweep::between(0.4, 0.5), 1e-9), "{visited:?}");
        assert!(others.is_like(&LastSweep::between(0.25, 0.4), 1e-9), "{others:?}");
        near(visited.met(ROUND, 0.5, 0.64), 0.0);
        near(others.met(ROUND, 0.5, 0.6), 2.0 / 3.0);
        near(others.met_at(ROUND, 0.5, 0.6), 0.5);
    }

    #[test]
    fn joined_pages_are_as_far_apart_as_they_are() {
        let [near, far] = [LastSweep::between(0.0, 0.1), LastSweep::between(0.1, 0.3)];
        assert!(near.joined(1.0, &far, 2.0).is_like(&LastSweep::between(0.0, 0.3), 1e-9));
        assert_eq!(near.joined(1.0, &LastSweep::by(0.2), 2.0), LastSweep::by(0.2));
    }

    #[test]
    fn a_single_time_is_met_at_once() {
        let last = LastSweep::between(0.3, 0.3);
        for (until, share) in [(0.5, 0.0), (0.6, 1.0)] {
            near(last.met(ROUND, 0.4, until), share);
            near(last.parted(ROUND, 0.4, until).share, share);
        }
    }
}
