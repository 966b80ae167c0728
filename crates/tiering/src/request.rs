//! What a simulation is asked, and which evaluator answers.

use serde::{Deserialize, Serialize};
use tierloom_model::{Machine, Plan, Profile, SampleRow, Socket};

use crate::cohort::{self, Cohort};
use crate::costs::Costs;
use crate::error::{Result, TieringError};
use crate::exact::{self, BYTES_PER_PAGE, Exact};
use crate::layout::Layout;
use crate::nodes::{Nodes, TierRule};
use crate::ours;
use crate::outcome::Outcome;
use crate::placement;
use crate::policy::{self, Policy};
use crate::reclaim::LruKind;
use crate::samples::Samples;
use crate::vma::VmaPolicy;
use crate::workload::Workload;

/// Page visits up to which a run is simulated one by one: seconds on one core.
const EXACT_VISITS: f64 = 2e8;
/// Pages up to which state is kept page by page.
const EXACT_PAGES: u64 = 1 << 26;

/// How a run is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evaluator {
    /// Whatever the size of the run allows, exact first.
    #[default]
    Auto,
    /// Page by page.
    Exact,
    /// Expected states of like pages.
    Cohort,
}

/// A policy, a placement, and the part of the machine that may be used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Name of the policy; `tierloom` is ours.
    pub policy: String,
    /// Knobs of the policy by name.
    #[serde(default)]
    pub knobs: Vec<(String, f64)>,
    /// Name of the placement.
    #[serde(default)]
    pub placement: Option<String>,
    /// Text of a plan file instead of a placement.
    #[serde(default)]
    pub plan: Option<String>,
    /// Memories that may be used; all that the socket reaches by default.
    #[serde(default)]
    pub nodes: Option<Vec<String>>,
    /// Socket of the threads; the machine's first by default.
    #[serde(default)]
    pub socket: Option<String>,
    /// Bytes of the nearest memory that may be used.
    #[serde(default)]
    pub fast_bytes: Option<u64>,
    /// Evaluator.
    #[serde(default)]
    pub evaluator: Evaluator,
    /// How the kernel sorts nodes into tiers; as the policy's own kernel does by default.
    #[serde(default)]
    pub tiers: Option<TierRule>,
    /// How kswapd keeps its lists.
    #[serde(default)]
    pub lru: LruKind,
    /// Costs of events; documented defaults without.
    #[serde(default)]
    pub costs: Option<Costs>,
    /// Seed of the visits; only the exact evaluator draws any.
    #[serde(default)]
    pub seed: u64,
}

/// A checked request.
pub(crate) struct Setting<'a> {
    pub(crate) socket: &'a Socket,
    pub(crate) nodes: Nodes,
    pub(crate) costs: Costs,
}

impl Request {
    /// A request for a policy with everything else by default.
    pub fn of(policy: &str) -> Self {
        Self { policy: policy.to_owned(), ..Self::default() }
    }

