//! When to look again at what the program does, so that looking takes a known share of a CPU that is not the program's.

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::cpus::thread_cpu_s;
use tierloom_model::units::round_to_u64;

/// Looks take one in so many of the time. Assumed.
const ONE_IN: u64 = 100;

/// When the next look is due.
#[derive(Debug, Default)]
pub(super) struct Pace {
    next_ns: u64,
}

/// A look that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    /// When, ns.
    pub(super) time_ns: u64,
    cpu_s: f64,
}

impl Pace {
    /// The look that is due; `None` before that.
    pub(super) fn begin(&self) -> Option<Begun> {
        let time_ns = monotonic_ns();
        (time_ns >= self.next_ns).then(|| Begun { time_ns, cpu_s: thread_cpu_s() })
    }

    /// It is done, and the next one comes after so long, ns, or later if it cost much. By our own clock: where others have
    /// the processor a look takes long and costs the same.
    pub(super) fn end(&mut self, begun: &Begun, pause_ns: u64) {
        let took_ns = round_to_u64((thread_cpu_s() - begun.cpu_s) * 1e9);
        self.next_ns = monotonic_ns() + pause_ns.max(took_ns * ONE_IN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_costs_much_comes_seldom() {
        let mut pace = Pace::default();
        let begun = pace.begin().unwrap();
        while thread_cpu_s() - begun.cpu_s < 1e-3 {}
        pace.end(&begun, 0);
        assert!(pace.begin().is_none() && pace.next_ns >= monotonic_ns() + 50_000_000);
        pace.end(&Begun { time_ns: 0, cpu_s: thread_cpu_s() }, 3_600_000_000_000);
        assert!(pace.begin().is_none());
    }
}
