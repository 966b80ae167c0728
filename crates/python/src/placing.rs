//! Running a program under a plan: the sampler's other half, asked from Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tierloom_linux::root::Root;
use tierloom_model::warning::documents;
use tierloom_model::{RuleOptions, Warning};
use tierloom_runner::{
    Applied, AppliedRule, How, PhaseReport, PlaceReport, PlaceRequest, Residency, RuleReport, RunError, SavedWeights,
    Snapshot, TOO_LITTLE_MEMORY, TOO_MANY_MAPPINGS, apply, run,
};

use crate::documents::{text_of, to_python};
use crate::errors;
use crate::nouns::Plan;

/// What is asked beside the plan.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    /// Which node each memory is, as `match_nodes` says.
    nodes: BTreeMap<String, u32>,
    /// For every object, beside what the plan asks.
    options: RuleOptions,
    /// Set the host's interleave weights while the program runs.
    set_host_weights: bool,
    /// The plan's rules say what to ablate.
    ablate: bool,
    /// Seconds after which the program is killed.
    most_s: Option<f64>,
    /// Seconds between two snapshots.
    watch_s: Option<f64>,
}

/// Where the objects of a running program are: what a watcher gets.
#[derive(Serialize)]
struct Seen {
    at_s: f64,
    rules: Vec<(String, Where)>,
}

/// What became of a plan that was applied to a running program: the document of `tierloom apply --json`.
#[derive(Serialize)]
struct AppliedDoc {
    pid: u32,
    took_s: f64,
    rules: Vec<AppliedRuleDoc>,
}

#[derive(Serialize)]
struct AppliedRuleDoc {
    object: String,
    objects: u64,
    present_bytes: u64,
    moved_bytes: u64,
    problems: Vec<String>,
}

/// What became of a run: the document that `tierloom run --json` prints.
#[derive(Serialize)]
struct Report {
    exit_code: i32,
    /// Name of the signal that killed the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    /// It was killed because its time was over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut_off: bool,
    wall_s: f64,
    cpu_s: f64,
    /// Nodes of this machine.
    nodes: Vec<u32>,
    rules: Vec<RuleOutcome>,
    phases: Vec<PhaseOutcome>,
    counters: BTreeMap<String, i64>,
    #[serde(serialize_with = "documents::serialize")]
    warnings: Vec<Warning>,
}

/// What became of one rule; the plan's default is the last.
#[derive(Serialize)]
struct RuleOutcome {
    object: String,
    /// The kernel took the policy wherever it was asked.
    held: bool,
    /// Ranges that got the policy, and their bytes.
    ranges: u64,
    bytes: u64,
    /// By which means, and for how many ranges.
    how: BTreeMap<&'static str, u64>,
    /// Share of the pages that each node was asked for.
    asked: BTreeMap<u32, f64>,
    residency: Where,
    moved_bytes: u64,
    /// Ranges whose pages were locked.
    locked: u64,
    /// Why it could not be tried, or what the kernel answered.
    problems: Vec<String>,
}

#[derive(Serialize)]
struct Where {
    objects: u64,
    bytes: u64,
    looked: u64,
    absent: u64,
    elsewhere: u64,
    by_node: BTreeMap<u32, u64>,
    stale_s: f64,
}

#[derive(Serialize)]
struct PhaseOutcome {
    name: String,
    start_s: f64,
    gain_s: f64,
    expected_s: f64,
    skipped: Option<String>,
    moved_bytes: u64,
    took_s: f64,
}

/// The host's interleave weights as they were, if a run that set others was killed.
#[pyfunction]
pub(crate) fn left_host_weights(py: Python<'_>, root: PathBuf) -> PyResult<Option<Bound<'_, PyAny>>> {
    SavedWeights::left(&Root::at(root)).map(|left| to_python(py, &left)).transpose()
}

/// Puts back the host's interleave weights that a killed run left; whether there were any.
#[pyfunction]
pub(crate) fn restore_host_weights(root: PathBuf) -> PyResult<bool> {
    let root = Root::at(root);
    let Some(left) = SavedWeights::left(&root) else { return Ok(false) };
    left.put_back(&root).map_err(|source| errors::from_run(&RunError::HostWeights { source }))?;
    Ok(true)
}

/// Runs a program under a plan; returns what became of every rule as plain data. `asked` holds what is asked beside
/// the plan; `watcher` is called with a snapshot whenever one is due.
#[pyfunction]
pub(crate) fn run_plan<'py>(
    py: Python<'py>,
    plan: Py<Plan>,
    command: Vec<OsString>,
    preload: PathBuf,
    asked: &Bound<'py, PyAny>,
    watcher: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let plan = plan.get().0.clone();
    let asked: Asked = serde_json::from_str(&text_of(asked)?)
        .map_err(|error| errors::wrong_request(format!("options of a run: {error}")))?;
    let Asked { nodes, options, set_host_weights, ablate, most_s, watch_s } = asked;
    let request = PlaceRequest::new(command, plan, preload);
    let request = PlaceRequest { nodes, options, set_host_weights, ablate, most_s, watch_s, ..request };
    let mut watch = |snapshot: &Snapshot| {
        if let Some(watcher) = &watcher {
            // A watcher that fails does not end the program that it watches.
            Python::attach(|py| to_python(py, &Seen::from(snapshot)).and_then(|seen| watcher.call1(py, (seen,)))).ok();
        }
    };
    let report = py.detach(|| run(&request, &mut watch)).map_err(|error| errors::from_run(&error))?;
    to_python(py, &Report::from(report))
}

