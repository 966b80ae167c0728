//! What a sample costs: CPU time that the interrupt, its handling and what it drives out of the caches take from the
//! thread that is sampled.
//!
//! The kernel does not tell (it accounts interrupts as the thread's own time unless it was built with
//! `CONFIG_IRQ_TIME_ACCOUNTING`), and it is ten times as much in a virtual machine as on a bare one. So a stretch of fixed
//! work is timed with and without samples.

use crate::clock::steps;
use crate::cpus::thread_cpu_s;
use crate::error::LinuxError;
use crate::perf::{Record, SelfSampler};

/// Pairs of stretches; the median of an odd number of pairs counts.
const PAIRS: usize = 11;
/// Steps of a stretch, each a few cycles that wait for each other: about a millisecond.
const STEPS: u64 = 600_000;

/// CPU time of a sample that is taken once in `period_ns`, ns: the median of pairs of stretches with and without.
///
/// # Errors
/// The kernel refuses samples.
pub fn measure(period_ns: u64) -> Result<f64, LinuxError> {
    let mut sampler = SelfSampler::open(period_ns)?;
    let mut seed = 1;
    let mut costs = Vec::with_capacity(PAIRS);
    timed_s(&mut seed);
    for _ in 0..PAIRS {
        let alone_s = timed_s(&mut seed);
        sampler.enable()?;
        let sampled_s = timed_s(&mut seed);
        sampler.disable()?;
        let mut samples = 0_u32;
        sampler.drain(|record| samples += u32::from(matches!(record, Record::Sample(_))));
        if samples > 0 {
            costs.push((sampled_s - alone_s) * 1e9 / f64::from(samples));
        }
    }
    costs.sort_by(f64::total_cmp);
    Ok(costs.get(costs.len() / 2).map_or(0.0, |middle| middle.max(0.0)))
}

/// CPU time of a stretch, s, which goes on from a seed.
fn timed_s(seed: &mut u64) -> f64 {
    let begun_s = thread_cpu_s();
    *seed = steps(*seed, STEPS);
    thread_cpu_s() - begun_s
}

#[cfg(test)]
mod tests {
    mod live {
        #[test]
        #[ignore = "live"]
        fn a_sample_costs_some_microseconds() {
            // Between the fastest interrupt of a bare machine and a slow one of a guest of a guest.
            if let Ok(cost_ns) = super::super::measure(50_000) {
                assert!((200.0..200_000.0).contains(&cost_ns), "{cost_ns} ns");
            }
        }
    }
}
