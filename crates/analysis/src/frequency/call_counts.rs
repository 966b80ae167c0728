//! How often functions are entered: as often as the places that run them are passed.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::{AttributedSample, Observed};
use crate::frequency::blocks::Blocks;
use tierloom_binary::call_graph::sites::CallKind;
use tierloom_binary::code::{CallSite, FunctionId};

/// Threads with at least this share of the busiest one's samples belong to the team. Assumed.
const TEAM_SHARE: f64 = 0.05;
/// How well it is known that a function runs as often as it is called; the rest is for numbers.
pub(crate) const RUNS_ERROR: f64 = 0.001;

/// How well it is known that a function runs as often as the calls are passed of which samples show that they run it: a call by
/// pointer may run others, and calls that no sample is in may run it. Assumed.
const SEEN_ERROR: f64 = 0.5;

/// What is known of the ways into functions.
pub(crate) struct EntryCounts<'a> {
    observed: &'a Observed,
    /// Threads that run a parallel region, by module.
    teams: BTreeMap<usize, f64>,
    /// By call: what samples show it to run, and how many are in there.
    called_at: BTreeMap<(FunctionId, usize), BTreeMap<FunctionId, usize>>,
    /// By function: calls that samples show to run it.
    seen_calls: BTreeMap<FunctionId, BTreeSet<(FunctionId, usize)>>,
}

impl<'a> EntryCounts<'a> {
    pub(crate) fn of(observed: &'a Observed) -> Self {
        let mut called_at: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        let mut seen_calls: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (called, frame) in observed.seen.iter().flat_map(AttributedSample::calls) {
            let site = (frame.function, frame.site);
            *called_at.entry(site).or_default().entry(called).or_default() += 1;
            seen_calls.entry(called).or_default().insert(site);
        }
        Self { observed, teams: teams(observed), called_at, seen_calls }
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
        let named = self.observed.calls.get(&id).into_iter().flatten().map(|(caller, step)| (*caller, *step, 1.0));
        let named: Vec<(FunctionId, usize, f64)> = named.collect();
        let is_named = |site: &(FunctionId, usize)| named.iter().any(|(caller, step, _)| (*caller, *step) == *site);
        let seen = self.seen_calls.get(&id).into_iter().flatten();
        let seen: Vec<(FunctionId, usize, f64)> =
            seen.filter(|site| !is_named(site)).map(|&site| (site.0, site.1, self.share(blocks, site, id))).collect();
        // Where one that is not named was seen, there may be others.
        let all = self.passed(blocks, id, named.iter().chain(&seen).copied())?;
        Some(if seen.is_empty() { all } else { (all.0, SEEN_ERROR) })
    }

    /// Share of a call's executions that run a function, of all that samples show it to run: as often as these are entered by
    /// what else is known of them, or else as they took time.
    fn share(&self, blocks: &Blocks, site: (FunctionId, usize), id: FunctionId) -> f64 {
        let Some(called) = self.called_at.get(&site) else { return 0.0 };
        let entered = |id: &FunctionId| blocks.get(id).map(|counts| counts.executions[0]).filter(|count| *count > 0.0);
        let known: Option<Vec<f64>> = called.keys().map(entered).collect();
        let (own, all) = match known {
            Some(known) => (entered(&id).unwrap_or(0.0), known.iter().sum::<f64>()),
            None => (called.get(&id).copied().unwrap_or(0) as f64, called.values().sum::<usize>() as f64),
        };
        own / all
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
