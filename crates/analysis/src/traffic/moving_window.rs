//! Accesses whose addresses the code does not tell, but which stay near a place that walks.
//!
//! The vector of a banded matrix, the nodes of a mesh: the index is loaded or computed, yet it moves with the loop's own
//! walk, and what was touched a moment ago is still in the cache. Samples show it. Where the walk was at a sample (the offset of an operand that moves by a constant) and where the other operand pointed in the same
//! sample make a point; if the points lie on a line, and none is far from those beside it, memory is asked for what the
//! window moves on by, and not for a line at each access.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_binary::code::FunctionId;
use tierloom_model::Pattern;
use tierloom_model::units::LINE_BYTES_F64;

use crate::address_space::Place;
use crate::address_space::objects::ObjectId;
use crate::attribution::{Observed, OperandId};
use crate::traffic::accesses::OperandAccesses;
use crate::traffic::address_stream::AddressStream;
use crate::traffic::element_width::operand;

/// Samples that show an operand and its walk together: with fewer nothing is concluded. Assumed: of a dozen pairs that have
/// nothing to do with each other one in 15,000 correlates by 0.9 (Student's t of 6.5, ten degrees of freedom).
const FEWEST: usize = 12;
/// Share of the points that have to be near those beside them. Assumed: some samples show an address of another round.
const NEAR: f64 = 0.9;
/// Correlation of the two places, either way. Assumed.
const ALIKE: f64 = 0.9;
/// What an operand touches is this many times its window, or there is nothing to tell. Assumed.
const WIDE: f64 = 4.0;
/// Walks that are tried for an operand: those that most samples show with it. Assumed.
const WALKS: usize = 12;

/// An operand on an object.
type Where = (OperandId, ObjectId);

/// Where an operand pointed at a sample, bytes from the beginning of its object.
type Pointed = (Where, f64);

/// What each sample shows, by the function it was in.
type Samples = BTreeMap<FunctionId, Vec<Vec<Pointed>>>;

/// Makes streams of operands that keep to a window that moves on, and tells by operand and object how many lines they fetch in
/// all. `reach` is what of an object stays in the cache, bytes.
pub(crate) fn follow(
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &mut BTreeMap<OperandId, AddressStream>,
    reach: u64,
) -> BTreeMap<Where, f64> {
    let loose = |tally: &&OperandAccesses| is_loose(observed, tally, shapes);
    let executed: BTreeMap<Where, f64> =
        tallies.iter().filter(loose).map(|tally| (key(tally), tally.executions)).collect();
    let walked: BTreeMap<Where, f64> =
        tallies.iter().filter_map(|tally| Some((key(tally), way(tally, shapes)?))).collect();
    let mut lines = of_windows(&samples(observed, &executed, &walked), &executed, &walked, reach as f64);
    for operand in mostly_in_windows(&executed, &lines) {
        shapes.insert(operand, AddressStream { pattern: Pattern::Stream, stride: None, short_walk: None });
    }
    lines.retain(|(operand, _), _| shapes[operand].pattern == Pattern::Stream);
    for (which, executions) in executed {
        if shapes[&which.0].pattern == Pattern::Stream {
            // On another object it goes anywhere.
            lines.entry(which).or_insert(executions);
        }
    }
    lines
}

/// Lines by operand and object, where it keeps to a window.
fn of_windows(
    samples: &Samples,
    executed: &BTreeMap<Where, f64>,
    walked: &BTreeMap<Where, f64>,
    reach: f64,
) -> BTreeMap<Where, f64> {
    let mut lines = BTreeMap::new();
    for (which, walks) in partners(samples, executed, walked) {
        let seen = &samples[&which.0.function];
        let beside =
            |walk: Where| seen.iter().filter_map(|sample| Some((at(sample, walk)?, at(sample, which)?))).collect();
        let windows = walks.into_iter().filter_map(|walk| Some((window(beside(walk), reach)?, walked[&walk])));
        // The window has gone as far as the walk, times the slope. The walk that goes furthest tells it best: another one may
        // move in an outer loop alone.
        let widest = windows.max_by(|(one, _), (other, _)| one.walk.total_cmp(&other.walk));
        if let Some(found) = widest.map(|(window, way)| window.slope * way).filter(|found| *found < executed[&which]) {
            lines.insert(which, found);
        }
    }
    lines
}

