//! What samples say of how often blocks ran: so many instructions for each sample, give or take a
//! factor, for time is not instructions.
//!
//! How many they are is told by the clocks, loop by loop where it can be: waiting differs from loop to
//! loop by far more than within one. Samples that waited for memory take no part: waiting takes time
//! and no instructions. Only where a block shows nothing else does the waiting itself tell.

use std::collections::{BTreeMap, BTreeSet};

use index_vec::{IndexSlice, IndexVec, index_vec};

use crate::attribution::Observed;
use crate::frequency::blocks::BlockCounts;
use crate::frequency::counter_deltas::delta::Count;
use crate::frequency::flow_network::Observation;
use tierloom_binary::arch::STACK_POINTER;
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::instruction::{Instruction, Operation};

/// Instructions per ns where nothing in the recording tells, of samples that did not wait for memory. Measured: 6 to 31, in the
/// middle 12, of 16 random programs (development seeds 1 to 16) and seven real ones whose instructions were counted, on an AMD
/// EPYC; more than it can retire in that time, for it does so beside the waits, too. Rounded down, for others are slower.
const INSTRUCTIONS_PER_NS: f64 = 10.0;
/// Time is not instructions: how far samples per instruction differ between blocks, as a factor of e.
/// Assumed, from stalled and unstalled blocks of one loop.
const DENSITY_SPREAD: f64 = 1.0;
/// Fewer samples than this give no density.
const ENOUGH_SAMPLES: f64 = 8.0;
/// Loops differ in instructions per sample by up to this factor from the mean of the run: from a miss
/// per few instructions to four instructions per cycle. Assumed.
const DENSITY_RANGE: f64 = 50.0;
/// A block without samples may be hidden behind the waiting of others. Assumed.
const ABSENCE_SPREAD: f64 = 3.0;
/// Instructions per ns that a loop which waits for no memory executes at the least: a division of 40 cycles at 3 GHz is 13 ns,
/// a locked instruction 10. Assumed, with some room for waits that nobody could attribute.
const SLOWEST: f64 = 0.03;
/// Ratios of blocks that fill less than this share of a sample are not worth knowing well: what is known
/// too well of next to nothing drowns what is known of the rest in rounding.
const LEAST_SIZE: f64 = 1e-3;
/// Where nearly all samples of a block wait for memory, they tell how often it ran all the same: a wait
/// is between one miss of memory alone (100 ns) and what the core's own caches take (.5 ns). Assumed as a
/// middle; single blocks of the workloads on Zen 3, read by hand, waited 3 to 13 ns where they stream and 30
/// to 81 ns where they jump, and of gzip and two random programs, whose data lie near, .5 to 8 ns.
const WAIT_NS: f64 = 30.0;
const WAIT_SPREAD: f64 = 2.0;
/// Steps of the logarithm that one pass may take.
const LONGEST_STEP: f64 = 1.5;

/// A number for each block of a function.
type ByBlock = IndexVec<BlockId, f64>;

/// Samples by block, and how many instructions one of them stands for.
pub(crate) struct Densities {
    /// Those that did not wait for an object.
    free: BTreeMap<FunctionId, ByBlock>,
    /// Those that did.
    waiting: BTreeMap<FunctionId, ByBlock>,
    typical: f64,
    period_ns: f64,
}

impl Densities {
    pub(crate) fn of(observed: &Observed, clocks: &[Count], period_ns: f64) -> Self {
        let free = samples_by_block(observed);
        let typical = typical_density(observed, clocks, &free, period_ns);
        Self { free, waiting: waits_by_block(observed), typical, period_ns }
    }

    /// Functions with samples.
    pub(crate) fn functions(&self) -> impl Iterator<Item = FunctionId> {
        self.free.keys().copied()
    }

    pub(crate) fn is_sampled(&self, id: FunctionId) -> bool {
        self.free.get(&id).is_some_and(|samples| samples.iter().sum::<f64>() >= ENOUGH_SAMPLES)
    }

    /// Executions of each block by its samples alone.
    pub(crate) fn guesses(&self, id: FunctionId, function: &Function) -> ByBlock {
        let samples = self.free.get(&id).into_iter().flatten();
        let guesses = samples.zip(&function.blocks).map(|(samples, block)| samples * self.typical / block.work);
        guesses.chain(std::iter::repeat(0.0)).take(function.blocks.len()).collect()
    }

