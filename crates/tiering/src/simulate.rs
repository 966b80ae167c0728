//! One simulation: which evaluator answers, and what it is handed.

use tierloom_contention::Work;
use tierloom_model::{Machine, Profile, SampleRow, Socket};

use crate::cohort::{self, Cohort};
use crate::engine::host::Setup;
use crate::engine::layout::Layout;
use crate::engine::page_state::PageState;
use crate::engine::settle::settle;
use crate::error::{Result, TieringError};
use crate::exact::{self, BYTES_PER_PAGE, Exact};
use crate::outcome::Outcome;
use crate::placement::tierloom;
use crate::policy::Policy;
use crate::request::{Evaluator, OURS, Request, Setting};
use crate::workload::demand::work_of;
use crate::workload::samples::Samples;
use crate::workload::{Phase, Workload};

/// Page visits up to which a run is simulated one by one: seconds on one core.
const EXACT_VISITS: f64 = 2e8;
/// Pages up to which state is kept page by page.
const EXACT_PAGES: u64 = 1 << 26;

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
    if request.policy == OURS || request.evaluator == Evaluator::Cohort {
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
    workload.check().map_err(|flaw| flaw.of_workload(&workload.name))?;
    let mut setting = request.setting(machine)?;
    let (narrow, note) = on_cores(workload, setting.socket);
    setting.nodes.touched_by(narrow.filled_by);
    let mut outcome = if request.policy == OURS {
        tierloom::simulate(&narrow, &setting, request)?
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
    let phase_s = |phase: &Phase| {
        let works = phase.streams.iter().map(|stream| work_of(stream, phase, setting.socket));
        let mut cells = vec![Work::default(); setting.nodes.len()];
        cells[0] = works.fold(cells[0], |sum, work| sum + work);
        settle(&setting.nodes, phase.compute_s / f64::from(phase.threads), &cells).time_s
    };
    workload.phases.iter().map(phase_s).sum()
}

fn setup<'a>(
    workload: &Workload,
    layout: Layout,
    policy: &'a mut dyn Policy,
    setting: &'a Setting<'_>,
    request: &Request,
) -> Setup<'a> {
    Setup { expected_s: expected_s(workload, setting), ..setting.setup(layout, policy, request.lru, workload.threads) }
}

fn run_exact(
    workload: &Workload,
    samples: Option<&Samples>,
    layout: Layout,
    policy: &mut dyn Policy,
    setting: &Setting<'_>,
    request: &Request,
) -> Result<Outcome> {
    let mut exact = Exact::new(setup(workload, layout, policy, setting, request));
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
    let mut cohort = Cohort::new(setup(workload, layout, policy, setting, request), workload);
    cohort.touch_all()?;
    cohort::run(&mut cohort, workload, setting.socket, |_, _| {});
    Ok(cohort.outcome())
}

/// Which evaluator, and in words why.
fn choose(workload: &Workload, layout: &Layout, asked: Evaluator) -> Result<(Evaluator, String)> {
    let visits: f64 = workload.phases.iter().flat_map(|phase| &phase.streams).map(|stream| stream.visits).sum();
    let pages: u64 = layout.regions.iter().map(|region| region.pages).sum();
    let size = format!("{visits:.1e} page visits to {pages} pages");
    match asked {
        Evaluator::Exact if layout.span() > 1 << 31 => {
            let gigabytes = layout.span() * BYTES_PER_PAGE as u64 / 1_000_000_000;
            let problem = format!("{pages} pages would take {gigabytes} GB of state");
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