/// Operands that keep to windows in most of their executions.
fn mostly_in_windows(executed: &BTreeMap<Where, f64>, lines: &BTreeMap<Where, f64>) -> Vec<OperandId> {
    let mut balance: BTreeMap<OperandId, f64> = BTreeMap::new();
    for (which, executions) in executed {
        *balance.entry(which.0).or_default() += if lines.contains_key(which) { *executions } else { -executions };
    }
    balance.into_iter().filter(|(_, balance)| *balance > 0.0).map(|(operand, _)| operand).collect()
}

fn key(tally: &OperandAccesses) -> Where {
    (tally.operand, tally.object)
}

/// Lines' worth of way that an operand goes whose addresses move by a constant.
fn way(tally: &OperandAccesses, shapes: &BTreeMap<OperandId, AddressStream>) -> Option<f64> {
    let shape = shapes[&tally.operand];
    let walks = matches!(shape.pattern, Pattern::Stream | Pattern::Strided);
    let stride = shape.stride.filter(|stride| walks && *stride != 0)?;
    Some(stride.unsigned_abs() as f64 / LINE_BYTES_F64 * tally.executions)
}

/// Whether an operand's addresses may be anywhere.
fn is_loose(observed: &Observed, tally: &OperandAccesses, shapes: &BTreeMap<OperandId, AddressStream>) -> bool {
    let shape = shapes[&tally.operand];
    shape.pattern == Pattern::Random && shape.short_walk.is_none() && !operand(observed, tally.operand).gather
}

/// What each sample shows of the operands in question.
fn samples(observed: &Observed, executed: &BTreeMap<Where, f64>, walked: &BTreeMap<Where, f64>) -> Samples {
    let functions: BTreeSet<FunctionId> = executed.keys().map(|(operand, _)| operand.function).collect();
    let mut by_sample: BTreeMap<(usize, FunctionId), Vec<Pointed>> = BTreeMap::new();
    for shown in observed.operand_addresses.iter().filter(|shown| functions.contains(&shown.function)) {
        let Place::Object(object, offset) = shown.place else { continue };
        let which = (shown.id(), object);
        if executed.contains_key(&which) || walked.contains_key(&which) {
            by_sample.entry((shown.seen, shown.function)).or_default().push((which, offset as f64));
        }
    }
    let mut samples = Samples::new();
    for ((_, function), shown) in by_sample {
        samples.entry(function).or_default().push(shown);
    }
    samples
}

fn at(sample: &[Pointed], which: Where) -> Option<f64> {
    sample.iter().find(|(here, _)| *here == which).map(|(_, offset)| *offset)
}

/// By operand with random addresses: the walks that most samples show with it.
fn partners(
    samples: &Samples,
    executed: &BTreeMap<Where, f64>,
    walked: &BTreeMap<Where, f64>,
) -> BTreeMap<Where, Vec<Where>> {
    let mut together: BTreeMap<Where, BTreeMap<Where, usize>> = BTreeMap::new();
    for sample in samples.values().flatten() {
        for (which, _) in sample.iter().filter(|(which, _)| executed.contains_key(which)) {
            let counts = together.entry(*which).or_default();
            for (walk, _) in sample.iter().filter(|(walk, _)| walked.contains_key(walk)) {
                *counts.entry(*walk).or_default() += 1;
            }
        }
    }
    let most = |counts: BTreeMap<Where, usize>| {
        let mut walks: Vec<(Where, usize)> = counts.into_iter().filter(|(_, seen)| *seen >= FEWEST).collect();
        walks.sort_by_key(|(_, seen)| std::cmp::Reverse(*seen));
        walks.into_iter().take(WALKS).map(|(walk, _)| walk).collect()
    };
    together.into_iter().map(|(which, counts)| (which, most(counts))).collect()
}

