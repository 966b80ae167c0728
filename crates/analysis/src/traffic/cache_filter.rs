//! How much of the traffic reaches memory: Che's approximation of a shared LRU cache.
//!
//! Che, Tung, Wang, *Hierarchical Web caching systems* (2002): a line that is touched at a rate r by
//! independent accesses is in an LRU cache with probability 1 - exp(-r T), where the characteristic
//! time T is the same for all lines and follows from the lines in the cache summing up to its size.
//! A line of a stream is touched once a sweep, so it is there exactly if the sweep is shorter than T.
//! Time is counted in runs of the program. Splitting an object in halves changes nothing.

/// Lines of an object that are touched in one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WorkingSet {
    /// Lines that the accesses spread over.
    pub(crate) lines: f64,
    /// Accesses to whole lines during the run.
    pub(crate) touches: f64,
    /// In order, again and again, instead of at random.
    pub(crate) sweeping: bool,
}

impl WorkingSet {
    /// Share of its lines that a cache with this characteristic time holds.
    fn resident(&self, time: f64) -> f64 {
        let rate = self.touches / self.lines.max(1.0);
        if self.sweeping { (rate * time).min(1.0) } else { 1.0 - (-rate * time).exp() }
    }

    /// Probability that a touch misses.
    pub(crate) fn miss(&self, time: f64) -> f64 {
        let rate = self.touches / self.lines.max(1.0);
        let again = if self.sweeping { f64::from(rate * time < 1.0) } else { (-rate * time).exp() };
        // The first touch of a line misses in any cache.
        let first = (self.lines / self.touches.max(1.0)).min(1.0);
        first + (1.0 - first) * again
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

    #[test]
    fn what_fits_misses_once() {
        let uses = [WorkingSet { lines: 100.0, touches: 1e4, sweeping: false }];
        let time = characteristic_time(&uses, 1000.0);
        assert!((uses[0].miss(time) - 0.01).abs() < 1e-9);
    }

    #[test]
    fn random_accesses_hit_by_the_share_that_fits() {
        // A uniform random object ten times the cache: one in ten hits.
        let uses = [WorkingSet { lines: 1e5, touches: 1e8, sweeping: false }];
        let miss = uses[0].miss(characteristic_time(&uses, 1e4));
        assert!((miss - 0.9).abs() < 0.01, "{miss}");
    }

    #[test]
    fn a_sweep_larger_than_the_cache_always_misses() {
        let uses = [WorkingSet { lines: 1e5, touches: 1e7, sweeping: true }];
        assert!(uses[0].miss(characteristic_time(&uses, 5e4)) > 0.99);
    }

    proptest! {
        #[test]
        fn halves_miss_like_the_whole(
            lines in 10.0f64..1e7, rate in 1.0f64..1e4, cache in 10.0f64..1e6, other in 10.0f64..1e7,
            sweeping in any::<bool>(),
        ) {
            let whole = WorkingSet { lines, touches: lines * rate, sweeping };
            let half = WorkingSet { lines: lines / 2.0, touches: lines * rate / 2.0, sweeping };
            let beside = WorkingSet { lines: other, touches: other * 3.0, sweeping: false };
            let one = whole.miss(characteristic_time(&[whole, beside], cache));
            let two = half.miss(characteristic_time(&[half, half, beside], cache));
            prop_assert!((one - two).abs() < 1e-6, "{} {}", one, two);
        }

        #[test]
        fn a_larger_cache_never_misses_more(
            lines in 10.0f64..1e7, rate in 1.0f64..1e4, cache in 10.0f64..1e6, sweeping in any::<bool>(),
        ) {
            let one = WorkingSet { lines, touches: lines * rate, sweeping };
            let small = one.miss(characteristic_time(&[one], cache));
            let large = one.miss(characteristic_time(&[one], 2.0 * cache));
            prop_assert!(large <= small + 1e-9);
        }
    }
}
