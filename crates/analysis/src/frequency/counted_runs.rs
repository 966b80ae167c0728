//! Executions that were counted in another run take the place of estimates; and whether that run can have been like this one.

use std::collections::BTreeMap;

use index_vec::IndexVec;
use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::FunctionId;
use tierloom_model::CountSource;
use tierloom_recording::Processor;

use crate::attribution::Observed;
use crate::frequency::Counts;
use crate::frequency::blocks::{BlockCounts, GUESSED};

/// No instruction of a program takes longer in the mean of a function, ns: a miss to memory behind a switch takes less, and
/// whoever waits for memory runs others beside. Assumed.
const LONGEST_NS: f64 = 1000.0;
/// Fewer samples than this tell nothing of the time in a function. Assumed.
const ENOUGH_SAMPLES: f64 = 20.0;

/// Puts what was counted in the place of what was estimated. Of functions in which the two runs differ it is the other
/// run's, and so no more than an estimate of this one.
pub(crate) fn replace(observed: &Observed, differing: &[FunctionId], counts: &mut Counts) {
    for (&id, blocks) in &observed.counted.functions {
        let function = &observed.code.functions[id].function;
        let executions = |block: BlockId| blocks.get(&block).copied().unwrap_or(0.0);
        let executions: IndexVec<BlockId, f64> = function.blocks.indices().map(executions).collect();
        let counted = function.blocks.iter().map(|_| true).collect();
        let (source, relative) =
            if differing.contains(&id) { (CountSource::Estimated, GUESSED) } else { (CountSource::Counted, 0.0) };
        let deviations = executions.iter().map(|executions| relative * executions).collect();
        counts.blocks.insert(id, BlockCounts { executions, counted, deviations, source });
    }
}

/// Functions for whose executions this run had no time, or far too much: the two runs differ. Longest first.
pub(crate) fn differing(observed: &Observed, sample_ns: f64, processor: &Processor) -> Vec<FunctionId> {
    let most_per_ns = processor.most_instructions_per_ns();
    let mut samples: BTreeMap<FunctionId, f64> = BTreeMap::new();
    for (id, _) in observed.seen.iter().filter_map(|seen| seen.at) {
        *samples.entry(id).or_default() += 1.0;
    }
    let seen = |id: &FunctionId| samples.get(id).copied().unwrap_or(0.0);
    let lacking = samples.keys().filter(|id| observed.counted.lacks(observed.code.functions[**id].module, **id));
    let lacking = lacking.copied().filter(|id| seen(id) >= ENOUGH_SAMPLES);
    let impossible = |id: &FunctionId| {
        let (instructions, rounds) = (instructions(observed, *id), rounds(observed, *id));
        !is_possible(instructions, rounds, seen(id), sample_ns, most_per_ns)
    };
    let counted = observed.counted.functions.keys().copied().filter(impossible);
    let mut all: Vec<FunctionId> = lacking.chain(counted).collect();
    all.sort_by(|left, right| seen(right).total_cmp(&seen(left)).then(left.cmp(right)));
    all
}

fn instructions(observed: &Observed, id: FunctionId) -> f64 {
    let function = &observed.code.functions[id].function;
    let blocks = &observed.counted.functions[&id];
    blocks.iter().map(|(block, executions)| executions * function.blocks[*block].len() as f64).sum()
}

/// Rounds of string instructions, which are no instructions: a processor does many at once.
fn rounds(observed: &Observed, id: FunctionId) -> f64 {
    observed.counted.rounds.range((id, 0)..(id + 1, 0)).map(|(_, rounds)| rounds).sum()
}

/// Whether so many instructions, and so many rounds of string instructions, can take the time of so many samples.
fn is_possible(instructions: f64, rounds: f64, samples: f64, sample_ns: f64, most_per_ns: f64) -> bool {
    // Upper end of a Poisson count's 95 % interval.
    let most_ns = 2.0f64.mul_add(samples.sqrt(), samples + 3.0) * sample_ns;
    let too_slow = samples >= ENOUGH_SAMPLES && samples * sample_ns > LONGEST_NS * (instructions + rounds);
    instructions <= most_ns * most_per_ns && !too_slow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_take_some_time_and_not_for_ever() {
        const MS: f64 = 1e6;
        let is_possible = |instructions, samples, ns| is_possible(instructions, 0.0, samples, ns, 20.0);
        assert!(is_possible(1e9, 300.0, MS), "0.3 ns each");
        assert!(!is_possible(1e11, 300.0, MS), "3 ps each");
        assert!(!is_possible(1e5, 300.0, MS), "3 us each");
        assert!(is_possible(10.0, 5.0, MS), "too few samples to tell");
        assert!(!is_possible(1e9, 0.0, MS), "a second of work leaves samples");
    }

    #[test]
    fn a_string_instruction_takes_the_time_of_its_rounds_and_is_no_faster_than_they() {
        // `memset` of 256 MiB: a dozen instructions, one of them in a round a byte.
        let filled = |rounds, samples| is_possible(12.0, rounds, samples, 1e6, 20.0);
        assert!(filled(2.7e8, 80.0), "a byte in 0.3 ns");
        assert!(filled(2.7e8, 4.0), "64 bytes a ns");
        assert!(!filled(100.0, 80.0), "0.7 ms a byte");
    }
}
