//! How often every block ran: clocks where there are some, samples and flow conservation elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::calls::Run;
use crate::cfg::{BlockId, Function, LoopId};
use crate::code::{FunctionId, Runner};
use crate::flow::{MOST_TOGETHER, Net, Observation, solve};
use crate::heuristics::{branches, outermost};
use crate::instruction::{STACK_POINTER, Step};
use crate::observe::{Observed, Verdict};
use crate::outcomes::{Outcomes, outcomes};
use crate::pairs::{Count, MOST_INSTRUCTIONS_PER_NS};
use crate::trips::Trip;

/// Instructions per ns where nothing in the recording tells: in between memory-bound code (below 1)
/// and compute-bound code (above 6) on server cores of 2020 to 2025. Assumed.
const INSTRUCTIONS_PER_NS: f64 = 2.0;

/// Executions of every block of a function.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockCounts {
    pub(crate) executions: Vec<f64>,
    /// Whether clocks, rounds and calls give the count; else it follows from samples.
    pub(crate) counted: Vec<bool>,
}

impl BlockCounts {
    fn is_same(&self, other: &Self) -> bool {
        self.counted == other.counted
            && self.executions.iter().zip(&other.executions).all(|(left, right)| is_same(*left, *right))
    }
}

/// Counts that differ by less than any source of them does.
fn is_same(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-3 * left.max(right) + 0.5
}

/// Times that callers and callees are told each other's counts: chains of calls are short.
const PASSES: usize = 12;
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
/// A clock that runs backwards in less than this share of the intervals in which one that is set anew
/// would is not set anew. Assumed.
const CARRIED_SHARE: f64 = 0.3;
/// Threads with at least this share of the busiest one's samples belong to the team. Assumed.
const TEAM_SHARE: f64 = 0.05;
/// Ratios of blocks that fill less than this share of a sample are not worth knowing well: what is known
/// too well of next to nothing drowns what is known of the rest in rounding.
const LEAST_SIZE: f64 = 1e-3;
/// How well it is known that a function runs as often as it is called; the rest is for numbers.
const RUNS_ERROR: f64 = 0.001;
/// Where nearly all samples of a block wait for memory, they tell how often it ran all the same: a wait
/// is between one miss of memory alone (100 ns) and a tenth of that, where ten of them overlap. Assumed.
const WAIT_NS: f64 = 30.0;
const WAIT_SPREAD: f64 = 1.2;
/// Steps of the logarithm that one pass may take.
const LONGEST_STEP: f64 = 1.5;

/// Everything about counts that the later steps need.
pub(crate) struct Counts {
    pub(crate) blocks: BTreeMap<FunctionId, BlockCounts>,
    /// Best clock of each loop: the one with most trusted pairs among those that count its blocks.
    pub(crate) by_loop: BTreeMap<(FunctionId, LoopId), Count>,
}

/// Counts the blocks of all functions that have samples or clocks.
pub(crate) fn counts(
    observed: &Observed,
    clocks: &[Count],
    trips: &BTreeMap<(FunctionId, LoopId), Trip>,
    period_ns: f64,
) -> Counts {
    let samples = samples_by_block(observed);
    let clocks: Vec<Count> = clocks.iter().filter(|count| !aliased(observed, count, trips)).cloned().collect();
    let typical = typical_density(observed, &clocks, &samples, period_ns);
    let most = observed.seen.len() as f64 * period_ns * MOST_INSTRUCTIONS_PER_NS;
    let waits = waits_by_block(observed);
    let known = Known {
        waits: &waits,
        period_ns,
        observed,
        clocks: &clocks,
        samples: &samples,
        trips,
        outcomes: outcomes(observed),
        typical,
        most,
        teams: teams(observed),
    };
    let mut functions: Vec<FunctionId> = samples.keys().copied().chain(clocks.iter().map(|c| c.function)).collect();
    functions.extend(observed.roots.runners.keys());
    functions.sort_unstable();
    functions.dedup();
    let nets: BTreeMap<FunctionId, Net> =
        functions.iter().map(|id| (*id, Net::of(&[&observed.code.functions[*id].function]))).collect();
    let together = Together::of(observed, &nets);
    let mut blocks: BTreeMap<FunctionId, BlockCounts> = BTreeMap::new();
    let mut settled: BTreeMap<FunctionId, f64> = BTreeMap::new();
    for pass in 0..PASSES {
        for &id in functions.iter().filter(|id| pass == 0 || !together.members.contains(id)) {
            let entered = known.entered(&blocks, id).map_or(0.0, |(count, _)| count);
            if settled.get(&id).is_some_and(|before| is_same(*before, entered)) {
                continue;
            }
            let counted = known.count(id, &nets[&id], &blocks);
            let before = blocks.insert(id, counted);
            if before.is_some_and(|before| before.is_same(&blocks[&id])) {
                settled.insert(id, entered);
            }
        }
        known.count_together(&together, pass == 0, &mut blocks);
    }
    Counts { blocks, by_loop: best_clocks(observed, &clocks) }
}

