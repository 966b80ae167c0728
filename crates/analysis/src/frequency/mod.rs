//! How often every block ran: clocks where there are some, samples and flow conservation elsewhere.
//!
//! `evidence` says which clocks to believe, `call_counts` how often functions are run, `sampling` what
//! samples say, `heuristics` what is likely; here functions are solved with all that (`flow_network`), and
//! tell each other, until nothing changes.

pub(crate) mod blocks;
pub(crate) mod branches;
pub(crate) mod call_counts;
pub(crate) mod counted_branches;
pub(crate) mod counted_runs;
pub(crate) mod counter_deltas;
pub(crate) mod evidence;
pub(crate) mod flow_network;
mod instances;
pub(crate) mod instruction_time;
#[cfg(test)]
pub(crate) mod nest;
pub(crate) mod normal_equations;
mod pace;
pub(crate) mod renewal;
pub(crate) mod sampling;
pub(crate) mod short_instances;
pub(crate) mod strata;
pub(crate) mod trip_count;
pub(crate) mod warm_ups;
pub(crate) mod windows;

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::Observed;
use crate::frequency::blocks::{BlockCounts, Blocks, GUESSED, is_same};
use crate::frequency::branches::ahead::seen_ahead;
use crate::frequency::branches::entry::by_arguments;
use crate::frequency::branches::heuristics::{branches, outermost};
use crate::frequency::branches::invariant::settled;
use crate::frequency::branches::{BranchTable, outcomes};
use crate::frequency::call_counts::{EntryCounts, RUNS_ERROR};
use crate::frequency::counted_branches::{CountedBranch, batches};
use crate::frequency::counter_deltas::delta::Count;
use crate::frequency::counter_deltas::posterior::MOST_INSTRUCTIONS_PER_NS;
use crate::frequency::evidence::{best_clocks, by_clocks, contradicting, counted};
use crate::frequency::flow_network::{FlowNetwork, MOST_TOGETHER, Observation, deviations, solve};
use crate::frequency::sampling::{Densities, by_factor, plausible};
use crate::frequency::trip_count::{TripCount, TripCounts, rounds_within};
use index_vec::IndexVec;
use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_model::CountSource;

/// Times that callers and callees are told each other's counts: chains of calls are short.
const PASSES: usize = 12;
/// Times that clocks which contradict others are left out.
const MOST_CONTRADICTIONS: usize = 6;

/// Everything about counts that the later steps need.
#[derive(Clone)]
pub(crate) struct Counts {
    pub(crate) blocks: BTreeMap<FunctionId, BlockCounts>,
    /// Best clock of each loop: the one with most trusted pairs among those that count its blocks.
    pub(crate) by_loop: BTreeMap<(FunctionId, LoopId), Count>,
}

/// Counts the blocks of all functions that have samples or clocks.
pub(crate) fn counts(observed: &Observed, clocks: &[Count], trips: &TripCounts, period_ns: f64) -> Counts {
    let mut clocks = plausible(observed, clocks, period_ns);
    let mut outcomes = outcomes(observed);
    for (branch, outcome) in settled(observed).into_iter().chain(by_arguments(observed)) {
        outcomes.entry(branch).or_insert(outcome);
    }
    outcomes.extend(seen_ahead(&observed.ahead));
    let batches = batches(observed);
    let mut left = MOST_CONTRADICTIONS;
    loop {
        let evidence = Evidence::of(observed, &clocks, trips, &outcomes, &batches, period_ns);
        let settled = evidence.settle();
        let doubted = doubted(&clocks, &settled.blocks);
        if doubted.is_empty() || left == 0 {
            return Counts { blocks: evidence.deviate(settled), by_loop: best_clocks(observed, &clocks) };
        }
        clocks.retain(|count| !doubted.contains(&(count.function, count.block)));
        left -= 1;
    }
}

/// Blocks whose clocks contradict others of their function.
fn doubted(clocks: &[Count], blocks: &Blocks) -> BTreeSet<(FunctionId, BlockId)> {
    let doubted = |(id, counts): (&FunctionId, &BlockCounts)| {
        let own: Vec<&Count> = clocks.iter().filter(|count| count.function == *id).collect();
        contradicting(&own, &counts.executions).map(|count| (*id, count.block))
    };
    blocks.iter().filter_map(doubted).collect()
}

