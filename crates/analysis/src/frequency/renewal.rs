//! Rounds per instance of a loop: from the code alone, from the registers of samples, or from how many
//! samples fell into the last round.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::attribution::Observed;
use crate::frequency::branches::is_last_round;
use crate::frequency::instances::{FEWEST_POSITIONS, InstancesAlike, LEAST_ROUNDS, ends_before, position, some};
use crate::frequency::short_instances;
use crate::frequency::trip_count::TripCount;
use crate::frequency::trip_count::TripCounts;
use crate::parallel::mapped;
use tierloom_binary::cfg::{Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::left_alone::reads_stack;
use tierloom_binary::dataflow::retry::is_retry;
use tierloom_binary::dataflow::steady::Steady;
use tierloom_binary::dataflow::trip_count::{remaining, remaining_rounds, rounds};
use tierloom_binary::instruction::Gpr;

/// The same where rounds take differently long: the few samples of the shortest then stand for most instances.
const MOST_TIMED: usize = 4000;
/// Samples of a loop that are emulated up to its end at most.
const MOST_ENDS: usize = 1000;
/// Share of emulated samples that must give an answer.
const ANSWERED: f64 = 0.6;
/// So many samples that wait alike make the others dispensable.
const ENOUGH_ALIKE: usize = 100;
/// Samples in the first rounds that tell how many instances there are: one in so many, and no fewer than some.
const EARLY_ONE_IN: usize = 16;
const FEWEST_EARLY: usize = 10;
/// First rounds take longer, so they tell only where the middle of the samples is this much further than in instances
/// that are alike or end by chance (1.4): where a few long ones hold most of the rounds, as a merge sort's last
/// passes do. Assumed: no loop of the workloads has it.
const UNLIKE: f64 = 4.0;
/// Fewer samples than this in a last round say nothing.
const FEWEST_LAST: usize = 3;

/// Share of atomic updates that another thread makes fail once. Assumed; compilers take it for none (GCC's
/// `expand_compare_and_swap_loop`).
const RETRIED: f64 = 0.2;

/// Samples by the loop whose own blocks they fell into: (position of the sample, of the instruction).
type Inside = BTreeMap<(FunctionId, LoopId), Vec<(usize, usize)>>;

/// Trips of the loops of all functions with samples, as far as they can be had.
pub(crate) fn trips(observed: &Observed) -> TripCounts {
    let (samples, around) = samples_by_loop(observed);
    let loops: Vec<(FunctionId, LoopId)> = around.keys().copied().collect();
    let trips = mapped(&loops, |&(id, inside)| {
        let own = samples.get(&(id, inside)).map_or(&[][..], Vec::as_slice);
        let function = &observed.code.functions[id].function;
        let (own, all) = (telling(observed, function, inside, own), &around[&(id, inside)]);
        let (own, all) = (&*own, &*telling(observed, function, inside, all));
        let by_end = || {
            by_retries(function, inside)
                .or_else(|| by_code(observed, id, inside))
                .or_else(|| by_registers(observed, id, inside, all))
                .or_else(|| by_both_ends(observed, id, inside, all))
        };
        by_end()
            .filter(|_| !ends_before(observed, id, inside, own))
            .or_else(|| by_positions(observed, id, inside, all))
            .or_else(|| by_rounds_to_come(observed, id, inside, all))
            .or_else(|| by_last_rounds(observed, id, inside, own))
            .or_else(|| by_rounds_left(observed, id, inside, all))
    });
    let mut found: TripCounts = loops.iter().zip(trips).filter_map(|(around, trip)| Some((*around, trip?))).collect();
    let open = around.iter().filter(|(id, _)| !found.contains_key(id)).map(|(id, samples)| (*id, samples.as_slice()));
    let short = short_instances::trips(observed, &open.collect());
    found.extend(short);
    found
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
        for frame in seen.shown_callers() {
            let function = &observed.code.functions[frame.function].function;
            for inside in function.loops_around(function.block_of(frame.site)) {
                around.entry((frame.function, inside)).or_default();
            }
        }
    }
    (own, around)
}

/// An atomic update is done in one round.
fn by_retries(function: &Function, inside: LoopId) -> Option<TripCount> {
    is_retry(function, inside).then_some(TripCount { rounds: 1.0, relative_error: RETRIED, variance: None })
}

fn by_code(observed: &Observed, id: FunctionId, inside: LoopId) -> Option<TripCount> {
    let rounds = rounds(&observed.code.functions[id].function, inside, None)?;
    (rounds > LEAST_ROUNDS).then_some(TripCount { rounds, relative_error: 0.001, variance: None })
}