    /// Those of one function, by the counts of the pass before.
    pub(crate) fn within<'a>(
        &'a self,
        id: FunctionId,
        function: &'a Function,
        clocks: &[&Count],
        before: Option<&'a BlockCounts>,
    ) -> Within<'a> {
        let none = || index_vec![0.0; function.blocks.len()];
        let samples = self.free.get(&id).cloned().unwrap_or_else(none);
        let waits = self.waiting.get(&id).cloned().unwrap_or_else(none);
        let around = self.outermost(function, clocks, &samples, before);
        let densities = function.blocks.indices().map(|block| {
            let outermost = function.loops_around(block).last();
            let usual = outermost.and_then(|outermost| around.get(&outermost)).copied().unwrap_or(self.typical);
            density(function, clocks, &samples, block, usual)
        });
        Within { all: self, function, before, densities: densities.collect(), samples, waits }
    }

    /// Instructions per sample of each outermost loop that a clock anchors, by the pass before: waiting
    /// differs from loop to loop by far more than within one.
    fn outermost(
        &self,
        function: &Function,
        clocks: &[&Count],
        samples: &IndexSlice<BlockId, [f64]>,
        before: Option<&BlockCounts>,
    ) -> BTreeMap<LoopId, f64> {
        let Some(before) = before else { return BTreeMap::new() };
        let anchored = clocks.iter().filter_map(|count| function.loops_around(count.block).last());
        anchored
            .filter_map(|outermost| {
                // Only what clocks count: guesses by this very density would feed themselves.
                let counted = function.loops[outermost].body.iter().filter(|block| before.counted[**block]);
                let (ran, seen) = counted.fold((0.0, 0.0), |sum, block| {
                    let length = function.blocks[*block].work;
                    (sum.0 + before.executions[*block] * length, sum.1 + samples[*block])
                });
                let density = (ran / seen).clamp(self.typical / DENSITY_RANGE, self.typical * DENSITY_RANGE);
                (seen >= ENOUGH_SAMPLES).then_some((outermost, density))
            })
            .collect()
    }
}

/// Samples and densities of one function.
pub(crate) struct Within<'a> {
    all: &'a Densities,
    function: &'a Function,
    before: Option<&'a BlockCounts>,
    densities: ByBlock,
    pub(crate) samples: ByBlock,
    waits: ByBlock,
}

impl Within<'_> {
    fn per_sample(&self, block: BlockId) -> f64 {
        self.densities[block] / self.function.blocks[block].work
    }

    /// About how often a block runs that decides whether a loop of so many rounds does, or 1: it fills little itself.
    pub(crate) fn size(&self, block: BlockId, rounds: f64) -> f64 {
        let guess = || self.samples[block] * self.per_sample(block);
        let known = self.before.map_or_else(guess, |counts| counts.executions[block]);
        known.max(LEAST_SIZE * self.all.typical / rounds)
    }

    /// What the samples of each block say.
    pub(crate) fn observations(&self) -> impl Iterator<Item = (BlockId, Observation)> {
        self.densities.indices().map(|block| {
            let known = self.before.map(|counts| counts.executions[block]);
            let (samples, waits) = (self.samples[block], self.waits[block]);
            let told = if samples < ENOUGH_SAMPLES && waits >= ENOUGH_SAMPLES {
                fit(block, waits, self.all.period_ns / WAIT_NS, known, WAIT_SPREAD)
            } else {
                by_samples(block, samples, self.per_sample(block), known)
            };
            (block, told)
        })
    }
}

/// Samples in each block that did not wait for memory, scaled up to all of its instructions: waiting
/// takes time and no instructions.
fn samples_by_block(observed: &Observed) -> BTreeMap<FunctionId, ByBlock> {
    let mut samples: BTreeMap<FunctionId, ByBlock> = BTreeMap::new();
    for seen in &observed.seen {
        let Some((id, step)) = seen.at else { continue };
        let function = &observed.code.functions[id].function;
        let by_block = samples.entry(id).or_insert_with(|| index_vec![0.0; function.blocks.len()]);
        if seen.waited.is_none() {
            let block = function.block_of(step);
            by_block[block] += unstalled_scale(function, block);
        }
    }
    samples
}

/// Samples in each block that waited for an object.
fn waits_by_block(observed: &Observed) -> BTreeMap<FunctionId, ByBlock> {
    let mut waits: BTreeMap<FunctionId, ByBlock> = BTreeMap::new();
    for seen in observed.seen.iter().filter(|seen| seen.waited.is_some()) {
        let Some((id, step)) = seen.at else { continue };
        let function = &observed.code.functions[id].function;
        waits.entry(id).or_insert_with(|| index_vec![0.0; function.blocks.len()])[function.block_of(step)] += 1.0;
    }
    waits
}

/// All instructions of a block over those that cannot wait for an object: they have no memory operand,
/// or one on the stack.
fn unstalled_scale(function: &Function, block: BlockId) -> f64 {
    let content = &function.blocks[block];
    let on_stack = |one: &&Instruction| one.operands.iter().all(|operand| operand.base == Some(STACK_POINTER));
    let plain: f64 = function.instructions_of(block).iter().filter(on_stack).map(|one| one.work).sum();
    content.work / plain.max(1.0)
}