/// Functions of which every run is known; they are solved together, so that each tells the others.
struct CallTreeSystem {
    members: Vec<FunctionId>,
    net: FlowNetwork,
}

impl CallTreeSystem {
    fn of(observed: &Observed, nets: &BTreeMap<FunctionId, FlowNetwork>) -> Self {
        let mut room = MOST_TOGETHER;
        let fits = |id: &&FunctionId| {
            let needed = nets[*id].circulations();
            let fits = nets[*id].is_small() && needed <= room;
            room -= if fits { needed } else { 0 };
            fits
        };
        let members: Vec<FunctionId> = observed.roots.runners.keys().filter(fits).copied().collect();
        let functions: Vec<&Function> = members.iter().map(|id| &*observed.code.functions[*id].function).collect();
        let net = FlowNetwork::of(&functions);
        Self { members, net }
    }

    fn position(&self, id: FunctionId) -> Option<usize> {
        self.members.binary_search(&id).ok()
    }
}

/// Functions that agree with each other, and the flows that they were solved by.
struct Settled {
    blocks: Blocks,
    nets: BTreeMap<FunctionId, FlowNetwork>,
    together: CallTreeSystem,
}

/// What is known of all functions before they are solved.
struct Evidence<'a> {
    observed: &'a Observed,
    clocks: &'a [Count],
    trips: &'a TripCounts,
    densities: Densities,
    entries: EntryCounts<'a>,
    outcomes: &'a BranchTable,
    batches: &'a BTreeMap<FunctionId, Vec<CountedBranch>>,
    /// Instructions that the whole run can have executed.
    most: f64,
}

impl<'a> Evidence<'a> {
    fn of(
        observed: &'a Observed,
        clocks: &'a [Count],
        trips: &'a TripCounts,
        outcomes: &'a BranchTable,
        batches: &'a BTreeMap<FunctionId, Vec<CountedBranch>>,
        period_ns: f64,
    ) -> Self {
        let most = observed.seen.len() as f64 * period_ns * MOST_INSTRUCTIONS_PER_NS;
        let (densities, entries) = (Densities::of(observed, clocks, period_ns), EntryCounts::of(observed));
        Self { observed, clocks, trips, densities, entries, outcomes, batches, most }
    }

    /// Solves all functions until they agree with each other.
    fn settle(&self) -> Settled {
        let functions = self.functions();
        let nets: BTreeMap<FunctionId, FlowNetwork> =
            functions.iter().map(|id| (*id, FlowNetwork::of(&[self.function(*id)]))).collect();
        let together = CallTreeSystem::of(self.observed, &nets);
        let mut blocks = Blocks::new();
        let mut settled: BTreeMap<FunctionId, f64> = BTreeMap::new();
        for pass in 0..PASSES {
            for &id in functions.iter().filter(|id| pass == 0 || !together.members.contains(id)) {
                let entered = self.entries.entered(&blocks, id).map_or(0.0, |(count, _)| count);
                if settled.get(&id).is_some_and(|before| is_same(*before, entered)) {
                    continue;
                }
                let counted = self.count(id, &nets[&id], &blocks);
                let before = blocks.insert(id, counted);
                if before.is_some_and(|before| before.is_same(&blocks[&id])) {
                    settled.insert(id, entered);
                }
            }
            self.count_together(&together, pass == 0, &mut blocks);
        }
        Settled { blocks, nets, together }
    }

    /// Those with samples or clocks, and what leads to them.
    fn functions(&self) -> Vec<FunctionId> {
        let mut functions: Vec<FunctionId> = self.densities.functions().collect();
        functions.extend(self.clocks.iter().map(|count| count.function));
        functions.extend(self.observed.roots.runners.keys());
        functions.sort_unstable();
        functions.dedup();
        functions
    }

    fn function(&self, id: FunctionId) -> &Function {
        &self.observed.code.functions[id].function
    }

