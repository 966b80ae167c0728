//! The times of records as `CLOCK_MONOTONIC`.
//!
//! Where the kernel tells the time by the processor's counter, the program stamps its records with that
//! counter as it is. The recorder looks at both clocks whenever it visits, and takes a time between two
//! looks from the line through them, so nothing adds up over hours. A look is off by half of what lies
//! between its two readings of the counter, some 20 ns. In between, the kernel changes the pace of its
//! clock by at most 500 ppm either way (`MAXFREQ` of `include/linux/timex.h`): 5 µs in the 20 ms between two
//! visits, where a sample's period is a millisecond.

use tierloom_linux::clock::{counter_and_monotonic, is_by_counter, monotonic_ns};
use tierloom_linux::root::Root;
use tierloom_wire::Stamp;

/// Looks that are kept for records that come late: those of the last 40 s, at 50 visits a second, and fewer
/// the longer ago.
const MOST_LOOKS: usize = 4096;

/// The clock that records are stamped by.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Stamps are `CLOCK_MONOTONIC`, ns, already.
    Monotonic,
    /// Stamps are ticks of the counter.
    Counter(Looks),
}

/// Looks at both clocks, ascending: ticks and ns. There is always one.
#[derive(Debug)]
pub(crate) struct Looks(Vec<(u64, u64)>);

impl Clock {
    /// The clock of this machine.
    pub(crate) fn new(root: &Root) -> Self {
        if is_by_counter(root) { Self::Counter(Looks::new(counter_and_monotonic())) } else { Self::Monotonic }
    }

    /// Whether it goes by the counter.
    pub(crate) fn ticks(&self) -> bool {
        matches!(self, Self::Counter(_))
    }

    /// Now; a look at both clocks.
    pub(crate) fn now(&mut self) -> Stamp {
        match self {
            Self::Monotonic => Stamp(monotonic_ns()),
            Self::Counter(looks) => {
                looks.add(counter_and_monotonic());
                Stamp(looks.last().0)
            }
        }
    }

    /// A stamp as `CLOCK_MONOTONIC`, ns.
    pub(crate) fn ns(&self, stamp: Stamp) -> u64 {
        match self {
            Self::Monotonic => stamp.0,
            Self::Counter(looks) => looks.ns(stamp.0),
        }
    }
}

impl Looks {
    fn new(first: (u64, u64)) -> Self {
        Self(vec![first])
    }

    fn last(&self) -> (u64, u64) {
        self.0.last().copied().unwrap_or_default()
    }

    /// A look that does not come after the last, because it was spoilt, changes nothing.
    fn add(&mut self, look: (u64, u64)) {
        let last = self.last();
        if look.0 <= last.0 || look.1 < last.1 {
            return;
        }
        self.0.push(look);
        if self.0.len() > MOST_LOOKS {
            let mut at = 0..;
            self.0.retain(|_| at.next().is_some_and(|at| at % 2 == 0 || at > MOST_LOOKS / 2));
        }
    }

    fn ns(&self, ticks: u64) -> u64 {
        // The line through the last two goes on.
        let after = self.0.partition_point(|look| look.0 <= ticks).min(self.0.len() - 1);
        after.checked_sub(1).map_or(self.0[0].1, |before| between(self.0[before], self.0[after], ticks))
    }
}

/// The line through two looks.
fn between((from, from_ns): (u64, u64), (to, to_ns): (u64, u64), ticks: u64) -> u64 {
    let (gone, all, all_ns) = (ticks.saturating_sub(from), to.saturating_sub(from), to_ns.saturating_sub(from_ns));
    let ns = u128::from(gone) * u128::from(all_ns) / u128::from(all.max(1));
    from_ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A kernel's clock that goes at 2.4 ticks a nanosecond and whose pace somebody changes by ppm a second.
    fn kernel_ns(ticks: u64, ppm: &[i64]) -> u64 {
        let pace = 2_400_000_000;
        let (mut ns, mut left) = (0_i128, i128::from(ticks));
        for step in ppm.iter().chain(std::iter::repeat(&0)) {
            let part = left.min(pace);
            ns += part * (1_000_000 + i128::from(*step)) * 1_000_000_000 / (pace * 1_000_000);
            left -= part;
            if left == 0 {
                break;
            }
        }
        u64::try_from(ns).unwrap()
    }

    proptest! {
        #[test]
        fn times_are_near_and_in_order_while_the_pace_changes(
            ppm in prop::collection::vec(-500_i64..=500, 1..20),
            pauses in prop::collection::vec(1_u64..100_000_000, 2..400),
            places in prop::collection::vec(0_u64..1 << 20, 50),
        ) {
            let mut looks = Looks::new((0, 0));
            let mut ticks = 0;
            for pause in pauses {
                ticks += pause;
                looks.add((ticks, kernel_ns(ticks, &ppm)));
            }
            let mut asked: Vec<u64> = places.iter().map(|place| (ticks * place) >> 20).collect();
            asked.sort_unstable();
            let mut last = 0;
            for ticks in asked {
                let ns = looks.ns(ticks);
                let off = ns.abs_diff(kernel_ns(ticks, &ppm));
                // 1000 ppm between two looks 42 ms apart, in the middle.
                prop_assert!(off < 11_000, "{off} ns");
                prop_assert!(ns >= last);
                last = ns;
            }
            let last_look = looks.last();
            looks.add((last_look.0, last_look.1 + 5));
            prop_assert_eq!(looks.last(), last_look);
        }
    }

    #[test]
    fn a_day_of_looks_takes_no_more_memory_and_is_exact() {
        let mut looks = Looks::new((1000, 0));
        let ticks_at = |visit: u64| 1000 + visit * 48_000_000;
        let visits = 24 * 3600 * 50;
        for visit in 1..=visits {
            looks.add((ticks_at(visit), visit * 20_000_000));
        }
        assert!(looks.0.len() <= MOST_LOOKS);
        for visit in [0, 1, 1000, visits / 2, visits - 1, visits] {
            assert!(looks.ns(ticks_at(visit)).abs_diff(visit * 20_000_000) <= 1);
        }
        assert_eq!(looks.ns(0), 0, "nothing is before the first look");
    }

    #[test]
    fn the_clock_of_this_machine_tells_its_time() {
        let mut clock = Clock::new(&Root::default());
        clock.now();
        let (before, time, after) = (monotonic_ns(), clock.now(), monotonic_ns());
        let told = clock.ns(time);
        assert!(before <= told + 1000 && told <= after + 1000, "{before} {told} {after}");
    }
}