/// Instructions that one sample stands for: as counted by the machine, else as the clocks say, as far as their loops are
/// all that runs, else the usual rate.
fn typical_density(
    observed: &Observed,
    clocks: &[Count],
    samples: &BTreeMap<FunctionId, ByBlock>,
    period_ns: f64,
) -> f64 {
    let machine: Vec<u64> = observed.seen.iter().map(|seen| seen.instructions).filter(|n| *n > 0).collect();
    if machine.len() * 2 > observed.seen.len() {
        return machine.iter().sum::<u64>() as f64 / machine.len() as f64;
    }
    let (mut total, mut loops) = ((0.0, 0.0), BTreeSet::new());
    for count in clocks {
        let function = &observed.code.functions[count.function].function;
        // Two clocks of a loop tell of the same samples.
        let is_known = !loops.insert((count.function, function.blocks[count.block].inner_loop));
        if is_known || waits_idly(function, count.block) {
            continue;
        }
        if let Some(by_block) = samples.get(&count.function) {
            let (instructions, seen) = round(function, count, by_block);
            total = (total.0 + instructions, total.1 + seen);
        }
    }
    let usual = INSTRUCTIONS_PER_NS * period_ns;
    if total.0 <= 0.0 || total.1 < ENOUGH_SAMPLES {
        return usual;
    }
    // A few counted loops tell little of all other code.
    let share = (total.1 / samples.values().flatten().sum::<f64>()).min(1.0);
    (total.0 / total.1).powf(share) * usual.powf(1.0 - share)
}

/// The clocks whose loops are not slower than any processor: of what did not wait for memory in them the samples say how long
/// it took. One that is set anew unseen between two samples shows a small part of its rounds.
pub(crate) fn plausible(observed: &Observed, clocks: &[Count], period_ns: f64) -> Vec<Count> {
    let samples = samples_by_block(observed);
    let is_plausible = |count: &&Count| {
        let function = &observed.code.functions[count.function].function;
        let (instructions, seen) = samples.get(&count.function).map_or((0.0, 0.0), |of| round(function, count, of));
        seen < ENOUGH_SAMPLES || waits_idly(function, count.block) || instructions > SLOWEST * seen * period_ns
    };
    clocks.iter().filter(is_plausible).cloned().collect()
}

/// Whether a block's loop only waits for another thread: `pause` takes 40 to 140 cycles, so its pace is no
/// measure of what works.
fn waits_idly(function: &Function, block: BlockId) -> bool {
    let inside = function.blocks[block].inner_loop.map_or(&[][..], |inside| &function.loops[inside].body);
    let mut body = inside.iter().flat_map(|block| function.instructions_of(*block));
    body.any(|instruction| instruction.operation == Operation::Pause)
}

/// Instructions and samples of the blocks that run as often as the counted one.
fn round(function: &Function, count: &Count, samples: &IndexSlice<BlockId, [f64]>) -> (f64, f64) {
    let Some(inside) = function.blocks[count.block].inner_loop else { return (0.0, 0.0) };
    if !function.once_per_round(inside, count.block) {
        return (0.0, 0.0);
    }
    let together = function.loops[inside].body.iter().filter(|block| function.once_per_round(inside, **block));
    let (length, seen) = together.fold((0.0, 0.0), |sum, block| {
        (sum.0 + function.blocks[*block].work, sum.1 + samples.get(*block).copied().unwrap_or(0.0))
    });
    (count.executions * length, seen)
}

/// Instructions per sample near a block: of the innermost loop around it that a clock counts.
fn density(
    function: &Function,
    clocks: &[&Count],
    samples: &IndexSlice<BlockId, [f64]>,
    block: BlockId,
    typical: f64,
) -> f64 {
    for around in function.loops_around(block) {
        for count in clocks.iter().filter(|count| function.blocks[count.block].inner_loop == Some(around)) {
            let (instructions, seen) = round(function, count, samples);
            if seen >= ENOUGH_SAMPLES && instructions > 0.0 {
                return instructions / seen;
            }
        }
    }
    typical
}

/// What the samples of a block say about its executions: as many as their instructions fill, give or
/// take a factor. The factor makes it a matter of logarithms, which are taken around the pass before.
fn by_samples(block: BlockId, samples: f64, per_sample: f64, before: Option<f64>) -> Observation {
    if samples <= 0.0 {
        // Improbable in proportion to the samples that should have been there, not to their square.
        let known = before.unwrap_or(0.0).max(per_sample);
        return Observation::block(block, 0.0, ABSENCE_SPREAD * (per_sample * known).sqrt());
    }
    fit(block, samples, per_sample, before, DENSITY_SPREAD)
}

/// So many executions for each of these samples, give or take a factor of e to the `spread`.
fn fit(block: BlockId, samples: f64, per_sample: f64, before: Option<f64>, spread: f64) -> Observation {
    let value = samples * per_sample;
    let known = before.unwrap_or(value).max(1e-3 * per_sample);
    let (value, deviation) = by_factor(value, known, (spread * spread + 1.0 / samples).sqrt());
    Observation::block(block, value, deviation)
}

/// A value that may be off by a factor of e to the `spread`, and its deviation, near what is known so far.
pub(crate) fn by_factor(value: f64, known: f64, spread: f64) -> (f64, f64) {
    let whole = (value / known).ln();
    let step = whole.clamp(-LONGEST_STEP, LONGEST_STEP);
    // A step cut short pulls as hard as the whole one would.
    let slope = if whole.abs() < 1e-9 { 1.0 } else { step.exp_m1() / whole };
    (known * step.exp(), known * spread * slope.sqrt())
}
