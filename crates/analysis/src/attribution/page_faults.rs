//! How much of a window went to the kernel for page faults.
//!
//! A window lasts so much CPU time, the kernel's with it, and code that fills memory for the first time is slower by that.
//! Samples are of user time alone, so what a window counted is divided by its own. Other time of the kernel is in system
//! calls, at which most windows end.

use tierloom_recording::{Clock, Fault, Recording, Sample, Window};

/// Page faults of a run, and what one costs.
#[derive(Debug)]
pub(crate) struct PageFaults<'r> {
    /// In the order of time, as all these.
    faults: &'r [Fault],
    samples: &'r [Sample],
    period_ns: f64,
    /// CPU time of the kernel for a fault that was recorded and those that were not, ns.
    each_ns: f64,
}

impl<'r> PageFaults<'r> {
    /// Of a recording.
    pub(crate) fn of(recording: &'r Recording) -> Self {
        let Recording { faults, samples, period_ns, .. } = recording;
        let by_clocks = Self { faults, samples, period_ns: *period_ns, each_ns: each_ns(recording) };
        let each_ns =
            recording.windows.iter().filter_map(|window| by_clocks.most_ns(window)).fold(by_clocks.each_ns, f64::min);
        Self { each_ns, ..by_clocks }
    }

    /// No fault takes longer than this: so many were handled in a window, one after the other. On a busy machine clocks of the
    /// kernel say more.
    fn most_ns(&self, window: &Window) -> Option<f64> {
        /// In so many a few that fall on its ends make no difference. Assumed.
        const ENOUGH: usize = 20;
        let faults = self.during(window);
        (faults >= ENOUGH && window.duration_ns > 0)
            .then(|| window.duration_ns as f64 * self.threads(window) / faults as f64)
    }

    /// Faults of a window's process while it lasted.
    fn during(&self, window: &Window) -> usize {
        let until_ns = window.time_ns + window.duration_ns;
        let during = between(self.faults, |fault| fault.time_ns, window.time_ns, until_ns);
        during.iter().filter(|fault| fault.pid == window.pid).count()
    }

    /// CPU time of the kernel for all page faults, s.
    pub(crate) fn all_s(&self) -> f64 {
        self.faults.len() as f64 * self.each_ns * 1e-9
    }

    /// CPU time of a window outside of the kernel, ns.
    pub(crate) fn own_ns(&self, window: &Window) -> f64 {
        /// Some of it is the program's own: what it did in that time was counted. Assumed.
        const LEAST: f64 = 0.05;
        let duration_ns = window.duration_ns as f64;
        let kernel_ns = self.during(window) as f64 * self.each_ns / self.threads(window);
        (duration_ns - kernel_ns).max(LEAST * duration_ns)
    }

    /// Threads of a window's process that ran beside it, with its own: they have page faults, too.
    fn threads(&self, window: &Window) -> f64 {
        let until_ns = window.time_ns + window.duration_ns;
        let during = between(self.samples, |sample| sample.time_ns, window.time_ns, until_ns);
        let others = during.iter().filter(|sample| sample.pid == window.pid && sample.tid != window.tid).count();
        1.0 + others as f64 * self.period_ns / (window.duration_ns as f64).max(1.0)
    }
}

/// What of a slice in the order of time lies between two moments.
fn between<T>(all: &[T], time_ns: impl Fn(&T) -> u64, from_ns: u64, until_ns: u64) -> &[T] {
    let from = all.partition_point(|one| time_ns(one) < from_ns);
    let until = all.partition_point(|one| time_ns(one) < until_ns);
    &all[from..until.max(from)]
}

/// Time of the kernel that comes with page faults: the slope of the one over the other, between looks at the clocks; no more
/// than the kernel had in all.
fn each_ns(recording: &Recording) -> f64 {
    if recording.faults.is_empty() {
        return 0.0;
    }
    let most_ns = recording.system_s * 1e9 / recording.faults.len() as f64;
    let start = Clock { time_ns: recording.start_ns, ..Clock::default() };
    let looks: Vec<Clock> = [start].into_iter().chain(recording.clocks.iter().copied()).collect();
    let (mut products, mut squares) = (0.0, 0.0);
    for pair in looks.windows(2) {
        let faults = between(&recording.faults, |fault| fault.time_ns, pair[0].time_ns, pair[1].time_ns).len() as f64;
        products += faults * pair[1].system_ns.saturating_sub(pair[0].system_ns) as f64;
        squares += faults * faults;
    }
    if squares > 0.0 { (products / squares).min(most_ns) } else { most_ns }
}

#[cfg(test)]
mod tests {
    use tierloom_recording::{Outcome, WarmUp};

    use super::*;

    /// A fault each 1,000 ns for 20,000 ns, and 10,000 ns of the kernel with them.
    fn recording() -> Recording {
        let fault = |number: u64| Fault { time_ns: 1000 * number, pid: 7, instruction: 0, address: 0 };
        let clock = |time_ns, system_ns| Clock { time_ns, user_ns: 10_000, system_ns, ..Clock::default() };
        Recording {
            faults: (0..20).map(fault).collect(),
            clocks: vec![clock(20_000, 10_000), clock(40_000, 14_000)],
            system_s: 14e-6,
            ..Recording::default()
        }
    }

    fn window(time_ns: u64, duration_ns: u64) -> Window {
        Window {
            time_ns,
            pid: 7,
            tid: 7,
            address: 0,
            stands_for_ns: 0,
            duration_ns,
            warm_up: WarmUp::Counted,
            outcome: Outcome::Whole,
            counts: Vec::new(),
            stack_pointer: 0,
            touches: Vec::new(),
        }
    }

    #[test]
    fn a_fault_costs_what_the_kernel_has_with_it_and_not_what_it_has_without() {
        let recording = recording();
        let faults = PageFaults::of(&recording);
        assert!((faults.all_s() - 10e-6).abs() < 1e-9, "{}", faults.all_s());
        assert!((faults.own_ns(&window(2500, 4000)) - 2000.0).abs() < 1e-6, "four of 500 ns");
        assert!((faults.own_ns(&window(30_000, 4000)) - 4000.0).abs() < 1e-6);
    }

    #[test]
    fn no_fault_takes_longer_than_those_of_a_window_together() {
        let busy = |duration_ns| Recording { windows: vec![window(0, duration_ns)], ..recording() };
        let each_ns = |recording: &Recording| PageFaults::of(recording).each_ns;
        assert!((each_ns(&busy(19_900)) - 500.0).abs() < 1e-6, "as clocks say");
        let quick = Recording {
            faults: (0..40).map(|number| Fault { time_ns: 100 * number, pid: 7, instruction: 0, address: 0 }).collect(),
            ..busy(4000)
        };
        assert!((each_ns(&quick) - 100.0).abs() < 1e-6, "forty in 4,000 ns");
    }
}
