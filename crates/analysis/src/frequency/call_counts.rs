//! How often functions are entered: as often as the places that run them are passed.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::callers::CallPlace;
use crate::attribution::{AttributedSample, Observed};
use crate::frequency::blocks::{BlockCounts, Blocks};
use tierloom_binary::call_graph::sites::CallKind;
use tierloom_binary::code::{CallSite, FunctionId};
use tierloom_binary::instruction::Flow;

/// Threads with at least this share of the busiest one's samples belong to the team. Assumed.
const TEAM_SHARE: f64 = 0.05;
/// How well it is known that a function runs as often as it is called; the rest is for numbers.
pub(crate) const RUNS_ERROR: f64 = 0.001;

/// How well it is known that a function runs as often as calls are passed that samples show to run others, too, or that may:
/// those through pointers. Assumed.
const SEEN_ERROR: f64 = 0.5;

/// What is known of the ways into functions.
pub(crate) struct EntryCounts<'a> {
    observed: &'a Observed,
    /// Threads that run a parallel region, by module.
    teams: BTreeMap<usize, f64>,
    /// By call: what samples show it to run.
    called_at: BTreeMap<CallPlace, Called>,
    /// By function: calls that samples show to run it, and how many are in there.
    seen_calls: Tally<FunctionId, CallPlace>,
}

/// Samples that show two things together.
type Tally<K, V> = BTreeMap<K, BTreeMap<V, usize>>;

/// What samples show a call to run, and how many are in there.
struct Called {
    /// What the call itself runs.
    first: BTreeMap<FunctionId, usize>,
    /// What that leaves to others as its last act: they return to the call, too.
    behind: BTreeMap<FunctionId, usize>,
    /// Whether it can run nothing else: it names what it calls, if only in the linkage table.
    is_fixed: bool,
}

impl Called {
    fn at(observed: &Observed, site: CallPlace, called: BTreeMap<FunctionId, usize>) -> Self {
        let named = observed.named_calls.get(&site);
        let call = &observed.code.functions[site.0].function.instructions[site.1];
        let is_fixed = named.is_some() || matches!(call.flow, Flow::Call(_));
        let (first, behind) = called.into_iter().partition(|(id, _)| named.is_none_or(|named| named == id));
        Self { first, behind, is_fixed }
    }

    /// Whether what the call runs is shared out between this function and no other one.
    fn runs_alone(&self, id: FunctionId) -> bool {
        let among = if self.first.contains_key(&id) { &self.first } else { &self.behind };
        self.is_fixed && self.first.len() == 1 && among.len() == 1
    }
}

impl<'a> EntryCounts<'a> {
    pub(crate) fn of(observed: &'a Observed) -> Self {
        let mut called_at: Tally<CallPlace, FunctionId> = BTreeMap::new();
        let mut seen_calls: Tally<FunctionId, CallPlace> = BTreeMap::new();
        for (called, frame) in observed.seen.iter().flat_map(AttributedSample::calls) {
            let site = (frame.function, frame.site);
            *called_at.entry(site).or_default().entry(called).or_default() += 1;
            *seen_calls.entry(called).or_default().entry(site).or_default() += 1;
        }
        let called_at = called_at.into_iter().map(|(site, called)| (site, Called::at(observed, site, called)));
        Self { observed, teams: teams(observed), called_at: called_at.collect(), seen_calls }
    }

    /// Processes that ran the module of a function from its entry.
    pub(crate) fn started(&self, id: FunctionId) -> Option<usize> {
        let module = self.observed.code.functions[id].module;
        self.observed.images.get(&module).map(BTreeSet::len)
    }

    /// Runs of a function for each time its runner is passed.
    pub(crate) fn times(&self, runner: &CallSite) -> f64 {
        let module = self.observed.code.functions[runner.function].module;
        if runner.run == CallKind::Team { self.teams.get(&module).copied().unwrap_or(1.0).max(1.0) } else { 1.0 }
    }

    /// How often a function was run, with the relative error: small if all that run it lies in blocks
    /// with known counts.
    pub(crate) fn entered(&self, blocks: &Blocks, id: FunctionId) -> Option<(f64, f64)> {
        if let Some(runners) = self.observed.roots.runners.get(&id) {
            if runners.is_empty() {
                return self.started(id).map(|started| (started as f64, RUNS_ERROR));
            }
            let places = runners.iter().map(|runner| (runner.function, runner.instruction, self.times(runner)));
            return self.passed(blocks, id, places);
        }
        let named: Vec<CallPlace> = self.observed.calls.get(&id).cloned().unwrap_or_default();
        let none = BTreeMap::new();
        let seen = self.seen_calls.get(&id).unwrap_or(&none);
        // What jumps there as its last act is among the named ones.
        let is_counted = |site: &CallPlace| {
            let behind = |called: &Called| {
                called.behind.contains_key(&id) && named.iter().any(|(from, _)| called.first.contains_key(from))
            };
            named.contains(site) || self.called_at.get(site).is_some_and(behind)
        };
        let others: Vec<CallPlace> = seen.keys().filter(|site| !is_counted(site)).copied().collect();
        let places = named
            .iter()
            .map(|site| (*site, 1.0))
            .chain(others.iter().map(|site| (*site, self.share(blocks, *site, id))));
        let (count, error) = self.passed(blocks, id, places.map(|(site, times)| (site.0, site.1, times)))?;
        if others.is_empty() {
            return Some((count, error));
        }
        // That one more sample shows another call has a chance of 1 in n + 2, after n of them (the rule of succession).
        let unseen = 1.0 / (seen.values().sum::<usize>() as f64 + 2.0);
        let runs_it_alone = |site| self.called_at.get(site).is_some_and(|called| called.runs_alone(id));
        Some((count, if others.iter().all(runs_it_alone) { error.max(unseen) } else { SEEN_ERROR }))
    }

    /// How often a call runs a function, of those that samples show it to run, each time that it is passed.
    fn share(&self, blocks: &Blocks, site: CallPlace, id: FunctionId) -> f64 {
        let Some(Called { first, behind, .. }) = self.called_at.get(&site) else { return 0.0 };
        if first.contains_key(&id) {
            return part(blocks, first, id);
        }
        let left: f64 =
            first.keys().map(|first_id| part(blocks, first, *first_id) * self.leaving(blocks, *first_id)).sum();
        left * part(blocks, behind, id)
    }

    /// How often a call of a function ends in another one.
    fn leaving(&self, blocks: &Blocks, id: FunctionId) -> f64 {
        let function = &self.observed.code.functions[id].function;
        let of_counts = |counts: &BlockCounts| {
            let left: f64 = function.tail_calls().map(|block| counts.executions[block]).sum();
            (left / counts.executions[0]).min(1.0)
        };
        blocks.get(&id).filter(|counts| counts.executions[0] > 0.0).map_or(1.0, of_counts)
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
}

/// Share of one of several functions: as often as they are entered by what else is known of them, or else as they took time.
fn part(blocks: &Blocks, among: &BTreeMap<FunctionId, usize>, id: FunctionId) -> f64 {
    let entered = |id: &FunctionId| blocks.get(id).map(|counts| counts.executions[0]).filter(|count| *count > 0.0);
    let known: Option<Vec<f64>> = among.keys().map(entered).collect();
    let (own, all) = match known {
        Some(known) => (entered(&id).unwrap_or(0.0), known.iter().sum::<f64>()),
        None => (among.get(&id).copied().unwrap_or(0) as f64, among.values().sum::<usize>() as f64),
    };
    own / all
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