/// Applies a plan to a program that runs under `run_plan` in another process; returns what was moved as plain data.
#[pyfunction]
pub(crate) fn apply_plan(
    py: Python<'_>,
    pid: u32,
    plan: Py<Plan>,
    nodes: BTreeMap<String, u32>,
) -> PyResult<Bound<'_, PyAny>> {
    let plan = &plan.get().0;
    let applied = py.detach(|| apply(&Root::default(), pid, plan, &nodes));
    let Applied { rules, took_s } = applied.map_err(|error| errors::from_run(&error))?;
    let rules = rules.into_iter().map(AppliedRuleDoc::from).collect();
    to_python(py, &AppliedDoc { pid, took_s, rules })
}

impl From<&Snapshot> for Seen {
    fn from(snapshot: &Snapshot) -> Self {
        let rules = snapshot.rules.iter().map(|(object, seen)| (object.clone(), seen.clone().into())).collect();
        Self { at_s: snapshot.at_s, rules }
    }
}

impl From<AppliedRule> for AppliedRuleDoc {
    fn from(rule: AppliedRule) -> Self {
        let AppliedRule { object, objects, present_bytes, moved_bytes, stuck_bytes, left_out } = rule;
        let problems = left_out.into_iter().chain(stuck_bytes.iter().map(stuck)).collect();
        Self { object, objects, present_bytes, moved_bytes, problems }
    }
}

/// Ranges that did not get their place, in words.
fn refused((errno, ranges): (&i32, &u64)) -> String {
    match errno.unsigned_abs() {
        TOO_MANY_MAPPINGS => format!(
            "{ranges} ranges were left alone: each takes two mappings of the kernel's, or one for each stripe, and \
             half of vm.max_map_count is left to the program; raise it with sysctl, or place fewer, larger objects"
        ),
        TOO_LITTLE_MEMORY => format!(
            "{ranges} ranges were left alone: with hint faults on, their pages come in at once, for which there \
             was too little free memory or which would write to a file"
        ),
        _ => format!("the kernel refused {ranges} ranges: {}", io::Error::from_raw_os_error(*errno)),
    }
}

/// Pages that could not be moved, in words.
fn stuck((errno, bytes): (&i32, &u64)) -> String {
    match errno {
        0 => format!("{bytes} bytes stayed where they were: the node was full, or they were in use"),
        errno => format!("{bytes} bytes could not be moved: {}", io::Error::from_raw_os_error(*errno)),
    }
}

impl From<PlaceReport> for Report {
    fn from(report: PlaceReport) -> Self {
        Self {
            exit_code: report.exit.code(),
            signal: report.exit.signal(),
            cut_off: report.cut_off,
            wall_s: report.wall_s,
            cpu_s: report.cpu_s,
            nodes: report.nodes,
            rules: report.rules.into_iter().map(RuleOutcome::from).collect(),
            phases: report.phases.into_iter().map(PhaseOutcome::from).collect(),
            counters: report.counters,
            warnings: report.warnings,
        }
    }
}

impl From<RuleReport> for RuleOutcome {
    fn from(rule: RuleReport) -> Self {
        let problems = problems(&rule);
        let how = rule.how.iter().map(|(how, ranges)| (name_of(*how), *ranges)).collect();
        Self {
            held: rule.held(),
            object: rule.object,
            ranges: rule.ranges,
            bytes: rule.bytes,
            how,
            asked: rule.asked,
            residency: rule.residency.into(),
            moved_bytes: rule.moved_bytes,
            locked: rule.held,
            problems,
        }
    }
}

fn name_of(how: How) -> &'static str {
    match how {
        How::Policy => "policy",
        How::Stripes => "stripes",
        How::Populate => "populate",
        How::Move => "move",
        How::Hold => "hold",
        How::Alias => "alias",
    }
}

fn problems(rule: &RuleReport) -> Vec<String> {
    let why = |errno: &i32| io::Error::from_raw_os_error(*errno);
    let loose = |(errno, ranges): (&i32, &u64)| {
        let hint = if *errno == 12 { "; raise RLIMIT_MEMLOCK (`ulimit -l`)" } else { "" };
        format!("{ranges} ranges could not be held: {}{hint}", why(errno))
    };
    let left_out = rule.left_out.iter().cloned();
    left_out
        .chain(rule.refused.iter().map(refused))
        .chain(rule.stuck_bytes.iter().map(stuck))
        .chain(rule.not_held.iter().map(loose))
        .collect()
}

impl From<Residency> for Where {
    fn from(seen: Residency) -> Self {
        let Residency { objects, bytes, looked, absent, elsewhere, by_node, stale_s } = seen;
        Self { objects, bytes, looked, absent, elsewhere, by_node, stale_s }
    }
}

impl From<PhaseReport> for PhaseOutcome {
    fn from(phase: PhaseReport) -> Self {
        let PhaseReport { name, start_s, gain_s, expected_s, skipped, moved_bytes, took_s } = phase;
        Self { name, start_s, gain_s, expected_s, skipped, moved_bytes, took_s }
    }
}