/// Functions of which every run is known; they are solved together, so that each tells the others.
struct Together {
    members: Vec<FunctionId>,
    net: Net,
}

impl Together {
    fn of(observed: &Observed, nets: &BTreeMap<FunctionId, Net>) -> Self {
        let mut room = MOST_TOGETHER;
        let fits = |id: &&FunctionId| {
            let needed = nets[*id].circulations();
            let fits = nets[*id].is_small() && needed <= room;
            room -= if fits { needed } else { 0 };
            fits
        };
        let members: Vec<FunctionId> = observed.roots.runners.keys().filter(fits).copied().collect();
        let functions: Vec<&Function> = members.iter().map(|id| &*observed.code.functions[*id].function).collect();
        let net = Net::of(&functions);
        Self { members, net }
    }

    fn position(&self, id: FunctionId) -> Option<usize> {
        self.members.binary_search(&id).ok()
    }
}

/// Threads that run a parallel region, by module: those that share the work of the module's code.
fn teams(observed: &Observed) -> BTreeMap<usize, f64> {
    let mut samples: BTreeMap<(usize, u32), BTreeMap<usize, usize>> = BTreeMap::new();
    for seen in &observed.seen {
        if let Some((function, _)) = seen.at {
            let place = (observed.code.functions[function].module, observed.threads[seen.thread].0);
            *samples.entry(place).or_default().entry(seen.thread).or_default() += 1;
        }
    }
    let mut teams: BTreeMap<usize, f64> = BTreeMap::new();
    for ((module, _), threads) in samples {
        let most = threads.values().copied().max().unwrap_or(0) as f64;
        let busy = threads.values().filter(|count| **count as f64 >= TEAM_SHARE * most).count();
        let team = teams.entry(module).or_default();
        *team = team.max(busy as f64);
    }
    teams
}

/// A clock that its loop sets anew, read less than about twice per instance of the loop, shows
/// differences of unrelated instances.
fn aliased(observed: &Observed, count: &Count, trips: &BTreeMap<(FunctionId, LoopId), Trip>) -> bool {
    let function = &observed.code.functions[count.function].function;
    let Some(inside) = function.blocks[count.block].inner_loop else { return false };
    let mean = count.executions / count.visible.max(1) as f64;
    let Some(trip) = trips.get(&(count.function, inside)) else { return false };
    // A clock that is set anew runs backwards once an instance, in mean / rounds of the intervals, or
    // in half of them if instances are shorter. One that does so far less carries over from instance
    // to instance: the address in an array that a loop continues where the call before left off.
    let carries_over = count.backward < CARRIED_SHARE * (mean / trip.rounds).min(0.5);
    let reset = count.backward > 0.05 && !carries_over;
    reset && (mean > 0.4 * trip.rounds || count.backward > 3.0 * mean / trip.rounds + 0.05)
}

fn best_clocks(observed: &Observed, clocks: &[Count]) -> BTreeMap<(FunctionId, LoopId), Count> {
    let mut best: BTreeMap<(FunctionId, LoopId), Count> = BTreeMap::new();
    for count in clocks {
        let function = &observed.code.functions[count.function].function;
        let Some(inside) = function.blocks[count.block].inner_loop else { continue };
        let known = best.entry((count.function, inside)).or_insert_with(|| count.clone());
        if count.trusted > known.trusted {
            *known = count.clone();
        }
    }
    best
}

