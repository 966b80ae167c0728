//! How much of a thread's own time lies between two of its samples.
//!
//! Where samples come every so often, their number is the time. Where they come after differently long times the clock
//! tells, unless the thread waited or the kernel worked for it in between: then the number is all there is.

use tierloom_recording::Recording;

/// Longer than the longest interval by this factor, and something else happened in it. Assumed: timers are late by some us.
const LATE: f64 = 1.05;

/// How far apart samples of a thread are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spacing {
    mean_ns: f64,
    /// ns; `None` where they are at even times.
    longest: Option<f64>,
    cost_ns: f64,
}

impl Spacing {
    pub(crate) fn of(recording: &Recording) -> Self {
        let mean_ns = recording.period_ns;
        let cost_ns = recording.sample_share() * mean_ns;
        let longest = Some(recording.longest_interval_ns).filter(|longest| *longest > 0.0);
        Self { mean_ns, longest, cost_ns }
    }

    /// CPU time between two samples, ns: the mean.
    pub(crate) fn mean_ns(self) -> f64 {
        self.mean_ns
    }

    /// Where some samples follow others within a small part of the mean: what a pair must last for its length to be known, in
    /// mean intervals. What a sample takes is known to a part of itself, and no thread runs between two that are taken at once.
    pub(crate) fn shortest_pair(self) -> Option<f64> {
        self.longest.map(|_| self.cost_ns / (self.mean_ns - self.cost_ns).max(1.0))
    }

    /// The thread's own time between two samples that follow each other, in mean intervals; taking the first one is no part
    /// of it.
    pub(crate) fn length(self, elapsed_ns: f64) -> f64 {
        match self.longest {
            Some(longest) if elapsed_ns <= LATE * longest => {
                (elapsed_ns - self.cost_ns).max(0.0) / (self.mean_ns - self.cost_ns).max(1.0)
            }
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_as_long_as_the_thread_ran() {
        let even = Recording { period_ns: 1000.0, sample_cost_ns: 100.0, ..Recording::default() };
        let uneven = Recording { longest_interval_ns: 1618.0, ..even.clone() };
        let lengths = |recording| [10.0, 100.0, 550.0, 1000.0, 1600.0, 9e6].map(|ns| Spacing::of(recording).length(ns));
        let are = |lengths: [f64; 6], expected: [f64; 6]| {
            lengths.iter().zip(expected).all(|(length, expected)| (length - expected).abs() < 1e-12)
        };
        assert!(are(lengths(&even), [1.0; 6]));
        assert!(are(lengths(&uneven), [0.0, 0.0, 0.5, 1.0, 1500.0 / 900.0, 1.0]));
    }
}