    pub(crate) fn setting<'a>(&self, machine: &'a Machine) -> Result<Setting<'a>> {
        let socket = match &self.socket {
            None => 0,
            Some(name) => machine.socket_index(name).ok_or_else(|| {
                let known: Vec<&str> = machine.sockets.iter().map(|socket| socket.name.as_str()).collect();
                let problem = format!("machine `{}` has no socket `{name}`", machine.name);
                TieringError::request("socket", problem, format!("use one of: {}", known.join(", ")))
            })?,
        };
        let memories = match &self.nodes {
            None => (0..machine.memories.len()).collect(),
            Some(names) => names.iter().map(|name| memory(machine, name)).collect::<Result<Vec<usize>>>()?,
        };
        let tiers = self.tiers.unwrap_or(self.policy()?.tiers());
        let nodes = Nodes::new(machine, socket, &memories, self.fast_bytes, tiers)?;
        if nodes.len() > 7 {
            let problem = format!("{} memories are more than the simulator tells apart", nodes.len());
            return Err(TieringError::request("nodes", problem, "name at most seven"));
        }
        Ok(Setting { socket: &machine.sockets[socket], nodes, costs: self.costs.clone().unwrap_or_default() })
    }

    /// The policy with its knobs, told where it is.
    pub(crate) fn policy_on(&self, nodes: &Nodes) -> Result<Box<dyn Policy>> {
        let mut policy = self.policy()?;
        policy.meet(nodes);
        Ok(policy)
    }

    fn policy(&self) -> Result<Box<dyn Policy>> {
        let mut policy = policy::by_name(if self.policy == ours::NAME { "none" } else { &self.policy })?;
        for (name, value) in &self.knobs {
            if !value.is_finite() || *value < 0.0 || !policy.set(name, *value) {
                let known: Vec<String> = policy.knobs().into_iter().map(|knob| knob.name).collect();
                let known =
                    if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
                return Err(TieringError::request(
                    "knob",
                    format!("`{}` has no knob `{name}` that takes {value}", self.policy),
                    known,
                ));
            }
        }
        Ok(policy)
    }

    fn policies(&self, workload: &Workload, setting: &Setting<'_>) -> Result<(String, Vec<VmaPolicy>)> {
        if let Some(text) = &self.plan {
            let plan = Plan::from_toml(text, "plan")
                .map_err(|error| TieringError::request("plan", error.to_string(), "give a plan that tierloom wrote"))?;
            return Ok(("plan".to_owned(), placement::from_plan(&plan, workload, &setting.nodes)?));
        }
        let name = self.placement.as_deref().unwrap_or("first-touch");
        Ok((name.to_owned(), placement::by_name(name, workload, &setting.nodes, setting.socket)?))
    }
}

fn memory(machine: &Machine, name: &str) -> Result<usize> {
    machine.memory_index(name).ok_or_else(|| {
        let known: Vec<&str> = machine.memories.iter().map(|memory| memory.name.as_str()).collect();
        let problem = format!("machine `{}` has no memory `{name}`", machine.name);
        TieringError::request("nodes", problem, format!("use some of: {}", known.join(", ")))
    })
}

/// Simulates a workload on a machine.
///
/// # Errors
/// [`TieringError`] when the request names what is not there, or the data does not fit.
pub fn simulate(machine: &Machine, workload: &Workload, request: &Request) -> Result<Outcome> {
    simulate_along(machine, workload, None, request)
}

/// Simulates a profile on a machine, on so many threads, going along its samples in the order of time.
///
/// # Errors
/// As [`simulate`]; and where the policy or the evaluator does not go page by page.
pub fn simulate_samples(
    machine: &Machine,
    profile: &Profile,
    threads: u32,
    samples: &[SampleRow],
    request: &Request,
) -> Result<Outcome> {
    if request.policy == ours::NAME || request.evaluator == Evaluator::Cohort {
        let problem = "samples are followed page by page, and this goes by expected counts";
        return Err(TieringError::request("samples", problem, "leave out the samples, or take another policy"));
    }
    let workload = Workload::from_profile(profile, threads);
    let samples = Samples::new(profile, &workload, samples);
    simulate_along(machine, &workload, Some(&samples), request)
}

fn simulate_along(
    machine: &Machine,
    workload: &Workload,
    samples: Option<&Samples>,
    request: &Request,
) -> Result<Outcome> {
    workload.check().map_err(|(problem, hint)| TieringError::BadWorkload {
        file: workload.name.clone(),
        problem,
        hint,
    })?;
    let mut setting = request.setting(machine)?;
    let (narrow, note) = on_cores(workload, setting.socket);
    setting.nodes.touched_by(narrow.filled_by);
    let mut outcome = if request.policy == ours::NAME {
        ours::simulate(&narrow, &setting, request)?
    } else {
        simulate_policy(&narrow, samples, &setting, request)?
    };
    outcome.warnings.extend(note);
    Ok(outcome)
}

/// The workload on no more threads than the socket has cores, and a word where that makes a difference.
fn on_cores(workload: &Workload, socket: &Socket) -> (Workload, Option<String>) {
    let (cores, mut narrow) = (socket.cores.value, workload.clone());
    narrow.threads = narrow.threads.min(cores);
    narrow.filled_by = narrow.filled_by.min(cores);
    narrow.phases.iter_mut().for_each(|phase| phase.threads = phase.threads.min(cores));
    let note = (narrow.threads < workload.threads).then(|| {
        let (name, threads) = (&workload.name, workload.threads);
        format!("`{name}` describes {threads} threads; socket `{}` has {cores} cores, so it runs on those", socket.name)
    });
    (narrow, note)
}