/// Samples in each block that did not wait for memory, scaled up to all of its instructions: waiting
/// takes time and no instructions.
fn samples_by_block(observed: &Observed) -> BTreeMap<FunctionId, Vec<f64>> {
    let mut samples: BTreeMap<FunctionId, Vec<f64>> = BTreeMap::new();
    for seen in &observed.seen {
        let Some((id, step)) = seen.at else { continue };
        let function = &observed.code.functions[id].function;
        let by_block = samples.entry(id).or_insert_with(|| vec![0.0; function.blocks.len()]);
        if !matches!(seen.verdict, Verdict::Object { .. }) {
            let block = function.block_of(step);
            by_block[block] += unstalled_scale(function, block);
        }
    }
    samples
}

/// Samples in each block that waited for an object.
fn waits_by_block(observed: &Observed) -> BTreeMap<FunctionId, Vec<f64>> {
    let mut waits: BTreeMap<FunctionId, Vec<f64>> = BTreeMap::new();
    for seen in observed.seen.iter().filter(|seen| matches!(seen.verdict, Verdict::Object { .. })) {
        let Some((id, step)) = seen.at else { continue };
        let function = &observed.code.functions[id].function;
        waits.entry(id).or_insert_with(|| vec![0.0; function.blocks.len()])[function.block_of(step)] += 1.0;
    }
    waits
}

/// All instructions of a block over those that cannot wait for an object: they have no memory operand,
/// or one on the stack.
fn unstalled_scale(function: &Function, block: BlockId) -> f64 {
    let content = &function.blocks[block];
    let on_stack = |step: &&Step| step.operands.iter().all(|operand| operand.base == Some(STACK_POINTER));
    let plain: f64 = function.steps[content.first..content.end].iter().filter(on_stack).map(Step::work).sum();
    content.work / plain.max(1.0)
}

/// Instructions that one sample stands for: as counted by the machine, else as the clocks say, else
/// the assumed rate.
fn typical_density(
    observed: &Observed,
    clocks: &[Count],
    samples: &BTreeMap<FunctionId, Vec<f64>>,
    period_ns: f64,
) -> f64 {
    let machine: Vec<u64> = observed.seen.iter().map(|seen| seen.instructions).filter(|n| *n > 0).collect();
    if machine.len() * 2 > observed.seen.len() {
        return machine.iter().sum::<u64>() as f64 / machine.len() as f64;
    }
    let mut total = (0.0, 0.0);
    for count in clocks {
        let function = &observed.code.functions[count.function].function;
        if let Some(by_block) = samples.get(&count.function) {
            let (instructions, seen) = round(function, count, by_block);
            total = (total.0 + instructions, total.1 + seen);
        }
    }
    if total.0 > 0.0 && total.1 > 0.0 { total.0 / total.1 } else { INSTRUCTIONS_PER_NS * period_ns }
}

/// Instructions and samples of the blocks that run as often as the counted one.
fn round(function: &Function, count: &Count, samples: &[f64]) -> (f64, f64) {
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

/// What is known of all functions before they are solved.
struct Known<'a> {
    observed: &'a Observed,
    clocks: &'a [Count],
    samples: &'a BTreeMap<FunctionId, Vec<f64>>,
    /// Samples in each block that waited for an object.
    waits: &'a BTreeMap<FunctionId, Vec<f64>>,
    period_ns: f64,
    trips: &'a BTreeMap<(FunctionId, LoopId), Trip>,
    outcomes: Outcomes,
    typical: f64,
    /// Instructions that the whole run can have executed.
    most: f64,
    teams: BTreeMap<usize, f64>,
}

/// Results so far.
type Blocks = BTreeMap<FunctionId, BlockCounts>;

