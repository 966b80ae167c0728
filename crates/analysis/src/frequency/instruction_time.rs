//! How long an instruction took, loop by loop: the time that samples show in it, for each instruction that it is said to have
//! run; a string instruction runs once a round. Code takes between a tenth of a nanosecond and a few, so this tells how far a
//! count can be off.

use std::collections::BTreeMap;

use tierloom_binary::cfg::{BlockId, LoopId};
use tierloom_binary::code::FunctionId;

use crate::attribution::{Observed, OperandId};
use crate::frequency::Counts;

/// A loop without those in it, or what a function has outside of loops.
type Region = (FunctionId, Option<LoopId>);

/// Samples of a region that has none: what takes less time than half of one is rarely seen. Assumed.
const UNSEEN_SAMPLES: f64 = 0.5;

/// By region.
pub(crate) struct InstructionTimes {
    samples: BTreeMap<Region, f64>,
    instructions: BTreeMap<Region, f64>,
    sample_ns: f64,
}

impl InstructionTimes {
    /// `rounds` gives the rounds of a string instruction that is executed so often.
    pub(crate) fn of(
        observed: &Observed,
        counts: &Counts,
        rounds: impl Fn(OperandId, f64) -> f64,
        sample_ns: f64,
    ) -> Self {
        let mut samples: BTreeMap<Region, f64> = BTreeMap::new();
        for (id, step) in observed.seen.iter().filter_map(|seen| seen.at) {
            let block = observed.code.functions[id].function.block_of(step);
            *samples.entry(region(observed, id, block)).or_default() += 1.0;
        }
        let mut instructions: BTreeMap<Region, f64> = BTreeMap::new();
        for (&id, blocks) in &counts.blocks {
            for (block, content) in observed.code.functions[id].function.blocks.iter_enumerated() {
                let executions = blocks.executions[block];
                let ran = (content.first..content.end).map(|instruction| {
                    let content = &observed.code.functions[id].function.instructions[instruction];
                    let repeated = content.operands.iter().position(|operand| operand.repeats.is_some());
                    let operand = repeated.map(|operand| OperandId { function: id, instruction, operand });
                    operand.map_or(executions, |operand| rounds(operand, executions))
                });
                *instructions.entry(region(observed, id, block)).or_default() += ran.sum::<f64>();
            }
        }
        Self { samples, instructions, sample_ns }
    }

    /// ns that an instruction near this one took.
    pub(crate) fn near(&self, observed: &Observed, id: FunctionId, instruction: usize) -> f64 {
        self.within(region(observed, id, observed.code.functions[id].function.block_of(instruction)))
    }

    fn within(&self, region: Region) -> f64 {
        let samples = self.samples.get(&region).copied().unwrap_or(UNSEEN_SAMPLES);
        samples * self.sample_ns / self.instructions.get(&region).copied().unwrap_or(0.0).max(1.0)
    }
}

fn region(observed: &Observed, id: FunctionId, block: BlockId) -> Region {
    (id, observed.code.functions[id].function.blocks[block].inner_loop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shared_by_the_instructions_of_a_region() {
        let [seen, unseen, idle] = [1, 2, 3].map(|function| (FunctionId::new(function), None));
        let times = InstructionTimes {
            samples: BTreeMap::from([(seen, 4.0)]),
            instructions: BTreeMap::from([(seen, 8e6), (unseen, 1e6)]),
            sample_ns: 1e6,
        };
        assert!((times.within(seen) - 0.5).abs() < 1e-12);
        assert!((times.within(unseen) - 0.5).abs() < 1e-12, "at most about half a sample's time");
        assert!(times.within(idle).is_finite());
    }
}