/// From the registers that the loop leaves alone. Samples fall into an instance in proportion to its
/// rounds and to how long these take, so each counts by one over that (the harmonic mean, where rounds are alike). What an instance does once it
/// does in or before its first round, which then takes longer and draws samples to short instances: where
/// samples tell how far they are into the loop, those of first rounds are left out.
fn by_registers(observed: &Observed, id: FunctionId, inside: LoopId, samples: &[(usize, usize)]) -> Option<TripCount> {
    let function = &observed.code.functions[id].function;
    let chosen = timed(observed, function, inside, samples);
    let tried = rounds_of_samples(observed, function, inside, &chosen);
    let tried: Vec<Option<Instance>> = tried
        .into_iter()
        .zip(&chosen)
        .map(|(rounds, (_, per_round))| Some(Instance { rounds: rounds?, per_round: *per_round }))
        .collect();
    let answers: Vec<Instance> = tried.iter().flatten().copied().filter(|one| one.rounds > LEAST_ROUNDS).collect();
    if answers.is_empty() || (answers.len() as f64) < ANSWERED * tried.len() as f64 {
        return None;
    }
    let movers = Steady::of(function, inside).every_round(function);
    let later = movers.into_iter().find_map(|mover| {
        let positions = chosen.iter().map(|(sample, _)| position(observed, function, inside, mover, *sample));
        later_rounds(&positions.zip(tried.iter().copied()).collect::<Vec<_>>())
    });
    Some(later.unwrap_or_else(|| of_samples(&answers)))
}

/// From the rounds of instances and how far into them samples are, first rounds left out, where enough samples tell both.
fn later_rounds(samples: &[(Option<f64>, Option<Instance>)]) -> Option<TripCount> {
    let known: Vec<(f64, Instance)> = samples
        .iter()
        .filter_map(|(position, instance)| Some(((*position)?, (*instance)?)))
        .filter(|(position, instance)| *position < instance.rounds)
        .collect();
    let later: Vec<Instance> = known
        .iter()
        .filter(|(position, instance)| *position > 0.0 && instance.rounds > LEAST_ROUNDS)
        .map(|(_, instance)| Instance { rounds: instance.rounds - 1.0, ..*instance })
        .collect();
    if (known.len() as f64) < ANSWERED * samples.len() as f64 || later.len() < FEWEST_POSITIONS {
        return None;
    }
    let trip = of_samples(&later);
    Some(TripCount { rounds: 1.0 + trip.rounds, ..trip })
}

/// As [`by_registers`], where no register tells the rounds of an instance, but some how many are behind a sample and
/// others how many are to come.
fn by_both_ends(observed: &Observed, id: FunctionId, inside: LoopId, samples: &[(usize, usize)]) -> Option<TripCount> {
    let function = &observed.code.functions[id].function;
    let chosen = timed(observed, function, inside, samples);
    let movers = Steady::of(function, inside).every_round(function);
    movers.into_iter().find_map(|mover| {
        let both = |(sample, per_round): &((usize, usize), f64)| {
            let behind = position(observed, function, inside, mover, *sample);
            let ahead = behind.and_then(|_| to_come(observed, function, inside, *sample));
            let rounds = behind.zip(ahead).map(|(behind, ahead)| behind + 1.0 + ahead);
            (behind, rounds.map(|rounds| Instance { rounds, per_round: *per_round }))
        };
        later_rounds(&chosen.iter().map(both).collect::<Vec<_>>())
    })
}

/// Rounds that an instance of a loop has before it at a sample.
fn to_come(observed: &Observed, function: &Function, inside: LoopId, (number, step): (usize, usize)) -> Option<f64> {
    remaining_rounds(function, inside, step, observed.shown(number))
}

/// Rounds of the instance that each sample fell into. Many samples show the same in what the loop leaves alone, and
/// that is all that is asked of them.
fn rounds_of_samples(
    observed: &Observed,
    function: &Function,
    inside: LoopId,
    samples: &[((usize, usize), f64)],
) -> Vec<Option<f64>> {
    let mut found = InstancesAlike::default();
    let of_sample = |(sample, _): &((usize, usize), f64)| found.rounds(observed, function, inside, *sample);
    samples.iter().map(of_sample).collect()
}

/// The instance that a sample fell into.
#[derive(Debug, Clone, Copy)]
struct Instance {
    rounds: f64,
    /// How long a round of it takes, against others.
    per_round: f64,
}