impl Known<'_> {
    /// Counts a function by itself.
    fn count(&self, id: FunctionId, net: &Net, blocks: &Blocks) -> BlockCounts {
        let function = &self.observed.code.functions[id].function;
        let before = blocks.get(&id);
        let clocked = self.clocks_of(id).next().is_some();
        let entered = self.entered(blocks, id).filter(|(_, error)| *error < 0.1 || !clocked);
        let mut observations = self.observations(id, before);
        observations.extend(entered.map(|(count, error)| {
            // Two guesses are off by a share of the larger one.
            let own = before.filter(|_| error > 0.1).map_or(0.0, |counts| counts.executions[0]);
            Observation::entered(function, count, error * count.max(own) + 0.5)
        }));
        if entered.is_none() {
            observations.extend(outermost(function, &self.clocks_of(id).collect::<Vec<_>>()));
        }
        let worth = net.is_small() && (clocked || entered.is_some() || self.is_sampled(id));
        let solved = if worth { solve(net, &observations) } else { Vec::new() };
        let finite = worth && solved.iter().all(|count| count.is_finite());
        let executions = if finite { solved } else { self.guesses(id) };
        self.limited(id, executions, blocks)
    }

    /// Counts functions of which every run is known, all at once. At `first` nothing is known yet of
    /// those with few samples: what the others ask of them decides, not guesses about branches.
    fn count_together(&self, together: &Together, first: bool, blocks: &mut Blocks) {
        let mut observations = Vec::new();
        for (position, &id) in together.members.iter().enumerate() {
            let silent = first && !self.is_sampled(id);
            let own = if silent { self.hard(id) } else { self.observations(id, blocks.get(&id)) };
            observations.extend(own.into_iter().map(|observation| observation.within(&together.net, position)));
            observations.extend(self.runs(together, position, blocks));
        }
        let solved = solve(&together.net, &observations);
        if solved.iter().any(|count| !count.is_finite()) {
            return;
        }
        for (position, &id) in together.members.iter().enumerate() {
            let own = together.net.own(position, &solved).to_vec();
            blocks.insert(id, self.limited(id, own, blocks));
        }
    }

    /// A function is entered as often as the places that run it are passed.
    fn runs(&self, together: &Together, position: usize, blocks: &Blocks) -> Option<Observation> {
        let id = together.members[position];
        let placed = &self.observed.code.functions[id];
        let runners = &self.observed.roots.runners[&id];
        if runners.is_empty() {
            let started = self.observed.images.get(&placed.module).map_or(0, BTreeSet::len);
            let entered = Observation::entered(&placed.function, started as f64, RUNS_ERROR);
            return Some(entered.within(&together.net, position));
        }
        let mut runs = Observation::entered(&placed.function, 0.0, 0.0).within(&together.net, position);
        let mut size = blocks.get(&id).map_or(0.0, |counts| counts.executions[0]);
        for runner in runners {
            let caller = together.position(runner.function)?;
            let block = self.observed.code.functions[runner.function].function.block_of(runner.step);
            let times = self.times(runner);
            runs.blocks.push((together.net.block(caller, block), -times));
            size = size.max(blocks.get(&runner.function).map_or(0.0, |counts| times * counts.executions[block]));
        }
        Some(Observation { deviation: RUNS_ERROR * size.max(1.0), ..runs })
    }

    /// Runs of a function for each time its runner is passed.
    fn times(&self, runner: &Runner) -> f64 {
        let module = self.observed.code.functions[runner.function].module;
        if runner.run == Run::Team { self.teams.get(&module).copied().unwrap_or(1.0).max(1.0) } else { 1.0 }
    }

    /// How often a function was run, with the relative error: small if all that run it lies in blocks
    /// with known counts.
    fn entered(&self, blocks: &Blocks, id: FunctionId) -> Option<(f64, f64)> {
        if let Some(runners) = self.observed.roots.runners.get(&id) {
            if runners.is_empty() {
                let module = self.observed.code.functions[id].module;
                return self.observed.images.get(&module).map(|started| (started.len() as f64, RUNS_ERROR));
            }
            let places = runners.iter().map(|runner| (runner.function, runner.step, self.times(runner)));
            return self.passed(blocks, id, places);
        }
        let calls = self.observed.calls.get(&id).filter(|calls| !calls.is_empty())?;
        self.passed(blocks, id, calls.iter().map(|(caller, step)| (*caller, *step, 1.0)))
    }

    fn passed(
        &self,
        blocks: &Blocks,
        id: FunctionId,
        places: impl Iterator<Item = (FunctionId, usize, f64)>,
    ) -> Option<(f64, f64)> {
        let (mut sum, mut sure) = (0.0, true);
        for (caller, step, times) in places {
            // A caller without samples or clocks ran next to never.
            let Some(counts) = blocks.get(&caller) else { continue };
            let block = self.observed.code.functions[caller].function.block_of(step);
            if caller == id {
                return None;
            }
            sure &= counts.counted[block];
            sum += times * counts.executions[block];
        }
        (sum > 0.0).then_some((sum, if sure { 0.01 } else { 0.5 }))
    }

    fn clocks_of(&self, id: FunctionId) -> impl Iterator<Item = &Count> {
        self.clocks.iter().filter(move |count| count.function == id)
    }

    fn is_sampled(&self, id: FunctionId) -> bool {
        self.samples.get(&id).is_some_and(|samples| samples.iter().sum::<f64>() >= ENOUGH_SAMPLES)
    }

    /// Executions of each block by its samples alone.
    fn guesses(&self, id: FunctionId) -> Vec<f64> {
        let function = &self.observed.code.functions[id].function;
        let samples = self.samples.get(&id).map_or(&[][..], Vec::as_slice).iter();
        let guesses = samples.zip(&function.blocks).map(|(samples, block)| samples * self.typical / block.work);
        guesses.chain(std::iter::repeat(0.0)).take(function.blocks.len()).collect()
    }

    fn limited(&self, id: FunctionId, mut executions: Vec<f64>, blocks: &Blocks) -> BlockCounts {
        let function = &self.observed.code.functions[id].function;
        executions.truncate(function.blocks.len());
        // Calls in circles would feed each other without end.
        for (count, block) in executions.iter_mut().zip(&function.blocks) {
            *count = count.min(self.most / block.len().max(1) as f64);
        }
        let entered = self.entered(blocks, id).is_some_and(|(_, error)| error < 0.1);
        let clocks: Vec<&Count> = self.clocks_of(id).collect();
        BlockCounts { executions, counted: self.counted(id, function, &clocks, entered) }
    }

    /// What clocks show of a function.
    fn hard(&self, id: FunctionId) -> Vec<Observation> {
        by_clocks(&self.clocks_of(id).collect::<Vec<_>>())
    }

    /// Everything known of a function but how often it is entered.
    fn observations(&self, id: FunctionId, before: Option<&BlockCounts>) -> Vec<Observation> {
        let function = &self.observed.code.functions[id].function;
        let clocks: Vec<&Count> = self.clocks_of(id).collect();
        let none = vec![0.0; function.blocks.len()];
        let samples = self.samples.get(&id).unwrap_or(&none);
        let mut observations = by_clocks(&clocks);
        let around = self.outermost_densities(function, &clocks, samples, before);
        let densities: Vec<f64> = (0..function.blocks.len())
            .map(|block| {
                let outermost = function.loops_around(block).last();
                let usual = outermost.and_then(|outermost| around.get(&outermost)).copied().unwrap_or(self.typical);
                density(function, &clocks, samples, block, usual)
            })
            .collect();
        let guess = |block: BlockId| samples[block] * densities[block] / function.blocks[block].work;
        let size = |block: BlockId| {
            let known = before.map_or_else(|| guess(block), |counts| counts.executions[block]);
            known.max(LEAST_SIZE * self.typical)
        };
        for (inside, trip) in self.trips_of(id) {
            let deviation = trip.relative_error * size(function.loops[inside].header);
            observations.push(Observation::rounds(function, inside, trip.rounds, deviation));
        }
        let waits = self.waits.get(&id).unwrap_or(&none);
        for (block, density) in densities.iter().enumerate() {
            let per_sample = density / function.blocks[block].work;
            let known = before.map(|counts| counts.executions[block]);
            observations.push(if samples[block] < ENOUGH_SAMPLES && waits[block] >= ENOUGH_SAMPLES {
                fit(block, waits[block], self.period_ns / WAIT_NS, known, WAIT_SPREAD)
            } else {
                by_samples(block, samples[block], per_sample, known)
            });
        }
        observations.extend(branches(function, size, samples, self.trips, &self.outcomes, id));
        observations
    }

    /// Instructions per sample of each outermost loop that a clock anchors, by the pass before: waiting
    /// differs from loop to loop by far more than within one.
    fn outermost_densities(
        &self,
        function: &Function,
        clocks: &[&Count],
        samples: &[f64],
        before: Option<&BlockCounts>,
    ) -> BTreeMap<LoopId, f64> {
        let Some(before) = before else { return BTreeMap::new() };
        let anchored = clocks.iter().filter_map(|count| function.loops_around(count.block).last());
        anchored
            .filter_map(|outermost| {
                let (ran, seen) = function.loops[outermost].body.iter().fold((0.0, 0.0), |sum, block| {
                    let length = function.blocks[*block].work;
                    (sum.0 + before.executions[*block] * length, sum.1 + samples[*block])
                });
                let density = (ran / seen).clamp(self.typical / DENSITY_RANGE, self.typical * DENSITY_RANGE);
                (seen >= ENOUGH_SAMPLES).then_some((outermost, density))
            })
            .collect()
    }

    fn trips_of(&self, id: FunctionId) -> impl Iterator<Item = (LoopId, &Trip)> {
        self.trips.range((id, 0)..(id + 1, 0)).map(|((_, inside), trip)| (*inside, trip))
    }

    /// A loop is counted by a clock, or by its rounds if what is around it is counted.
    fn counted(&self, id: FunctionId, function: &Function, clocks: &[&Count], entered: bool) -> Vec<bool> {
        let hard = |around: LoopId| clocks.iter().any(|c| function.blocks[c.block].inner_loop == Some(around));
        let counted = |block: BlockId| {
            let mut within = block;
            for around in function.loops_around(block) {
                if clocks.iter().any(|count| count.block == within) {
                    return true;
                }
                let latches = &function.loops[around].latches;
                if !latches.iter().all(|latch| function.dominates(within, *latch)) {
                    return false;
                }
                if hard(around) {
                    return true;
                }
                if !self.trips.contains_key(&(id, around)) {
                    return false;
                }
                within = function.loops[around].header;
            }
            entered
                && function
                    .blocks
                    .iter()
                    .enumerate()
                    .all(|(end, b)| !b.successors.is_empty() || function.dominates(within, end))
        };
        (0..function.blocks.len()).map(counted).collect()
    }
}

