//! How long a program runs on its machine: by runs without the profiler, or by the one that was profiled.

use crate::undisturbed::Undisturbed;

/// How long a run takes, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunTime {
    /// Likely.
    pub likely_s: f64,
    /// The least.
    pub least_s: f64,
    /// The most.
    pub most_s: f64,
    /// Runs without the profiler that tell it.
    pub runs: usize,
}

impl RunTime {
    /// By runs without the profiler: their median, and where 95 of 100 further runs lie; `None` without any.
    pub fn of_runs(times_s: &[f64]) -> Option<Self> {
        let likely_s = median(times_s)?;
        let count = times_s.len() as f64;
        let mean_s = times_s.iter().sum::<f64>() / count;
        let variance = times_s.iter().map(|time_s| (time_s - mean_s).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let half_s = quantile(times_s.len() - 1) * (variance * (1.0 + 1.0 / count)).sqrt();
        let (least_s, most_s) = ((likely_s - half_s).max(0.0), likely_s + half_s);
        Some(Self { likely_s, least_s, most_s, runs: times_s.len() })
    }

    /// Whether several runs tell how far one is from another.
    pub fn is_spread_known(&self) -> bool {
        self.runs >= 2
    }

    /// By the run that was profiled.
    pub fn of_profiled(run: Undisturbed) -> Self {
        Self { likely_s: run.middle_s(), least_s: run.least_s, most_s: run.most_s, runs: 0 }
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) } else { upper })
}

/// Two-sided 95 % quantile of Student's t by degrees of freedom, from one to ten; of more it is taken to be no less. Of none
/// there is no spread to stretch.
fn quantile(freedom: usize) -> f64 {
    const BY_FREEDOM: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match freedom {
        0 => 0.0,
        known => BY_FREEDOM[known.min(BY_FREEDOM.len()) - 1],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nobody_ran_it() {
        assert!(RunTime::of_runs(&[]).is_none());
    }

    #[test]
    fn one_run_does_not_tell_how_far_others_are() {
        let one = RunTime { likely_s: 2.0, least_s: 2.0, most_s: 2.0, runs: 1 };
        assert_eq!(RunTime::of_runs(&[2.0]), Some(one));
    }

    #[test]
    fn three_runs_by_hand() {
        // Standard deviation 0.1 s, so 4.303 * 0.1 * sqrt(4/3) to both sides.
        let RunTime { likely_s, least_s, most_s, .. } = RunTime::of_runs(&[2.1, 1.9, 2.0]).unwrap();
        assert!((likely_s - 2.0).abs() < 1e-9);
        assert!((most_s - 2.496_87).abs() < 1e-4 && (least_s - 1.503_13).abs() < 1e-4, "{least_s} to {most_s}");
    }

    proptest! {
        #[test]
        fn one_slow_run_of_many_moves_the_likely_time_no_further_than_the_others_are(
            alike in prop::collection::vec(0.9_f64..1.1, 4..9), slow in 2.0_f64..50.0
        ) {
            let mut times_s = alike;
            times_s.push(slow);
            let run = RunTime::of_runs(&times_s).unwrap();
            prop_assert!((0.9..=1.1).contains(&run.likely_s) && run.least_s <= run.likely_s && run.likely_s <= run.most_s);
        }
    }
}
