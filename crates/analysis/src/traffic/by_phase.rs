//! What of a run's accesses was done in which phase.

use std::collections::BTreeMap;

use crate::address_space::Place;
use crate::address_space::objects::ObjectId;
use crate::attribution::{Observed, OperandId};
use crate::frequency::Counts;
use crate::traffic::accesses::OperandAccesses;
use crate::traffic::address_stream::AddressStream;
use crate::traffic::cache_filter::Miss;
use crate::traffic::element_width::operand;
use crate::traffic::row::{Row, Traffic};

/// Shares of a row's accesses, a phase after the other; each adds up to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PhaseShares {
    pub(crate) reads: Vec<f64>,
    pub(crate) writes: Vec<f64>,
    pub(crate) touches: Vec<f64>,
}

/// Phase of each sample, given where the phases begin.
fn phase_of(beginnings: &[usize], samples: usize) -> Vec<usize> {
    (0..samples).map(|at| beginnings.partition_point(|first| *first <= at) - 1).collect()
}

/// By row, what each phase has of it.
pub(crate) fn phase_shares(
    observed: &Observed,
    counts: &Counts,
    tallies: &[OperandAccesses],
    shapes: &BTreeMap<OperandId, AddressStream>,
    beginnings: &[usize],
) -> BTreeMap<Row, PhaseShares> {
    let phases = beginnings.len();
    let mut weights: BTreeMap<Row, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (tally, shares) in tallies.iter().zip(shares(observed, counts, tallies, beginnings)) {
        let content = operand(observed, tally.operand);
        let row = (tally.object, shapes[&tally.operand].pattern);
        let (reads, writes) = weights.entry(row).or_insert_with(|| (vec![0.0; phases], vec![0.0; phases]));
        let bytes = tally.executions * f64::from(content.bytes);
        for (phase, share) in shares.iter().enumerate() {
            reads[phase] += if content.read { bytes * share } else { 0.0 };
            writes[phase] += if content.write { bytes * share } else { 0.0 };
        }
    }
    let of_row = |(reads, writes): (Vec<f64>, Vec<f64>)| {
        let touches: Vec<f64> = reads.iter().zip(&writes).map(|(read, write)| read + write).collect();
        PhaseShares { reads: normalised(&reads), writes: normalised(&writes), touches: normalised(&touches) }
    };
    weights.into_iter().map(|(row, weights)| (row, of_row(weights))).collect()
}

/// The rows of each phase; what they add up to is what the whole run did. `misses` has what touches found, by phase.
pub(crate) fn split(
    rows: &BTreeMap<Row, Traffic>,
    shares: &BTreeMap<Row, PhaseShares>,
    misses: &BTreeMap<Row, Vec<Miss>>,
    phases: usize,
) -> Vec<BTreeMap<Row, Traffic>> {
    let mut split = vec![BTreeMap::new(); phases];
    for (key, row) in rows {
        let Some(PhaseShares { reads, writes, touches }) = shares.get(key) else { continue };
        let missed: Option<Vec<f64>> = misses
            .get(key)
            .map(|misses| misses.iter().zip(touches).map(|(miss, share)| miss.fetched * share).collect());
        let fetched = missed.map_or_else(|| touches.clone(), |missed| normalised(&missed));
        for (phase, rows) in split.iter_mut().enumerate() {
            let mut part = row.part(reads[phase], writes[phase], touches[phase], fetched[phase]);
            if let Some(miss) = misses.get(key).map(|misses| misses[phase]).filter(|miss| miss.fetched > 0.0) {
                part.waited = part.miss * miss.waited / miss.fetched;
            }
            rows.insert(*key, part);
        }
    }
    split
}

/// What each phase has of the executions of an operand on an object: shares that add up to 1.
///
/// An operand shows in samples where it runs, weighted by the executions that each sample stands for.
fn shares(observed: &Observed, counts: &Counts, tallies: &[OperandAccesses], beginnings: &[usize]) -> Vec<Vec<f64>> {
    let phases = beginnings.len();
    let phase_of = phase_of(beginnings, observed.seen.len());
    let mut seen: BTreeMap<(OperandId, ObjectId), Vec<f64>> =
        tallies.iter().map(|tally| ((tally.operand, tally.object), vec![0.0; phases])).collect();
    for operand_address in &observed.operand_addresses {
        let Place::Object(object, _) = operand_address.place else { continue };
        let Some(weights) = seen.get_mut(&(operand_address.id(), object)) else { continue };
        let function = &observed.code.functions[operand_address.function].function;
        let mut around = function.loops_around(function.block_of(operand_address.instruction));
        let clock = around.find_map(|around| counts.by_loop.get(&(operand_address.function, around)));
        let mean = clock.map_or(1.0, |count| count.executions / count.visible.max(1) as f64);
        let weight = clock.and_then(|count| count.by_sample.get(&operand_address.seen)).copied().unwrap_or(mean);
        weights[phase_of[operand_address.seen]] += weight;
    }
    tallies.iter().map(|tally| normalised(&seen[&(tally.operand, tally.object)])).collect()
}

/// Shares of a whole; equal ones where nothing says otherwise.
fn normalised(weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let even = 1.0 / weights.len() as f64;
    weights.iter().map(|weight| if total > 0.0 { weight / total } else { even }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn phases_cover_all_samples(mut beginnings in prop::collection::btree_set(1_usize..1000, 0..6)) {
            beginnings.insert(0);
            let beginnings: Vec<usize> = beginnings.into_iter().collect();
            let of = phase_of(&beginnings, 1000);
            prop_assert!(of.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0] + 1));
            prop_assert_eq!((of[0], of[999]), (0, beginnings.len() - 1));
        }

        #[test]
        fn shares_add_up_to_the_whole(weights in prop::collection::vec(0.0_f64..1e9, 1..9)) {
            prop_assert!((normalised(&weights).iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