/// From the instances that samples fell into, in proportion to how long these took.
fn of_samples(instances: &[Instance]) -> TripCount {
    let sum = |part: &dyn Fn(&Instance) -> f64| instances.iter().map(part).sum::<f64>();
    let weight = |one: &Instance| 1.0 / (one.rounds * one.per_round);
    let (weights, rounds) = (sum(&weight), sum(&|one| weight(one) * one.rounds));
    let mean = rounds / weights;
    let spread = sum(&|one| (weight(one) * (one.rounds - mean)).powi(2)).sqrt() / rounds;
    let squares = sum(&|one| weight(one) * one.rounds.powi(2)) / weights;
    let variance = (squares / mean.powi(2) - 1.0).max(0.0);
    TripCount { rounds: mean, relative_error: 0.003 + spread, variance: Some(variance) }
}

/// Evenly chosen samples of a loop and how long a round takes at each: as many rounds as loops inside have there. Where
/// most samples lie in loops inside, the few others tell nothing of that.
fn timed(
    observed: &Observed,
    function: &Function,
    inside: LoopId,
    samples: &[(usize, usize)],
) -> Vec<((usize, usize), f64)> {
    let inner = |step: usize| function.loops_around(function.block_of(step)).take_while(move |id| *id != inside);
    let within: Vec<(usize, usize)> =
        samples.iter().filter(|(_, step)| inner(*step).next().is_some()).copied().collect();
    if 2 * within.len() < samples.len() {
        return some(samples).map(|sample| (sample, 1.0)).collect();
    }
    let mut found: BTreeMap<LoopId, InstancesAlike> = BTreeMap::new();
    let mut long = |sample: (usize, usize)| {
        inner(sample.1).try_fold(1.0, |times, id| {
            Some(times * found.entry(id).or_default().rounds(observed, function, id, sample)?)
        })
    };
    let chosen = within.iter().copied().step_by(within.len().div_ceil(MOST_TIMED).max(1));
    let chosen: Vec<((usize, usize), Option<f64>)> = chosen.map(|sample| (sample, long(sample))).collect();
    let all_known = chosen.iter().all(|(_, long)| long.is_some());
    chosen.into_iter().map(|(sample, long)| (sample, long.filter(|_| all_known).unwrap_or(1.0))).collect()
}

/// Of a loop that keeps something on the stack, the samples that show it, where there are enough.
fn telling<'s>(
    observed: &Observed,
    function: &Function,
    inside: LoopId,
    samples: &'s [(usize, usize)],
) -> Cow<'s, [(usize, usize)]> {
    let shows = |(number, _): &&(usize, usize)| observed.seen[*number].stack_top.is_some();
    if !reads_stack(function, inside) || samples.iter().filter(shows).count() < FEWEST_POSITIONS {
        return Cow::Borrowed(samples);
    }
    samples.iter().filter(shows).copied().collect()
}

/// From how far samples are into the loop, where it starts at a known value and ends at one that nobody
/// knows. Later rounds are reached by fewer instances, so samples thin out towards the end; where they
/// do not, all instances go as far as the furthest sample. Else half of the samples lie before the
/// middle of the usual instance, unless the first rounds, which all come to, are far too rare for that.
fn by_positions(observed: &Observed, id: FunctionId, inside: LoopId, samples: &[(usize, usize)]) -> Option<TripCount> {
    let function = &observed.code.functions[id].function;
    let of_register = |mover: (Gpr, usize, i64)| {
        let tried: Vec<Option<f64>> =
            samples.iter().map(|sample| position(observed, function, inside, mover, *sample)).collect();
        enough_positions(&tried).map(|found| of_positions(&found))
    };
    let movers = Steady::of(function, inside).every_round(function);
    movers.into_iter().find_map(of_register).filter(|trip| trip.rounds > LEAST_ROUNDS)
}

/// As [`by_positions`], from the other end, where a loop starts at a value that nobody knows: by how far samples are from
/// the end of instances that are alike. Of others the share in last rounds tells more.
fn by_rounds_to_come(
    observed: &Observed,
    id: FunctionId,
    inside: LoopId,
    samples: &[(usize, usize)],
) -> Option<TripCount> {
    let function = &observed.code.functions[id].function;
    let chosen = samples.iter().copied().step_by(samples.len().div_ceil(MOST_ENDS).max(1));
    let tried: Vec<Option<f64>> = chosen.map(|sample| to_come(observed, function, inside, sample)).collect();
    enough_positions(&tried).and_then(|found| of_alike(&found)).filter(|trip| trip.rounds > LEAST_ROUNDS)
}

