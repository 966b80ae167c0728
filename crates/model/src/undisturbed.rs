//! What a run would have taken alone on its machine and without a profiler.

/// What disturbed a stretch of a run, s, of all its threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Taken {
    /// Time in which they had no CPU because other programs did.
    pub queued_s: f64,
    /// Time in which the profiler held some of them.
    pub held_s: f64,
    /// CPU time that taking samples took: from each thread the same part of its own.
    pub sampled_s: f64,
}

/// The least and the most that a stretch of a run would have taken undisturbed, s.
///
/// How long a thread could have run and did not is known. What the others lose by it is not: threads that wait for each
/// other at every step lose as much, threads that never meet lose their share of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Undisturbed {
    /// Where threads wait for each other at every step.
    pub least_s: f64,
    /// Where they never meet.
    pub most_s: f64,
}

impl Undisturbed {
    /// Of a stretch that lasted so long and used so much CPU time, that of samples included.
    pub fn of(lasted_s: f64, cpu_s: f64, taken: Taken) -> Self {
        let Taken { queued_s, held_s, sampled_s } = taken;
        let runnable = if lasted_s > 0.0 { ((cpu_s + queued_s) / lasted_s).max(1.0) } else { 1.0 };
        let left_s = |lost_s: f64| (lasted_s - sampled_s / runnable - lost_s).max(0.0);
        let of_some_s = queued_s + held_s;
        Self { least_s: left_s(of_some_s), most_s: left_s(of_some_s / runnable) }
    }

    /// Between the two, s: most programs' threads meet, and not at every step.
    pub fn middle_s(&self) -> f64 {
        f64::midpoint(self.least_s, self.most_s)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_near(run: Undisturbed, least_s: f64, most_s: f64) -> bool {
        (run.least_s - least_s).abs() < 1e-12 && (run.most_s - most_s).abs() < 1e-12
    }

    #[test]
    fn one_thread_takes_as_long_as_it_was_let() {
        let run = Undisturbed::of(3.0, 2.0, Taken { queued_s: 0.5, held_s: 0.25, sampled_s: 0.125 });
        assert!(is_near(run, 2.125, 2.125), "{run:?}");
    }

    #[test]
    fn two_threads_on_one_of_two_processors_would_have_taken_half_if_they_never_meet() {
        let run = Undisturbed::of(2.0, 2.0, Taken { queued_s: 2.0, ..Taken::default() });
        assert!(is_near(run, 0.0, 1.0) && (run.middle_s() - 0.5).abs() < 1e-12, "{run:?}");
    }

    #[test]
    fn samples_take_the_same_part_of_every_thread() {
        let run = Undisturbed::of(1.0, 16.0, Taken { sampled_s: 0.64, ..Taken::default() });
        assert!(is_near(run, 0.96, 0.96), "{run:?}");
    }

    proptest! {
        #[test]
        fn it_is_never_longer_than_the_run(lasted in 0.0_f64..9.0, cpu in 0.0_f64..99.0, queued in 0.0_f64..99.0, held in 0.0_f64..9.0) {
            let taken = Taken { queued_s: queued, held_s: held, sampled_s: cpu / 25.0 };
            let run = Undisturbed::of(lasted, cpu, taken);
            prop_assert!(0.0 <= run.least_s && run.least_s <= run.middle_s() && run.middle_s() <= run.most_s && run.most_s <= lasted);
        }
    }
}