fn simulate_policy(
    workload: &Workload,
    samples: Option<&Samples>,
    setting: &Setting<'_>,
    request: &Request,
) -> Result<Outcome> {
    let (placement, policies) = request.policies(workload, setting)?;
    let mut policy = request.policy_on(&setting.nodes)?;
    let warning = policy.idle_on(&setting.nodes);
    let layout = Layout::new(workload, &policies);
    let asked = if samples.is_some() { Evaluator::Exact } else { request.evaluator };
    let (evaluator, mut why) = choose(workload, &layout, asked)?;
    if let Some(samples) = samples {
        why = format!("exact, along {} samples", samples.count());
    }
    let mut outcome = match evaluator {
        Evaluator::Exact => run_exact(workload, samples, layout, policy.as_mut(), setting, request)?,
        _ => run_cohort(workload, layout, policy.as_mut(), setting, request)?,
    };
    outcome.placement = placement;
    outcome.evaluator = why;
    outcome.warnings.extend(warning);
    Ok(outcome)
}

/// Time of the run if all data were in fast memory: how far apart the points of a series are.
fn expected_s(workload: &Workload, setting: &Setting<'_>) -> f64 {
    let phase_s = |phase: &crate::workload::Phase| {
        let works = phase.streams.iter().map(|stream| crate::stretch::work_of(stream, phase, setting.socket));
        let mut cells = vec![tierloom_contention::Work::default(); setting.nodes.len()];
        cells[0] = works.fold(cells[0], |sum, work| sum + work);
        crate::settle::settle(&setting.nodes, phase.compute_s / f64::from(phase.threads), &cells).time_s
    };
    workload.phases.iter().map(phase_s).sum()
}

fn run_exact(
    workload: &Workload,
    samples: Option<&Samples>,
    layout: Layout,
    policy: &mut dyn Policy,
    setting: &Setting<'_>,
    request: &Request,
) -> Result<Outcome> {
    let expected_s = expected_s(workload, setting);
    let costs = setting.costs.clone();
    let mut exact = Exact::new(&setting.nodes, layout, policy, costs, request.lru, workload.threads, expected_s);
    exact::run(&mut exact, workload, samples, setting.socket, request.seed)?;
    Ok(exact.outcome())
}

fn run_cohort(
    workload: &Workload,
    layout: Layout,
    policy: &mut dyn Policy,
    setting: &Setting<'_>,
    request: &Request,
) -> Result<Outcome> {
    let (expected_s, costs) = (expected_s(workload, setting), setting.costs.clone());
    let threads = workload.threads;
    let mut cohort = Cohort::new(&setting.nodes, workload, layout, policy, costs, request.lru, threads, expected_s);
    cohort.touch_all()?;
    cohort::run(&mut cohort, workload, setting.socket, |_, _| {});
    Ok(cohort.outcome())
}

/// Which evaluator, and in words why.
fn choose(workload: &Workload, layout: &Layout, asked: Evaluator) -> Result<(Evaluator, String)> {
    let visits: f64 = workload.phases.iter().flat_map(|phase| &phase.streams).map(|stream| stream.visits).sum();
    let pages = layout.span();
    let size = format!("{visits:.1e} page visits to {pages} pages");
    match asked {
        Evaluator::Exact if pages > 1 << 31 => {
            let problem =
                format!("{pages} pages would take {} GB of state", pages * BYTES_PER_PAGE as u64 / 1_000_000_000);
            Err(TieringError::request("evaluator", problem, "use the cohort evaluator"))
        }
        Evaluator::Exact => Ok((Evaluator::Exact, format!("exact, as asked: {size}"))),
        Evaluator::Cohort => Ok((Evaluator::Cohort, format!("cohort, as asked: {size}"))),
        Evaluator::Auto if visits <= EXACT_VISITS && pages <= EXACT_PAGES => {
            Ok((Evaluator::Exact, format!("exact: {size} are few enough to follow one by one")))
        }
        Evaluator::Auto => Ok((Evaluator::Cohort, format!("cohort: {size} are too many to follow one by one"))),
    }
}
