//! What windows and samples together say of the pace of code.
//!
//! A window that begins in one stratum may run on into others, and where few begin in a stratum, what they ran
//! elsewhere decides by chance: one that began at the end of a wait of 96 ms counted a short loop behind it as if it
//! had run all that time. But samples tell the time of each stratum, and windows its pace: a window lasts as long as
//! the instructions that it ran of each stratum take. Time by pace is a second count of each stratum's instructions (a
//! ratio estimator; Cochran, Sampling Techniques, 6). The two are weighed by their variances: of strata in which many
//! windows agree the first stays as it is.

use std::collections::BTreeMap;

use crate::frequency::counter_deltas::posterior::MOST_INSTRUCTIONS_PER_NS;
use crate::frequency::strata::{Spent, Stratum};

/// By how much the pace of the same code differs from window to window, relative. Assumed.
const UNLIKE: f64 = 0.3;
/// Largest relative deviation of a count by windows: that of the mean of three or fewer. Assumed.
const MOST_DEVIATION: f64 = 2.0;
/// Rounds in which paces are found.
const ROUNDS: usize = 40;

/// A window that counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    /// Where it began.
    pub(crate) stratum: Stratum,
    /// How long the code itself would have taken.
    pub(crate) duration_ns: f64,
    /// CPU time of the run that it stands for.
    pub(crate) stands_for_ns: f64,
    pub(crate) instructions: BTreeMap<Stratum, f64>,
}

/// Instructions of a stratum by windows alone.
#[derive(Debug, Clone, Copy, Default)]
struct ByWindows {
    instructions: f64,
    variance: f64,
}

/// A stratum of which both are known.
#[derive(Debug)]
struct Paced {
    stratum: Stratum,
    /// ns per instruction, by the time of the stratum and its count by windows.
    before: f64,
    /// The same, as windows have it.
    pace: f64,
    /// Relative variance of the count by windows, and of the time.
    by_windows: f64,
    by_time: f64,
    /// Windows that ran it, with its instructions in each.
    ran: Vec<(usize, f64)>,
}

/// What to make of a stratum's counts by windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Correction {
    pub(crate) factor: f64,
    /// Relative deviation of the counts before, by chance alone.
    pub(crate) deviation: f64,
}

/// By stratum of which there are samples.
pub(crate) fn corrections(windows: &[Counted], times: &BTreeMap<Stratum, Spent>) -> BTreeMap<Stratum, Correction> {
    let mut strata = paced(windows, times);
    find_paces(windows, &mut strata);
    let correction = |one: &Paced| {
        let believed = one.by_windows / (one.by_windows + one.by_time);
        let factor = (one.before / one.pace).powf(believed);
        (one.stratum, Correction { factor, deviation: one.by_windows.sqrt() })
    };
    strata.iter().map(correction).collect()
}

fn paced(windows: &[Counted], times: &BTreeMap<Stratum, Spent>) -> Vec<Paced> {
    let known = by_windows(windows);
    let mut strata: BTreeMap<Stratum, Paced> = BTreeMap::new();
    for (number, window) in windows.iter().enumerate() {
        for (stratum, instructions) in &window.instructions {
            let Some(spent) = times.get(stratum).filter(|spent| spent.samples > 0.0 && spent.ns > 0.0) else {
                continue;
            };
            let counted = known[stratum];
            let paced = strata.entry(*stratum).or_insert_with(|| Paced {
                stratum: *stratum,
                before: spent.ns / counted.instructions,
                pace: spent.ns / counted.instructions,
                by_windows: (counted.variance / counted.instructions.powi(2)).min(MOST_DEVIATION.powi(2)),
                by_time: 1.0 / spent.samples,
                ran: Vec::new(),
            });
            paced.ran.push((number, *instructions));
        }
    }
    strata.into_values().collect()
}

/// Means of windows that began in the same stratum, with the variance of each mean.
fn by_windows(windows: &[Counted]) -> BTreeMap<Stratum, ByWindows> {
    let mut groups: BTreeMap<Stratum, Vec<&Counted>> = BTreeMap::new();
    for window in windows {
        groups.entry(window.stratum).or_default().push(window);
    }
    let mut known: BTreeMap<Stratum, ByWindows> = BTreeMap::new();
    for group in groups.values() {
        let whole_ns: f64 = group.iter().map(|window| window.stands_for_ns).sum();
        let mut shares: BTreeMap<Stratum, Vec<(f64, f64)>> = BTreeMap::new();
        for window in group {
            for (stratum, instructions) in &window.instructions {
                let share = (window.stands_for_ns / whole_ns, instructions / window.duration_ns);
                shares.entry(*stratum).or_default().push(share);
            }
        }
        let all_squares: f64 = group.iter().map(|window| (window.stands_for_ns / whole_ns).powi(2)).sum();
        for (stratum, shares) in shares {
            let mean: f64 = shares.iter().map(|(weight, rate)| weight * rate).sum();
            let squares: f64 = shares.iter().map(|(weight, rate)| (weight * (rate - mean)).powi(2)).sum();
            // Windows that ran nothing of it lie below the mean by all of it.
            let others = all_squares - shares.iter().map(|(weight, _)| weight * weight).sum::<f64>();
            let number = group.len() as f64;
            // Of few the variance itself is not known: that of Student's t.
            let variance = match group.len() {
                ..=3 => (MOST_DEVIATION * mean).powi(2),
                _ => number / (number - 3.0) * (squares + others.max(0.0) * mean * mean),
            };
            let sum = known.entry(stratum).or_default();
            sum.instructions += whole_ns * mean;
            sum.variance += whole_ns * whole_ns * variance;
        }
    }
    known
}

