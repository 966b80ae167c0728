//! How much of the traffic reaches memory: Che's approximation of a shared LRU cache.
//!
//! Che, Tung, Wang, *Hierarchical Web caching systems* (2002): a line that is touched at a rate r by
//! independent accesses is in an LRU cache with probability 1 - exp(-r T), where the characteristic
//! time T is the same for all lines and follows from the lines in the cache summing up to its size.
//! A line of a stream is touched once a sweep, so it is there exactly if the sweep is shorter than T.
//! Time is counted in phases of the program. Splitting an object in halves changes nothing.
//!
//! The first touch of a line is not in any cache, but for one thing: the kernel fills a page with zeros in the moment in
//! which the program first touches it. So whoever writes fresh memory finds its lines in the cache, and the transfer is over
//! in the kernel's time.

/// Lines of an object that are touched in one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WorkingSet {
    /// Lines that the accesses spread over.
    pub(crate) lines: f64,
    /// Accesses to whole lines during the phase.
    pub(crate) touches: f64,
    /// In order, again and again, instead of at random.
    pub(crate) sweeping: bool,
    pub(crate) filled: Filled,
}

/// Who brings lines before a program's first touch, as shares; the rest are on pages of files, which nobody has touched.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Filled {
    /// The kernel, with zeros, in the moment of the first touch.
    pub(crate) zeroed: f64,
    /// The kernel, with what it read for the program: the program's touch is not the first one.
    pub(crate) copied: f64,
}

impl Filled {
    /// Of memory that is no file's, of which the program writes a share of the lines itself.
    pub(crate) fn anonymous(written: f64) -> Self {
        let zeroed = written.clamp(0.0, 1.0);
        Self { zeroed, copied: 1.0 - zeroed }
    }

    fn is_waited_for(self, again: f64) -> f64 {
        1.0 - self.zeroed - self.copied * (1.0 - again)
    }
}

/// What a touch of a line finds, as probabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Miss {
    /// The line crosses the memory's bus.
    pub(crate) fetched: f64,
    /// It does while the program waits: others came when the kernel filled their page.
    pub(crate) waited: f64,
}

impl WorkingSet {
    /// Share of its lines that a cache with this characteristic time holds.
    fn resident(&self, time: f64) -> f64 {
        let rate = self.touches / self.lines.max(1.0);
        if self.sweeping { (rate * time).min(1.0) } else { 1.0 - (-rate * time).exp() }
    }

    /// What a touch finds in a cache with this characteristic time.
    pub(crate) fn miss(&self, time: f64, before: Before) -> Miss {
        if self.touches <= 0.0 {
            return Miss::default();
        }
        let rate = self.touches / self.lines.max(1.0);
        let again = if self.sweeping { f64::from(rate * time < 1.0) } else { (-rate * time).exp() };
        // Lines that are touched here for the first time: new ones, and those that earlier phases touched.
        let first = self.lines.min(self.touches);
        let new = first.min((self.lines - before.touched).max(0.0));
        let back = (first - new) * (1.0 - before.held);
        let later = (self.touches - first) * again;
        let of_all = |lines: f64| lines / self.touches.max(1.0);
        Miss {
            fetched: of_all(new + back + later),
            waited: of_all(new * self.filled.is_waited_for(again) + back + later),
        }
    }
}

/// What is left of an object in the cache when a phase begins.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Before {
    /// Lines of it that were touched before.
    pub(crate) touched: f64,
    /// Share of these that the cache still has.
    pub(crate) held: f64,
}

impl Before {
    /// After a phase of this working set, in which nothing was untouched for longer than `time` and is still there.
    pub(crate) fn after(self, set: &WorkingSet, time: f64) -> Self {
        let first = set.lines.min(set.touches);
        let touched = (self.touched + first.min((set.lines - self.touched).max(0.0))).max(1.0);
        // A phase is one unit of time; what was touched before it stays where none of it is pushed out.
        let stays = if time < 1.0 { 0.0 } else { self.held * self.touched };
        let recent = set.lines * set.resident(time.min(1.0));
        Self { touched, held: ((recent + stays * (1.0 - recent / set.lines.max(1.0))) / touched).min(1.0) }
    }
}