/// How a window moves.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    /// Bytes that the walk goes, but for its ends.
    walk: f64,
    /// Bytes that the window moves for each of them.
    slope: f64,
}

/// The window that an operand keeps to; `None` where the points (walk, operand) show no window that fits into
/// `reach` bytes, or too little of its way.
fn window(mut points: Vec<(f64, f64)>, reach: f64) -> Option<Window> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup();
    if points.len() < FEWEST {
        return None;
    }
    let (walk, own) = (spread(points.iter().map(|point| point.0)), spread(points.iter().map(|point| point.1)));
    if walk <= 0.0 || own < WIDE * reach {
        return None;
    }
    let near = points.windows(3).filter(|three| off(three) <= reach / 2.0).count();
    let alike = correlation(&points).abs() >= ALIKE;
    (alike && near as f64 >= NEAR * (points.len() - 2) as f64).then_some(Window { walk, slope: own / walk })
}

/// How far the middle one of three points is from the line through the others.
fn off(three: &[(f64, f64)]) -> f64 {
    let [(left, from), (middle, own), (right, to)] = [three[0], three[1], three[2]];
    let part = if right > left { (middle - left) / (right - left) } else { 0.5 };
    (own - (from + part * (to - from))).abs()
}

/// Between the twentieth and the last but nineteenth twentieth of some numbers.
fn spread(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len() - 1;
    numbers[last - last / 20] - numbers[last / 20]
}

fn correlation(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let [mut both, mut of_walk, mut of_own] = [0.0; 3];
    for (walk, own) in points.iter().map(|point| (point.0 - mean.0, point.1 - mean.1)) {
        (both, of_walk, of_own) = (both + walk * own, of_walk + walk * walk, of_own + own * own);
    }
    both / (of_walk * of_own).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REACH: f64 = 65536.0;
    const SIZE: f64 = 1e8;

    /// Numbers from 0 to 1 that follow from a seed.
    fn scattered(seed: u64, count: usize) -> impl Iterator<Item = f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        })
        .take(count)
    }

    #[test]
    fn neighbours_that_a_branch_chooses_move_with_the_walk() {
        let points = scattered(1, 40).map(|at| (at * SIZE, at * SIZE + if at > 0.3 { 8.0 } else { -8.0 })).collect();
        let slope = window(points, REACH).map_or(0.0, |window| window.slope);
        assert!((slope - 1.0).abs() < 1e-3, "{slope}");
    }

    #[test]
    fn a_vector_behind_a_banded_matrix_moves_more_slowly_than_it() {
        let band = scattered(3, 60).map(|at| (at - 0.5) * REACH / 2.0);
        let points = scattered(2, 60).zip(band).map(|(at, aside)| (at * SIZE, at * SIZE / 27.0 + aside)).collect();
        let slope = window(points, REACH).map_or(0.0, |window| window.slope);
        assert!((slope * 27.0 - 1.0).abs() < 0.02, "{slope}");
    }

    #[test]
    fn a_band_as_wide_as_the_cache_is_none() {
        let band = scattered(3, 60).map(|at| (at - 0.5) * 16.0 * REACH);
        let points = scattered(2, 60).zip(band).map(|(at, aside)| (at * SIZE, at * SIZE + aside)).collect();
        assert_eq!(window(points, REACH), None);
    }

    #[test]
    fn a_table_that_fits_tells_nothing() {
        let points = scattered(4, 60).map(|at| (at * SIZE, at * REACH)).collect();
        assert_eq!(window(points, REACH), None);
    }

    proptest! {
        #[test]
        fn addresses_anywhere_are_no_window(seed in any::<u64>(), count in FEWEST..200) {
            let points = scattered(seed, count).zip(scattered(!seed, count)).map(|(at, own)| (at * SIZE, own * SIZE));
            prop_assert_eq!(window(points.collect(), REACH), None);
        }
    }
}