/// Those that are known, sorted, if they are enough to tell anything.
fn enough_positions(tried: &[Option<f64>]) -> Option<Vec<f64>> {
    let mut found: Vec<f64> = tried.iter().flatten().copied().collect();
    found.sort_by(f64::total_cmp);
    (found.len() >= FEWEST_POSITIONS && found.len() as f64 >= ANSWERED * tried.len() as f64).then_some(found)
}

/// Rounds of a loop from sorted positions of samples in it, the first round being 0.
fn of_positions(positions: &[f64]) -> TripCount {
    if let Some(alike) = of_alike(positions) {
        return alike;
    }
    let (count, middle) = (positions.len() as f64, middle(positions));
    // All instances come to the first rounds, whatever becomes of them later.
    let early = positions.len().div_ceil(EARLY_ONE_IN).max(FEWEST_EARLY);
    let upto = positions[early - 1];
    let within = positions.partition_point(|position| *position <= upto) as f64;
    let by_early = (upto + 1.0) * count / within;
    if by_early * UNLIKE < middle {
        return TripCount { rounds: by_early, relative_error: 0.1 + 1.0 / within.sqrt(), variance: Some(1.0) };
    }
    TripCount { rounds: middle, relative_error: 0.1 + 1.0 / count.sqrt(), variance: Some(1.0) }
}

/// As many as the furthest position shows, where samples do not thin out towards it: then all instances go as far.
fn of_alike(positions: &[f64]) -> Option<TripCount> {
    let (count, furthest) = (positions.len() as f64, positions.last()? + 1.0);
    // Of so many samples the last one lies this far from the end.
    let rounds = if furthest > count { furthest * (1.0 + 1.0 / count) } else { furthest };
    let alike = middle(positions) >= furthest * (1.0 - 3.0 / count.sqrt());
    alike.then_some(TripCount { rounds, relative_error: 0.003 + 1.0 / count, variance: Some(0.0) })
}

/// Rounds of instances that are alike, by the middle of sorted positions.
fn middle(positions: &[f64]) -> f64 {
    2.0 * positions[positions.len() / 2] + 1.0
}

/// As [`by_last_rounds`], by samples anywhere in the loop: by the registers that are the same all round.
fn by_rounds_left(
    observed: &Observed,
    id: FunctionId,
    inside: LoopId,
    samples: &[(usize, usize)],
) -> Option<TripCount> {
    let function = &observed.code.functions[id].function;
    let changing = Steady::of(function, inside).known().others();
    let tried: Vec<Option<f64>> = samples
        .iter()
        .map(|(number, _)| {
            let mut state = observed.seen[*number].state;
            state.forget(changing);
            is_last_round(function, inside, state).map(|last| if last { 0.0 } else { 1.0 })
        })
        .collect();
    of_last_rounds(&tried)
}

/// Renewal: if rounds take about equally long, the share of samples in last rounds is one over the
/// mean number of rounds. Waiting for addresses that jump from round to round is as likely in each of
/// them; waiting for those that walk is not, for each instance starts at a line of its own. So samples
/// of the former decide where there are enough.
fn by_last_rounds(
    observed: &Observed,
    id: FunctionId,
    inside: LoopId,
    samples: &[(usize, usize)],
) -> Option<TripCount> {
    let function = &observed.code.functions[id].function;
    let steady = Steady::of(function, inside);
    let jumps = |(number, _): &&(usize, usize)| {
        observed.seen[*number].waited.is_some_and(|waited| {
            let walks = |operand| steady.still(operand) || steady.step(operand).is_some();
            function.loops[inside].contains(function.block_of(waited))
                && !function.instructions[waited].operands.iter().any(walks)
        })
    };
    let jumping: Vec<(usize, usize)> = samples.iter().filter(jumps).copied().collect();
    let alike = if jumping.len() >= ENOUGH_ALIKE { &jumping } else { samples };
    last_rounds(observed, id, inside, alike)
}

fn last_rounds(observed: &Observed, id: FunctionId, inside: LoopId, samples: &[(usize, usize)]) -> Option<TripCount> {
    let function = &observed.code.functions[id].function;
    let tried: Vec<Option<f64>> =
        samples.iter().map(|(number, step)| remaining(function, inside, *step, observed.shown(*number))).collect();
    of_last_rounds(&tried)
}

