//! Samples that stand for equal time, out of samples that do not.
//!
//! `perf record -F` begins with tiny periods and changes them all the time, and the analysis takes every sample for as
//! much as any other. Each is kept with a probability that grows with the time it stands for, by systematic sampling,
//! so that what is left represents the time evenly; no sample counts twice.

use tierloom_recording::Sample;

/// Of all samples, those that stand for no more than what a kept one stands for: the few that stand for more count less.
const WITHIN: f64 = 0.9;

/// Samples with the time that each stands for, thinned out to equal ones; all of them where they are equal.
pub(super) fn evened(taken: Vec<(Sample, f64)>) -> Vec<Sample> {
    let step = step(&taken);
    let mut reached = 0.0;
    let mut next = step / 2.0;
    let mut kept = Vec::with_capacity(taken.len());
    for (sample, ns) in taken {
        reached += f64::min(ns, step);
        if reached >= next {
            next += step;
            kept.push(sample);
        }
    }
    kept
}

fn step(taken: &[(Sample, f64)]) -> f64 {
    let mut times: Vec<f64> = taken.iter().map(|(_, ns)| *ns).collect();
    times.sort_by(f64::total_cmp);
    let within = tierloom_model::units::round_to_u64((times.len() - 1) as f64 * WITHIN);
    times[usize::try_from(within).unwrap_or(0).min(times.len() - 1)]
}

#[cfg(test)]
mod tests {
    use tierloom_recording::{InCopy, REGISTERS};

    use super::*;

    fn sample(time_ns: u64) -> Sample {
        Sample { time_ns, pid: 1, tid: 1, instructions: 0, registers: [0; REGISTERS], kernel: false, copy: InCopy::No }
    }

    #[test]
    fn equal_samples_all_stay() {
        let taken: Vec<(Sample, f64)> = (0..1000).map(|time| (sample(time), 1e6)).collect();
        assert_eq!(evened(taken).len(), 1000);
        assert_eq!(evened(vec![(sample(1), 0.0)]).len(), 1);
    }

    #[test]
    fn a_start_of_tiny_periods_leaves_next_to_nothing() {
        let tiny = (0..500).map(|time| (sample(time), 10.0));
        let taken: Vec<(Sample, f64)> = tiny.chain((500..5500).map(|time| (sample(time), 1e6))).collect();
        let kept = evened(taken);
        assert!(kept.iter().filter(|sample| sample.time_ns < 500).count() <= 1);
        assert!(kept.len() >= 4999, "{}", kept.len());
    }

    #[test]
    fn where_half_of_the_time_is_half_of_the_samples_are() {
        let taken: Vec<(Sample, f64)> =
            (0..1000).map(|time| (sample(time), if time % 3 == 0 { 2e6 } else { 1e6 })).collect();
        let kept = evened(taken);
        let long = kept.iter().filter(|sample| sample.time_ns % 3 == 0).count();
        assert!((long as f64 / kept.len() as f64 - 0.5).abs() < 0.01, "{long} of {}", kept.len());
    }
}