    /// Counts a function by itself.
    fn count(&self, id: FunctionId, net: &FlowNetwork, blocks: &Blocks) -> BlockCounts {
        let solved = self.all_observations(id, net, blocks).map(|observations| solve(net, &observations));
        let finite = solved.filter(|solved| solved.iter().all(|count| count.is_finite()));
        let executions = finite.map_or_else(|| self.densities.guesses(id, self.function(id)), Into::into);
        self.limited(id, executions, blocks)
    }

    /// Everything known of a function that is solved by itself, if it is worth to be solved.
    fn all_observations(&self, id: FunctionId, net: &FlowNetwork, blocks: &Blocks) -> Option<Vec<Observation>> {
        let function = self.function(id);
        let before = blocks.get(&id);
        let clocked = self.clocks_of(id).next().is_some();
        let entered = self.entries.entered(blocks, id).filter(|(_, error)| *error < 0.1 || !clocked);
        let worth = net.is_small() && (clocked || entered.is_some() || self.densities.is_sampled(id));
        if !worth {
            return None;
        }
        let mut observations = self.observations(id, before);
        observations.extend(entered.map(|(count, error)| {
            let own = before.map(|counts| counts.executions[0]).filter(|_| error > 0.1);
            // More than is known of may run it; that far fewer do is unlikely by the factor, not by the difference.
            let (value, deviation) = match own {
                Some(own) if own < count => by_factor(count, own.max(1e-3 * count), error.ln_1p()),
                _ => (count, error * count.max(own.unwrap_or(0.0))),
            };
            Observation::entered(function, value, deviation + 0.5)
        }));
        if entered.is_none() {
            let has_trip = |inside| self.trips.contains_key(&(id, inside));
            observations.extend(outermost(function, &self.clocks_of(id).collect::<Vec<_>>(), has_trip));
        }
        Some(observations)
    }

    /// Counts functions of which every run is known, all at once.
    fn count_together(&self, together: &CallTreeSystem, first: bool, blocks: &mut Blocks) {
        let solved = solve(&together.net, &self.observations_together(together, first, blocks));
        if solved.iter().any(|count| !count.is_finite()) {
            return;
        }
        for (position, &id) in together.members.iter().enumerate() {
            let own = together.net.own(position, &solved).to_vec().into();
            blocks.insert(id, self.limited(id, own, blocks));
        }
    }

    /// At `first` nothing is known yet of those with few samples: what the others ask of them decides, not guesses about
    /// branches.
    fn observations_together(&self, together: &CallTreeSystem, first: bool, blocks: &Blocks) -> Vec<Observation> {
        let mut observations = Vec::new();
        for (position, &id) in together.members.iter().enumerate() {
            let silent = first && !self.densities.is_sampled(id);
            let own = if silent { self.hard(id) } else { self.observations(id, blocks.get(&id)) };
            observations.extend(own.into_iter().map(|observation| observation.within(&together.net, position)));
            observations.extend(self.runs(together, position, blocks));
        }
        observations
    }

    /// How far the counts of all blocks may be off, where that was worth a system of equations; elsewhere as far as a guess by
    /// time alone.
    fn deviate(&self, settled: Settled) -> Blocks {
        let Settled { mut blocks, nets, together } = settled;
        let mut found: BTreeMap<FunctionId, Vec<f64>> = BTreeMap::new();
        let all = deviations(&together.net, &self.observations_together(&together, false, &blocks));
        for (position, &id) in together.members.iter().enumerate() {
            found.insert(id, together.net.own(position, &all).to_vec());
        }
        for &id in blocks.keys().filter(|id| !together.members.contains(id)) {
            if let Some(observations) = self.all_observations(id, &nets[&id], &blocks) {
                found.insert(id, deviations(&nets[&id], &observations));
            }
        }
        for (id, counts) in &mut blocks {
            let known = found.remove(id).filter(|known| known.iter().all(|one| one.is_finite()));
            counts.deviations = match known {
                Some(known) => known.into_iter().take(counts.executions.len()).collect(),
                None => counts.executions.iter().map(|executions| GUESSED * executions).collect(),
            };
        }
        blocks
    }