fn of_last_rounds(tried: &[Option<f64>]) -> Option<TripCount> {
    let answers: Vec<f64> = tried.iter().flatten().copied().collect();
    let last = answers.iter().filter(|left| **left < 0.5).count();
    if last < FEWEST_LAST || (answers.len() as f64) < ANSWERED * tried.len() as f64 {
        return None;
    }
    let relative_error = 0.1 + 1.0 / (last as f64).sqrt();
    Some(TripCount { rounds: answers.len() as f64 / last as f64, relative_error, variance: Some(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instances(rounds: &[f64], per_round: impl Fn(f64) -> f64) -> Vec<Instance> {
        rounds.iter().map(|rounds| Instance { rounds: *rounds, per_round: per_round(*rounds) }).collect()
    }

    #[test]
    fn rounds_of_single_samples_give_the_mean_of_instances_and_how_they_vary() {
        // An instance of 4 rounds for each one of 16: 10 rounds on average, which vary by 6.
        let trip = of_samples(&instances(&[[4.0; 1].as_slice(), &[16.0; 4]].concat(), |_| 1.0));
        assert!((trip.rounds - 10.0).abs() < 1e-9, "{trip:?}");
        assert!((trip.variance.unwrap() - 0.36).abs() < 1e-9, "{trip:?}");
        assert!(of_samples(&instances(&[5.0; 9], |_| 1.0)).variance.unwrap() < 1e-9, "always the same");
    }

    #[test]
    fn instances_of_long_rounds_draw_more_samples() {
        // Of a factorisation: n rounds of n inner ones each, for each n from 1 to 20, and n² samples.
        let samples: Vec<f64> = (1..=20).flat_map(|n: u16| vec![f64::from(n); usize::from(n * n)]).collect();
        let trip = of_samples(&instances(&samples, |rounds| rounds));
        assert!((trip.rounds - 10.5).abs() < 1e-9, "{trip:?}");
    }

    #[test]
    fn samples_up_to_the_same_end_give_a_loop_of_that_length() {
        let mut positions: Vec<f64> = (0..500).map(|sample| f64::from(sample % 5)).collect();
        positions.sort_by(f64::total_cmp);
        assert!((of_positions(&positions).rounds - 5.0).abs() < 1e-9);
        // Later rounds take longer: more samples there, and the same length.
        positions.extend([4.0; 500]);
        assert!((of_positions(&positions).rounds - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_few_long_instances_are_not_taken_for_the_usual_one() {
        // As in a merge sort: in each pass half as many instances of twice as many rounds, and as many samples.
        let pass = |pass: i32| {
            let rounds = 2f64.powi(pass);
            (0..320).map(move |sample| (f64::from(sample) / 320.0 * rounds).floor())
        };
        let mut positions: Vec<f64> = (1..=20).flat_map(pass).collect();
        positions.sort_by(f64::total_cmp);
        let trip = of_positions(&positions);
        assert!((trip.rounds / 20.0 - 1.0).abs() < 0.1, "{trip:?}");
    }

    #[test]
    fn samples_that_thin_out_give_the_usual_length() {
        // Two instances of 128 rounds for each one of 256: 171 rounds on average.
        let mut positions: Vec<f64> = (0..128).flat_map(|round| [f64::from(round); 3]).collect();
        positions.extend((128..256).map(f64::from));
        let trip = of_positions(&positions);
        assert!((trip.rounds / 171.0 - 1.0).abs() < trip.relative_error, "{trip:?}");
    }

    #[test]
    fn both_ends_of_an_instance_tell_its_rounds_whatever_first_rounds_take() {
        // Instances of 8 rounds of which the first takes as long as all others, seen at each place.
        let samples: Vec<_> = (0..100).map(|sample| (Some(f64::from(sample % 14 - 7).max(0.0)), 8.0)).collect();
        let told = |rounds: Option<f64>| rounds.map(|rounds| Instance { rounds, per_round: 1.0 });
        let samples: Vec<_> = samples.into_iter().map(|(position, rounds)| (position, told(Some(rounds)))).collect();
        assert!((later_rounds(&samples).unwrap().rounds - 8.0).abs() < 1e-9);
        let mut positions: Vec<f64> = samples.iter().map(|sample| sample.0.unwrap()).collect();
        positions.sort_by(f64::total_cmp);
        assert!(of_alike(&positions).is_none(), "places alone do not");
        let unknown: Vec<_> = samples.iter().map(|sample| (sample.0, None)).collect();
        assert!(later_rounds(&unknown).is_none());
    }
}
