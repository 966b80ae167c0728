//! What samples show of the instances of a loop that they fell into: how many rounds these have, and how far into them
//! samples are.

use std::collections::BTreeMap;

use crate::attribution::Observed;
use tierloom_binary::cfg::{Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::left_alone::LeftAlone;
use tierloom_binary::dataflow::steady::Steady;
use tierloom_binary::dataflow::trip_count::{at_entry, rounds};
use tierloom_binary::instruction::Gpr;

/// Samples of a loop that are emulated at most.
const MOST_SAMPLES: usize = 240;
/// Fewer positions than this say nothing about the end.
pub(super) const FEWEST_POSITIONS: usize = 20;
/// Inventions that lie beyond the end leave the loop at once: a single round is no answer.
pub(super) const LEAST_ROUNDS: f64 = 1.5;
/// Half of the samples of instances that go on to their end lie before the middle; where they lie before this part, the others
/// are missing. Assumed: rounds of one loop differ by less.
const EARLY: f64 = 0.4;

/// Evenly chosen samples, at most [`MOST_SAMPLES`].
pub(super) fn some<T: Copy>(all: &[T]) -> impl Iterator<Item = T> {
    all.iter().copied().step_by(all.len().div_ceil(MOST_SAMPLES).max(1))
}

/// Rounds of a loop, by what samples show of what it leaves alone.
#[derive(Default)]
pub(super) struct InstancesAlike(BTreeMap<LeftAlone, Option<f64>>);

impl InstancesAlike {
    pub(super) fn rounds(
        &mut self,
        observed: &Observed,
        function: &Function,
        inside: LoopId,
        (number, step): (usize, usize),
    ) -> Option<f64> {
        let known = LeftAlone::of(function, inside, step, observed.shown(number));
        if let Some(found) = self.0.get(&known) {
            return *found;
        }
        let found = rounds(function, inside, Some(&known));
        self.0.insert(known, found);
        found
    }
}

/// Rounds that an instance of a loop has behind it at a sample, by a register that moves once a round:
/// (register, position of the instruction, step).
pub(super) fn position(
    observed: &Observed,
    function: &Function,
    inside: LoopId,
    (register, moved_at, pace): (Gpr, usize, i64),
    (number, step): (usize, usize),
) -> Option<f64> {
    let shown = observed.shown(number);
    let entered = at_entry(function, inside, register, &LeftAlone::of(function, inside, step, shown))?;
    let moved = shown.state.get(register)?.wrapping_sub(entered).cast_signed();
    let behind = function.block_of(moved_at) == function.block_of(step) && step > moved_at
        || function.block_of(moved_at) != function.block_of(step)
            && function.dominates(function.block_of(moved_at), function.block_of(step));
    let rounds = moved / pace - i64::from(behind);
    (moved % pace == 0 && rounds >= 0).then_some(rounds as f64)
}

/// Whether something else ends instances before the end that registers tell of: a search that finds, a list that is over.
/// Samples then thin out towards that end. Those in loops inside do so where later rounds are shorter.
pub(super) fn ends_before(observed: &Observed, id: FunctionId, inside: LoopId, own: &[(usize, usize)]) -> bool {
    let function = &observed.code.functions[id].function;
    let mut alike = InstancesAlike::default();
    let chosen: Vec<((usize, usize), f64)> =
        some(own).filter_map(|sample| Some((sample, alike.rounds(observed, function, inside, sample)?))).collect();
    if chosen.len() < FEWEST_POSITIONS {
        return false;
    }
    let movers = Steady::of(function, inside).every_round(function);
    movers.into_iter().any(|mover| {
        let place = |(sample, rounds): &((usize, usize), f64)| {
            Some((position(observed, function, inside, mover, *sample)?, *rounds))
        };
        thin_out(&chosen.iter().filter_map(place).collect::<Vec<_>>())
    })
}

/// Whether samples at these rounds of instances with so many are rarer towards the end; first rounds take longer.
fn thin_out(places: &[(f64, f64)]) -> bool {
    let later = places.iter().filter(|(position, rounds)| *position > 0.0 && *rounds > LEAST_ROUNDS);
    let mut parts: Vec<f64> = later.map(|(position, rounds)| (position - 0.5) / (rounds - 1.0)).collect();
    parts.sort_by(f64::total_cmp);
    let chance = 3.0 * 0.5 / (parts.len() as f64).sqrt();
    parts.len() >= FEWEST_POSITIONS && parts[parts.len() / 2] < (0.5 - chance).min(EARLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_thin_out_tell_of_another_end() {
        let even =
            |part: f64| -> Vec<(f64, f64)> { (0..100).map(|at| ((f64::from(at) * part).floor(), 100.0)).collect() };
        assert!(!thin_out(&even(1.0)) && !thin_out(&even(0.9)), "all go on to the end, or nearly");
        assert!(thin_out(&even(0.5)) && thin_out(&even(0.05)));
        assert!(!thin_out(&even(0.5)[..15]), "too few");
        let first: Vec<(f64, f64)> = [vec![(0.0, 100.0); 300], even(1.0)].concat();
        assert!(!thin_out(&first), "a first round that takes long");
    }
}
