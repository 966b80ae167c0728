//! How much CPU time was used, and how long nobody had a CPU, between two moments of a run.

use tierloom_model::{Taken, Undisturbed};
use tierloom_recording::{Clock, Recording};

/// CPU time between two moments, s, of all threads.
#[expect(clippy::struct_field_names, reason = "every figure says its unit")]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    /// In user space.
    pub(crate) user_s: f64,
    /// In the kernel.
    pub(crate) system_s: f64,
    /// In which threads could have run and had no CPU.
    pub(crate) queued_s: f64,
    /// In which the recorder held them, or had them count.
    pub(crate) held_s: f64,
    /// That samples took; no part of the first two.
    pub(crate) sampled_s: f64,
}

impl Used {
    /// What a stretch of that length would have taken if nobody had disturbed it, s.
    pub(crate) fn undisturbed_s(&self, lasted_s: f64) -> f64 {
        let Self { user_s, system_s, queued_s, held_s, sampled_s } = *self;
        Undisturbed::of(lasted_s, user_s + system_s + sampled_s, Taken { queued_s, held_s, sampled_s }).middle_s()
    }

    /// The same where this part of the time in user space was spent on what the recorder put there.
    pub(crate) fn without(self, added: f64) -> Self {
        let lost_s = self.user_s * added;
        Self { user_s: self.user_s - lost_s, held_s: self.held_s + lost_s, ..self }
    }

    /// The same where this part of all time was spent on taking samples: they interrupt the kernel's work, too, without
    /// being kept.
    fn without_samples(self, part: f64) -> Self {
        let (user_s, system_s) = (self.user_s * (1.0 - part), self.system_s * (1.0 - part));
        Self { user_s, system_s, sampled_s: (self.user_s + self.system_s) * part, ..self }
    }
}

/// The clocks of a run: straight lines between the looks at them, and as much in all as the kernel told at its end.
#[derive(Debug, Clone)]
pub(crate) struct Clocks {
    looks: Vec<Clock>,
    whole: Used,
    /// The part of all CPU time that went into samples, 0 to 1.
    into_samples: f64,
}

impl Clocks {
    /// `None` where nobody looked.
    pub(crate) fn of(recording: &Recording) -> Option<Self> {
        let last = *recording.clocks.last().filter(|last| last.user_ns + last.system_ns > 0)?;
        let start = Clock { time_ns: recording.start_ns, ..Clock::default() };
        // Behind the last look it went on as it had on average: of a run that long, little.
        let (from, to) = (last.time_ns - recording.start_ns, recording.end_ns.max(last.time_ns) - recording.start_ns);
        let ahead = |ns: u64| ns as f64 * 1e-9 * to as f64 / from.max(1) as f64;
        let (queued_s, held_s) = (ahead(last.queued_ns), ahead(last.held_ns));
        let (user_s, system_s) = (recording.cpu_s - recording.system_s, recording.system_s);
        let whole = Used { user_s, system_s, queued_s, held_s, sampled_s: 0.0 };
        let end = Clock { time_ns: recording.end_ns.max(last.time_ns), ..last };
        let looks = [start].into_iter().chain(recording.clocks.iter().copied()).chain([end]).collect();
        Some(Self { looks, whole, into_samples: recording.sample_share() })
    }

    /// In the whole run.
    pub(crate) fn whole(&self) -> Used {
        self.whole.without_samples(self.into_samples)
    }

    /// Between two moments, ns.
    pub(crate) fn between(&self, from_ns: u64, to_ns: u64) -> Used {
        let part = |of: fn(&Clock) -> u64, whole: f64| {
            let all = self.at(u64::MAX, of);
            if all > 0.0 { whole * (self.at(to_ns, of) - self.at(from_ns, of)) / all } else { 0.0 }
        };
        Used {
            user_s: part(|clock| clock.user_ns, self.whole.user_s),
            system_s: part(|clock| clock.system_ns, self.whole.system_s),
            queued_s: part(|clock| clock.queued_ns, self.whole.queued_s),
            held_s: part(|clock| clock.held_ns, self.whole.held_s),
            sampled_s: 0.0,
        }
        .without_samples(self.into_samples)
    }

    /// A clock at a moment, ns.
    fn at(&self, time_ns: u64, of: fn(&Clock) -> u64) -> f64 {
        let next = self.looks.partition_point(|clock| clock.time_ns <= time_ns);
        let Some(before) = next.checked_sub(1).map(|at| &self.looks[at]) else { return 0.0 };
        let Some(after) = self.looks.get(next) else { return of(before) as f64 };
        let passed = (time_ns - before.time_ns) as f64 / (after.time_ns - before.time_ns) as f64;
        of(before) as f64 + passed * of(after).saturating_sub(of(before)) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Stretches of a run add up to the whole of it, however they are cut.
        #[test]
        fn stretches_add_up(steps in prop::collection::vec((1_u64..1000, 0_u64..1000, 1_u64..500), 1..30), cut in 0_u64..40_000) {
            let mut clock = Clock { time_ns: 5, ..Clock::default() };
            let mut clocks = Vec::new();
            for (passed, used, other) in steps {
                clock.time_ns += passed;
                clock.user_ns += used;
                clock.system_ns += other;
                clock.queued_ns += used / 2;
                clocks.push(clock);
            }
            let end_ns = clock.time_ns + 100;
            let recording =
                Recording { start_ns: 5, end_ns, cpu_s: 3.0, system_s: 1.0, clocks, ..Recording::default() };
            let clocks = Clocks::of(&recording).unwrap();
            let (one, other) = (clocks.between(0, cut), clocks.between(cut, u64::MAX));
            prop_assert!((one.system_s + other.system_s - 1.0).abs() < 1e-9);
            let user_s = one.user_s + other.user_s;
            prop_assert!(user_s == 0.0 || (user_s - 2.0).abs() < 1e-9);
            prop_assert!(one.user_s >= 0.0 && other.system_s >= 0.0 && one.queued_s >= 0.0);
        }
    }

    #[test]
    fn what_samples_took_is_not_the_program_s() {
        let clock = Clock { time_ns: 2_000_000_000, user_ns: 1, ..Clock::default() };
        let recording = Recording {
            end_ns: clock.time_ns,
            cpu_s: 2.0,
            system_s: 0.5,
            period_ns: 500_000.0,
            sample_cost_ns: 20_000.0,
            clocks: vec![clock],
            ..Recording::default()
        };
        let Used { user_s, system_s, sampled_s, .. } = Clocks::of(&recording).unwrap().whole();
        assert!((sampled_s - 0.08).abs() < 1e-9 && (user_s - 1.44).abs() < 1e-9 && (system_s - 0.48).abs() < 1e-9);
    }

    #[test]
    fn nobody_looked() {
        assert!(Clocks::of(&Recording { cpu_s: 1.0, ..Recording::default() }).is_none());
    }
}