/// Finds the paces by which windows last as long as they did: each window's time goes to strata as their instructions
/// take it at the paces so far, and gives new paces (expectation and maximisation). Paces stay near those before where
/// these are sure.
fn find_paces(windows: &[Counted], strata: &mut [Paced]) {
    let mut expected: Vec<f64> = vec![0.0; windows.len()];
    for _ in 0..ROUNDS {
        expected.fill(0.0);
        for paced in &*strata {
            paced.ran.iter().for_each(|(number, instructions)| expected[*number] += instructions * paced.pace);
        }
        for paced in &mut *strata {
            let share = |(number, instructions): &(usize, f64)| instructions * paced.pace / expected[*number];
            let all: f64 = paced.ran.iter().map(share).sum();
            let time: f64 = paced.ran.iter().map(|ran| share(ran) * windows[ran.0].duration_ns).sum();
            let instructions: f64 = paced.ran.iter().map(|(_, instructions)| instructions).sum();
            let (seen, own) = (all / UNLIKE.powi(2), 1.0 / (paced.by_windows + paced.by_time));
            let ratio = (time / instructions / paced.before).ln();
            let pace = paced.before * (ratio * seen / (seen + own)).exp();
            paced.pace = pace.max(1.0 / MOST_INSTRUCTIONS_PER_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use tierloom_binary::code::FunctionId;

    use super::*;

    fn strata() -> [Stratum; 2] {
        [1, 2].map(|function| Some((FunctionId::new(function), None)))
    }

    fn window(stratum: Stratum, duration_ns: f64, stands_for_ns: f64, ran: &[(Stratum, f64)]) -> Counted {
        Counted { stratum, duration_ns, stands_for_ns, instructions: ran.iter().copied().collect() }
    }

    fn spent(ns: f64) -> Spent {
        Spent { ns, samples: ns }
    }

    #[test]
    fn windows_that_agree_keep_their_count() {
        let [one, other] = strata();
        let mixed = |times: f64| window(one, 10.0 * times, 100.0, &[(one, 20.0 * times), (other, 5.0 * times)]);
        let windows: Vec<Counted> = (1..=20).map(|times| mixed(f64::from(times))).collect();
        let times = BTreeMap::from([(one, spent(1900.0)), (other, spent(100.0))]);
        for Correction { factor, deviation } in corrections(&windows, &times).into_values() {
            assert!((factor - 1.0).abs() < 0.01 && deviation < 0.01, "{factor} {deviation}");
        }
    }

    #[test]
    fn a_window_that_ran_on_into_other_code_stands_for_no_more_of_it_than_it_took() {
        let [wait, short] = strata();
        // One window began at the end of a wait of 1000; what it ran is a loop that took 100 in all.
        let windows = [
            window(wait, 10.0, 1000.0, &[(wait, 0.01), (short, 100.0)]),
            window(short, 10.0, 100.0, &[(short, 100.0)]),
        ];
        let times = BTreeMap::from([(wait, spent(1000.0)), (short, spent(100.0))]);
        let before = 11_000.0;
        let found = before * corrections(&windows, &times)[&short].factor;
        assert!((found / 1000.0 - 1.0).abs() < 0.2, "{found}");
    }

    #[test]
    fn a_short_stratum_is_counted_by_its_time_and_the_pace_that_windows_show() {
        let [long, short] = strata();
        // Windows of both: of 30 units the loop took 10, of its 100 in all.
        let mut windows: Vec<Counted> = (0..20).map(|_| window(long, 30.0, 95.0, &[(long, 30.0)])).collect();
        windows.push(window(short, 30.0, 100.0, &[(long, 10.0), (short, 200.0)]));
        let times = BTreeMap::from([(long, spent(1900.0)), (short, spent(100.0))]);
        let before = 100.0 / 30.0 * 200.0;
        let found = before * corrections(&windows, &times)[&short].factor;
        assert!((found / 1000.0 - 1.0).abs() < 0.1, "{found}");
    }
}