/// Time after which an untouched line is pushed out; infinite when everything fits.
pub(crate) fn characteristic_time(uses: &[WorkingSet], cache_lines: f64) -> f64 {
    let held = |time: f64| uses.iter().map(|one| one.lines * one.resident(time)).sum::<f64>();
    if held(f64::MAX) <= cache_lines {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while held(high) < cache_lines && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if held(middle) < cache_lines { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: Filled = Filled { zeroed: 0.0, copied: 0.0 };

    /// Whether so many of 8 touches are waited for, of lines that are touched twice, at random or in sweeps.
    fn waits(eighths: f64, filled: Filled, sweeping: bool, cache_lines: f64) -> bool {
        let one = WorkingSet { lines: 1e5, touches: 2e5, sweeping, filled };
        (one.miss(characteristic_time(&[one], cache_lines), Before::default()).waited * 8.0 - eighths).abs() < 1e-9
    }

    #[test]
    fn nobody_waits_for_pages_that_were_filled_a_moment_ago() {
        for sweeping in [false, true] {
            assert!(waits(0.0, Filled::anonymous(1.0), sweeping, 1e6));
            assert!(waits(0.0, Filled::anonymous(0.0), sweeping, 1e6), "what the kernel copied is in the cache, too");
            assert!(waits(4.0, FILE, sweeping, 1e6));
        }
    }

    #[test]
    fn where_a_sweep_pushes_out_what_the_one_before_brought_only_zeros_come_in_time() {
        assert!(waits(4.0, Filled::anonymous(1.0), true, 1e4));
        assert!(waits(8.0, Filled::anonymous(0.0), true, 1e4));
        assert!(waits(7.0, Filled::anonymous(0.25), true, 1e4));
    }

    #[test]
    fn what_fits_misses_once() {
        let uses = [WorkingSet { lines: 100.0, touches: 1e4, sweeping: false, filled: FILE }];
        let time = characteristic_time(&uses, 1000.0);
        assert!((uses[0].miss(time, Before::default()).fetched - 0.01).abs() < 1e-9);
    }

    #[test]
    fn random_accesses_hit_by_the_share_that_fits() {
        // A uniform random object ten times the cache: one in ten hits.
        let uses = [WorkingSet { lines: 1e5, touches: 1e8, sweeping: false, filled: FILE }];
        let miss = uses[0].miss(characteristic_time(&uses, 1e4), Before::default()).fetched;
        assert!((miss - 0.9).abs() < 0.01, "{miss}");
    }

    #[test]
    fn a_sweep_larger_than_the_cache_always_misses() {
        let uses = [WorkingSet { lines: 1e5, touches: 1e7, sweeping: true, filled: FILE }];
        assert!(uses[0].miss(characteristic_time(&uses, 5e4), Before::default()).fetched > 0.99);
    }

    #[test]
    fn what_the_phase_before_left_in_the_cache_is_not_fetched_again() {
        let sweep = WorkingSet { lines: 1e4, touches: 1e5, sweeping: true, filled: FILE };
        let misses = |cache_lines: f64| {
            let time = characteristic_time(&[sweep], cache_lines);
            let before = Before::default().after(&sweep, time);
            (sweep.miss(time, Before::default()).fetched, sweep.miss(time, before).fetched)
        };
        assert_eq!(misses(2e4), (0.1, 0.0));
        let (first, second) = misses(5e3);
        assert!((first - 1.0).abs() < 1e-9 && second > 0.9, "{first} {second}");
    }

    #[test]
    fn lines_that_were_not_touched_yet_are_new_in_a_later_phase() {
        let few = WorkingSet { lines: 1e4, touches: 1e3, sweeping: true, filled: FILE };
        let before = Before::default().after(&few, f64::INFINITY);
        assert!((before.touched - 1e3).abs() < 1e-9 && before.held > 0.99);
        let all = WorkingSet { touches: 1e5, ..few };
        assert!((all.miss(f64::INFINITY, before).fetched - 0.09).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn halves_miss_like_the_whole(
            lines in 10.0f64..1e7, rate in 1.0f64..1e4, cache in 10.0f64..1e6, other in 10.0f64..1e7,
            sweeping in any::<bool>(),
        ) {
            let whole = WorkingSet { lines, touches: lines * rate, sweeping, filled: FILE };
            let half = WorkingSet { lines: lines / 2.0, touches: lines * rate / 2.0, sweeping, filled: FILE };
            let beside = WorkingSet { lines: other, touches: other * 3.0, sweeping: false, filled: FILE };
            let one = whole.miss(characteristic_time(&[whole, beside], cache), Before::default()).fetched;
            let two = half.miss(characteristic_time(&[half, half, beside], cache), Before::default()).fetched;
            prop_assert!((one - two).abs() < 1e-6, "{} {}", one, two);
        }

        #[test]
        fn a_larger_cache_never_misses_more(
            lines in 10.0f64..1e7, rate in 1.0f64..1e4, cache in 10.0f64..1e6, sweeping in any::<bool>(),
        ) {
            let one = WorkingSet { lines, touches: lines * rate, sweeping, filled: FILE };
            let small = one.miss(characteristic_time(&[one], cache), Before::default()).fetched;
            let large = one.miss(characteristic_time(&[one], 2.0 * cache), Before::default()).fetched;
            prop_assert!(large <= small + 1e-9);
        }

        #[test]
        fn what_is_waited_for_is_fetched(
            lines in 10.0f64..1e7, rate in 0.1f64..1e4, cache in 10.0f64..1e6, written in 0.0f64..2.0,
            sweeping in any::<bool>(),
        ) {
            let filled = Filled::anonymous(written);
            let one = WorkingSet { lines, touches: lines * rate, sweeping, filled };
            let Miss { fetched, waited } = one.miss(characteristic_time(&[one], cache), Before::default());
            prop_assert!((0.0..=fetched + 1e-12).contains(&waited) && fetched <= 1.0 + 1e-12, "{} {}", waited, fetched);
        }
    }
}