    /// A function is entered as often as the places that run it are passed.
    fn runs(&self, together: &CallTreeSystem, position: usize, blocks: &Blocks) -> Option<Observation> {
        let id = together.members[position];
        let placed = &self.observed.code.functions[id];
        let runners = &self.observed.roots.runners[&id];
        if runners.is_empty() {
            let started = self.entries.started(id).unwrap_or(0);
            let entered = Observation::entered(&placed.function, started as f64, RUNS_ERROR);
            return Some(entered.within(&together.net, position));
        }
        let mut runs = Observation::entered(&placed.function, 0.0, 0.0).within(&together.net, position);
        let mut size = blocks.get(&id).map_or(0.0, |counts| counts.executions[0]);
        for runner in runners {
            let caller = together.position(runner.function)?;
            let block = self.observed.code.functions[runner.function].function.block_of(runner.instruction);
            let times = self.entries.times(runner);
            runs.blocks.push((together.net.block(caller, block), -times));
            size = size.max(blocks.get(&runner.function).map_or(0.0, |counts| times * counts.executions[block]));
        }
        Some(Observation { deviation: RUNS_ERROR * size.max(1.0), ..runs })
    }

    fn clocks_of(&self, id: FunctionId) -> impl Iterator<Item = &Count> {
        self.clocks.iter().filter(move |count| count.function == id)
    }

    fn limited(&self, id: FunctionId, mut executions: IndexVec<BlockId, f64>, blocks: &Blocks) -> BlockCounts {
        let function = self.function(id);
        executions.truncate(function.blocks.len());
        // Calls in circles would feed each other without end.
        for (count, block) in executions.iter_mut().zip(&function.blocks) {
            *count = count.min(self.most / block.len().max(1) as f64);
        }
        let entered = self.entries.entered(blocks, id).is_some_and(|(_, error)| error < 0.1);
        let clocks: Vec<&Count> = self.clocks_of(id).collect();
        let has_trip = |inside| self.trips.contains_key(&(id, inside));
        BlockCounts {
            executions,
            counted: counted(function, &clocks, has_trip, entered),
            deviations: function.blocks.iter().map(|_| 0.0).collect(),
            source: CountSource::Estimated,
        }
    }

    /// What clocks show of a function.
    fn hard(&self, id: FunctionId) -> Vec<Observation> {
        by_clocks(&self.clocks_of(id).collect::<Vec<_>>())
    }

    /// Everything known of a function but how often it is entered.
    fn observations(&self, id: FunctionId, before: Option<&BlockCounts>) -> Vec<Observation> {
        let function = self.function(id);
        let clocks: Vec<&Count> = self.clocks_of(id).collect();
        let densities = self.densities.within(id, function, &clocks, before);
        let size = |block| densities.size(block, 1.0);
        let mut observations = by_clocks(&clocks);
        observations.extend(self.trips_of(id).map(|(inside, trip)| {
            let header = function.loops[inside].header;
            let deviation =
                trip.relative_error * densities.size(header, rounds_within(function, id, inside, self.trips));
            Observation::rounds(function, inside, trip.rounds, deviation)
        }));
        let batches = self.batches.get(&id).map_or(&[][..], Vec::as_slice);
        observations.extend(batches.iter().map(|batch| batch.observation(size)));
        // What is done with a full batch is known better than by its few samples.
        let told = |block: BlockId| batches.iter().any(|batch| batch.leads_to(function, block));
        observations.extend(densities.observations().filter(|(block, _)| !told(*block)).map(|(_, samples)| samples));
        observations.extend(branches(
            function,
            |block, rounds| densities.size(block, rounds),
            &densities.samples,
            self.trips,
            self.outcomes,
            id,
        ));
        observations
    }

    fn trips_of(&self, id: FunctionId) -> impl Iterator<Item = (LoopId, &TripCount)> {
        self.trips.range((id, LoopId::new(0))..(id + 1, LoopId::new(0))).map(|((_, inside), trip)| (*inside, trip))
    }
}
