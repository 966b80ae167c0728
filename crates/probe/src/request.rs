//! What to measure and how long, and how far it has come.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::ProbeError;

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Name of the machine.
    pub name: String,
    /// Date for the figures' source; the probe asks no clock for it.
    pub date: String,
    /// How much.
    pub scale: Scale,
}

/// How long and how fine to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scale {
    /// How often everything is measured from the first figure to the last: a neighbour on the same host
    /// disturbs for seconds, so a figure's windows must not all lie in the same second.
    pub rounds: usize,
    /// Repetitions of every figure in a round, at least 5; fewer, down to 11, when all of them would take more
    /// than `total_s`.
    pub windows: usize,
    /// Length of one repetition, s; shorter, down to 1 ms, where fewer repetitions are not enough.
    pub window_s: f64,
    /// Time for all windows, s.
    pub total_s: f64,
    /// Each footprint of the pointer chase is this many times the one before.
    pub footprint_step: usize,
    /// No region is larger, bytes.
    pub most_bytes: usize,
    /// Whether every mix is tried with every number of threads, or only with one and with all.
    pub every_count: bool,
}

impl Scale {
    /// Under a minute. Windows are shorter than a scheduler's slice (3 ms), so that beside other
    /// programs there are still some in which every thread runs.
    pub const QUICK: Self = Self {
        rounds: 3,
        windows: 15,
        window_s: 0.002,
        total_s: 40.0,
        footprint_step: 2,
        most_bytes: 4 << 30,
        every_count: false,
    };

    /// Ten minutes of windows at most: more windows, more footprints, every mix with every number of threads.
    pub const FULL: Self = Self {
        rounds: 5,
        windows: 61,
        window_s: 0.002,
        total_s: 600.0,
        footprint_step: 2,
        most_bytes: 16 << 30,
        every_count: true,
    };
}

/// Fewest repetitions that make percentiles.
const FEWEST_WINDOWS: usize = 5;

/// Fewest repetitions to which a machine of many nodes brings a figure: the 10th percentile is then
/// the second of them, no longer the best.
const FEW_WINDOWS: usize = 11;

/// Shortest window: below this the timer and the scheduler show.
const SHORTEST_S: f64 = 0.001;

/// How far a measurement has come.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    /// Share that is done, 0 to 1.
    pub fraction: f64,
    /// Time left at the pace so far, s.
    pub seconds_left: f64,
    /// What is being measured.
    pub doing: String,
}

/// Hears how far a measurement has come, and may end it there.
pub type Tell<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Windows of a measurement, and the count of those that are done.
pub(crate) struct Pace<'a> {
    windows: usize,
    window: Duration,
    total: usize,
    done: usize,
    started: Instant,
    tell: &'a mut Tell<'a>,
}

impl<'a> Pace<'a> {
    /// A pace for so many figures' worth of windows, all rounds together.
    pub(crate) fn new(scale: &Scale, rounds: usize, tell: &'a mut Tell<'a>) -> Self {
        let round_s = scale.window_s * rounds.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited by the next line")]
        let fitting = (scale.total_s / round_s) as usize;
        let windows = scale.windows.min(fitting.max(FEW_WINDOWS)).max(FEWEST_WINDOWS);
        let total = windows * rounds.max(1);
        let window_s = scale.window_s.min(scale.total_s / total as f64).max(SHORTEST_S);
        let window = Duration::from_secs_f64(window_s);
        Self { windows, window, total, done: 0, started: Instant::now(), tell }
    }

    /// Repetitions of a figure.
    pub(crate) fn windows(&self) -> usize {
        self.windows
    }

    /// Length of one repetition.
    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// Says that a figure of so many rounds of windows will be measured now.
    ///
    /// # Errors
    /// [`ProbeError::Stopped`] when the listener wants no more.
    pub(crate) fn begin(&mut self, rounds: usize, doing: impl Into<String>) -> Result<(), ProbeError> {
        let fraction = (self.done as f64 / self.total as f64).min(1.0);
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let windows_left = self.total.saturating_sub(self.done) as f64;
        let each_s = if self.done == 0 { self.window.as_secs_f64() } else { elapsed_s / self.done as f64 };
        self.done += rounds * self.windows;
        match (self.tell)(&Progress { fraction, seconds_left: windows_left * each_s, doing: doing.into() }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ProbeError::Stopped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_grows_to_one_and_windows_fit_the_time() {
        let mut told = Vec::new();
        let mut tell = |progress: &Progress| {
            told.push(progress.fraction);
            ControlFlow::Continue(())
        };
        let scale = Scale { windows: 1, window_s: 10.0, total_s: 1.0, ..Scale::QUICK };
        let mut pace = Pace::new(&scale, 10, &mut tell);
        assert_eq!(pace.windows(), FEWEST_WINDOWS);
        assert!((pace.window().as_secs_f64() - 0.02).abs() < 1e-9);
        (0..12).for_each(|figure| pace.begin(1, figure.to_string()).unwrap());
        assert!(told.is_sorted() && told[0] < 1e-9 && told[11] > 1.0 - 1e-9, "{told:?}");
    }

    #[test]
    fn many_nodes_mean_fewer_windows_and_then_shorter_ones() {
        let mut tell = |_: &Progress| ControlFlow::Continue(());
        let scale = Scale { windows: 100, window_s: 0.002, total_s: 10.0, ..Scale::QUICK };
        let mut pace = |rounds| {
            let pace = Pace::new(&scale, rounds, &mut tell);
            (pace.windows(), pace.window().as_micros())
        };
        assert_eq!([pace(10), pace(100), pace(600), pace(9999)], [(100, 2000), (50, 2000), (11, 1515), (11, 1000)]);
    }

    #[test]
    fn a_listener_may_end_it() {
        let mut tell = |_: &Progress| ControlFlow::Break(());
        let mut pace = Pace::new(&Scale::QUICK, 10, &mut tell);
        assert!(matches!(pace.begin(1, "anything"), Err(ProbeError::Stopped)));
    }
}
