//! How fine the evaluator is: in time, in pages, in cohorts.

/// Most seconds of a step: the scanner's least period.
pub(super) const STEP_S: f64 = 0.1;
/// The first step after a scan is this share of the mean time between visits to its hottest pages; each after that
/// is twice as long. So the pages that fault first meet the room that is there first.
pub(super) const FIRST_STEP: f64 = 0.25;
/// Shortest step, as a share of the longest.
pub(super) const LEAST_STEP: f64 = 1.0 / 4096.0;
/// Pages below which a count is rounding.
pub(super) const DUST: f64 = 1e-6;
/// Steps after which the sums over all cohorts are taken afresh.
pub(super) const REFRESH: u32 = 256;
/// Most cohorts; beyond, chunks grow.
pub(super) const MOST_COHORTS: u64 = 8192;