/// One clock for each block. Addresses that run on from one instance of a loop to the next may skip
/// memory in between and then show too much, never too little: of clocks that are about equally good
/// the one that shows least is right.
fn by_clocks(clocks: &[&Count]) -> Vec<Observation> {
    let mut by_block: BTreeMap<BlockId, Vec<&Count>> = BTreeMap::new();
    for count in clocks {
        by_block.entry(count.block).or_default().push(count);
    }
    let mut observations: Vec<Observation> = Vec::new();
    for (block, all) in by_block {
        let most = all.iter().map(|count| count.trusted).max().unwrap_or(0);
        let good = all.iter().filter(|count| 10 * count.trusted >= 7 * most);
        if let Some(least) = good.min_by(|left, right| left.executions.total_cmp(&right.executions)) {
            let deviation = least.relative_error * least.executions + 0.5;
            observations.push(Observation::block(block, least.executions, deviation));
        }
    }
    observations
}

/// Instructions per sample near a block: of the innermost loop around it that a clock counts.
fn density(function: &Function, clocks: &[&Count], samples: &[f64], block: BlockId, typical: f64) -> f64 {
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
    let whole = (value / known).ln();
    let step = whole.clamp(-LONGEST_STEP, LONGEST_STEP);
    let spread = (spread * spread + 1.0 / samples).sqrt();
    // A step cut short pulls as hard as the whole one would.
    let slope = if whole.abs() < 1e-9 { 1.0 } else { step.exp_m1() / whole };
    Observation::block(block, known * step.exp(), known * spread * slope.sqrt())
}
