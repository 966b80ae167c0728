//! Rounds per instance of a loop: from the code alone, from the registers of samples, or from how many
//! samples fell into the last round.

use std::collections::BTreeMap;

use crate::cfg::LoopId;
use crate::code::FunctionId;
use crate::emulate::{remaining, rounds};
use crate::observe::Observed;

/// Samples of a loop that are emulated at most.
const MOST_SAMPLES: usize = 60;
/// Share of emulated samples that must give an answer.
const ANSWERED: f64 = 0.6;
/// Inventions that lie beyond the end leave the loop at once: a single round is no answer.
const LEAST_ROUNDS: f64 = 1.5;
/// Fewer samples than this in a last round say nothing.
const FEWEST_LAST: usize = 3;

/// How often a loop goes round each time it is entered, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trip {
    pub(crate) rounds: f64,
    /// One standard deviation, relative.
    pub(crate) relative_error: f64,
}

/// Samples by the loop whose own blocks they fell into: (position of the sample, of the instruction).
type Inside = BTreeMap<(FunctionId, LoopId), Vec<(usize, usize)>>;

/// Trips of the loops of all functions with samples, as far as they can be had.
pub(crate) fn trips(observed: &Observed) -> BTreeMap<(FunctionId, LoopId), Trip> {
    let (samples, around) = samples_by_loop(observed);
    let mut trips = BTreeMap::new();
    let mut functions: Vec<FunctionId> = observed.seen.iter().filter_map(|seen| Some(seen.at?.0)).collect();
    functions.sort_unstable();
    functions.dedup();
    for id in functions {
        for inside in 0..observed.code.functions[id].function.loops.len() {
            let empty = Vec::new();
            let own = samples.get(&(id, inside)).unwrap_or(&empty);
            let all = around.get(&(id, inside)).unwrap_or(&empty);
            if all.is_empty() {
                continue;
            }
            let trip = by_code(observed, id, inside)
                .or_else(|| by_registers(observed, id, inside, all))
                .or_else(|| by_last_rounds(observed, id, inside, own));
            trips.extend(trip.map(|trip| ((id, inside), trip)));
        }
    }
    trips
}

/// Samples in each loop itself, and in each loop with its inner loops.
fn samples_by_loop(observed: &Observed) -> (Inside, Inside) {
    let (mut own, mut around): (Inside, Inside) = Default::default();
    for (number, seen) in observed.seen.iter().enumerate() {
        let Some((id, step)) = seen.at else { continue };
        let function = &observed.code.functions[id].function;
        for (depth, inside) in function.loops_around(function.block_of(step)).enumerate() {
            around.entry((id, inside)).or_default().push((number, step));
            if depth == 0 {
                own.entry((id, inside)).or_default().push((number, step));
            }
        }
    }
    (own, around)
}

fn by_code(observed: &Observed, id: FunctionId, inside: LoopId) -> Option<Trip> {
    let rounds = rounds(&observed.code.functions[id].function, inside, None)?;
    (rounds > LEAST_ROUNDS).then_some(Trip { rounds, relative_error: 0.001 })
}

/// Evenly chosen samples, at most [`MOST_SAMPLES`].
fn some<T: Copy>(all: &[T]) -> impl Iterator<Item = T> {
    all.iter().copied().step_by(all.len().div_ceil(MOST_SAMPLES).max(1))
}

/// From the registers that the loop leaves alone. Samples fall into an instance in proportion to its
/// rounds, so the mean over instances is the harmonic mean over samples.
fn by_registers(observed: &Observed, id: FunctionId, inside: LoopId, samples: &[(usize, usize)]) -> Option<Trip> {
    let function = &observed.code.functions[id].function;
    let tried: Vec<Option<f64>> =
        some(samples).map(|(number, _)| rounds(function, inside, Some(&observed.seen[number].state))).collect();
    let answers: Vec<f64> = tried.iter().flatten().copied().filter(|rounds| *rounds > LEAST_ROUNDS).collect();
    if answers.is_empty() || (answers.len() as f64) < ANSWERED * tried.len() as f64 {
        return None;
    }
    let count = answers.len() as f64;
    let inverse = answers.iter().map(|rounds| 1.0 / rounds).sum::<f64>() / count;
    let variance = answers.iter().map(|rounds| (1.0 / rounds - inverse).powi(2)).sum::<f64>() / count;
    let spread = variance.sqrt() / inverse / count.sqrt();
    Some(Trip { rounds: 1.0 / inverse, relative_error: 0.003 + spread })
}

/// Renewal: if rounds take about equally long, the share of samples in last rounds is one over the
/// mean number of rounds.
fn by_last_rounds(observed: &Observed, id: FunctionId, inside: LoopId, samples: &[(usize, usize)]) -> Option<Trip> {
    let function = &observed.code.functions[id].function;
    let tried: Vec<Option<f64>> = samples
        .iter()
        .map(|(number, step)| remaining(function, inside, *step, &observed.seen[*number].state))
        .collect();
    let answers: Vec<f64> = tried.iter().flatten().copied().collect();
    let last = answers.iter().filter(|left| **left < 0.5).count();
    if last < FEWEST_LAST || (answers.len() as f64) < ANSWERED * tried.len() as f64 {
        return None;
    }
    let relative_error = 0.1 + 1.0 / (last as f64).sqrt();
    Some(Trip { rounds: answers.len() as f64 / last as f64, relative_error })
}
