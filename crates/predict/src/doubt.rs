//! How far the inputs may be off, and what that does to the time.
//!
//! A prediction's range takes every doubt at once and in the same direction, so it is wide rather
//! than likely; the time in the middle is the model without doubts.

use tierloom_model::{Access, Object, RunTime, Within};

/// Error of a loaded-latency curve along either axis: the mean error to which fitted forms
/// reproduce published curves (derived: `tierloom_contention`'s test of published curves).
const CURVE_ERROR: f64 = 0.03;

/// Factor by which memory-level parallelism may be off (assumed: it is classed from access
/// patterns, and line-fill buffers are shared between hyper-threads and prefetchers).
const IN_FLIGHT_FACTOR: f64 = 1.25;

/// How far the run that a prediction is anchored to may be from another where nobody ran it twice without the profiler: runs
/// differ, and the profiler slows one down by more or less than it knows. Fitted: with it 29 of 32 real programs lay in their ranges (docs/validate.md).
const RUN_ERROR: f64 = 0.12;

/// What each further thread does of a region that was seen with one thread, against that one: threads wait for the slowest of
/// them, and for lines that others write. Fitted: the median of thirteen programs with two threads, of which twelve are at
/// 0.6 and more (docs/validate.md, "From one thread to two").
const FURTHER_THREAD: f64 = 0.82;
/// The least of it, and the most (assumed: no thread is more than another).
const FURTHER_THREAD_LEAST: f64 = 0.6;
const FURTHER_THREAD_MOST: f64 = 1.0;

/// Factors on the inputs of a prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Doubt {
    /// On every latency.
    pub(crate) latency: f64,
    /// On the misses that one thread keeps in flight, which stay at least 1.
    pub(crate) in_flight: f64,
    /// On the traffic that memories see: less is the same as curves that reach further.
    pub(crate) traffic: f64,
    /// Which end of an object's sampled share to take.
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Low,
    Middle,
    High,
}

impl Doubt {
    /// The model as it is.
    pub(crate) const NONE: Self = Self { latency: 1.0, in_flight: 1.0, traffic: 1.0, end: End::Middle };
    /// Everything better than thought.
    pub(crate) const LOW: Self = Self {
        latency: 1.0 - CURVE_ERROR,
        in_flight: IN_FLIGHT_FACTOR,
        traffic: 1.0 / (1.0 + CURVE_ERROR),
        end: End::Low,
    };
    /// Everything worse than thought.
    pub(crate) const HIGH: Self = Self {
        latency: 1.0 + CURVE_ERROR,
        in_flight: 1.0 / IN_FLIGHT_FACTOR,
        traffic: 1.0 / (1.0 - CURVE_ERROR),
        end: End::High,
    };

    /// Factor on the lines of an access to an object.
    pub(crate) fn of_lines(self, access: &Access, object: &Object) -> f64 {
        let within = lines_within(access, object);
        self.end_of(within.low, 1.0, within.high)
    }

    /// Factor on what was seen to wait for an object, from the confidence interval of its sampled share.
    pub(crate) fn of_share(self, object: &Object) -> f64 {
        let sampled = object.stall.filter(|stall| stall.share > 0.0);
        sampled.map_or(1.0, |stall| self.end_of(stall.low, stall.share, stall.high))
    }

    /// Whether slow reads hold up fast ones: those of a phase may be of one loop, as the middle has it, or of one after another.
    pub(crate) fn holds_up(self) -> bool {
        !matches!(self.end, End::Low)
    }

    /// What so many threads are worth where they share out regions that were seen with one.
    pub(crate) fn of_sharing(self, threads: f64) -> f64 {
        let further = match self.end {
            End::Low => FURTHER_THREAD_MOST,
            End::Middle => FURTHER_THREAD,
            End::High => FURTHER_THREAD_LEAST,
        };
        1.0 + (threads - 1.0) * further
    }

    /// In words, for the reader of a prediction with more threads than were seen.
    pub(crate) fn sharing_in_words() -> String {
        format!(
            "of parallel regions of OpenMP, which one thread was seen in, each further thread does {:.0} % as much as one \
             (fitted), {:.0} to {:.0} % in the range",
            FURTHER_THREAD * 100.0,
            FURTHER_THREAD_LEAST * 100.0,
            FURTHER_THREAD_MOST * 100.0
        )
    }

    /// Factor on the time of the run that a prediction is anchored to.
    pub(crate) fn of_run(self, run: RunTime) -> f64 {
        let error = if run.is_spread_known() { 0.0 } else { RUN_ERROR };
        let likely_s = run.likely_s.max(f64::MIN_POSITIVE);
        self.end_of((1.0 - error) * run.least_s, likely_s, (1.0 + error) * run.most_s)
    }

    fn end_of(self, low: f64, middle: f64, high: f64) -> f64 {
        match self.end {
            End::Low => (low / middle).clamp(0.0, 1.0),
            End::Middle => 1.0,
            End::High => (high / middle).max(1.0),
        }
    }

    /// In words, for the reader of a range of a prediction that is anchored to a run.
    pub(crate) fn in_words_anchored(run: RunTime) -> String {
        let itself = if run.is_spread_known() {
            format!("the run itself where 95 % of further runs lie (by {} without the profiler)", run.runs)
        } else {
            format!("the run itself {:.0} % (fitted) beside what others took from it", RUN_ERROR * 100.0)
        };
        format!(
            "waiting is what was sampled in the run, by the ratio of latencies here and there; the range takes latencies \
             and bandwidths {:.0} % off (derived from published curves), {itself}, \
             and the ends of the 95 % intervals of samples and counts, all in the same direction; but what waited more \
             computed less, and memory moved no more than the run had time for",
            CURVE_ERROR * 100.0
        )
    }

    /// In words, for the reader of a range.
    pub(crate) fn in_words() -> String {
        format!(
            "the range takes latencies and bandwidths {:.0} % off (derived from published curves), misses in flight off \
             by a factor of {IN_FLIGHT_FACTOR} (assumed) and the ends of the counts' 95 % intervals, all in the same \
             direction",
            CURVE_ERROR * 100.0
        )
    }
}

/// Factors on the lines of an access to an object, between which the truth lies: from their interval, else that of all
/// accesses of the object, else of its sampled share; 1 where the profile has none.
pub(crate) fn lines_within(access: &Access, object: &Object) -> Within {
    let around =
        |low: f64, middle: f64, high: f64| Within { low: (low / middle).min(1.0), high: (high / middle).max(1.0) };
    let counted =
        || object.accesses.filter(|known| known.count > 0.0).map(|known| around(known.low, known.count, known.high));
    let sampled =
        || object.stall.filter(|stall| stall.share > 0.0).map(|stall| around(stall.low, stall.share, stall.high));
    access.traffic_within.or_else(counted).or_else(sampled).unwrap_or(Within { low: 1.0, high: 1.0 })
}
