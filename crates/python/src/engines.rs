//! The engines: prediction and placement of nouns that were parsed before.

use pyo3::prelude::*;
use serde::Deserialize;
use tierloom_model::{self as model, Placement, PolicyResult, Prediction};
use tierloom_place::{self as place, Brought, Request};
use tierloom_predict::Run;

use crate::documents::{request, to_python};
use crate::errors;
use crate::nouns::{Machine, Plan, Profile};
use crate::user_policies::{PlacementPolicy, Raised};

/// Every policy on one profile and machine. What policies do with single objects becomes Python's only when somebody
/// asks: with many objects few of them are ever read.
#[pyclass(frozen)]
pub(crate) struct Comparison {
    machine: Py<Machine>,
    profile: Py<Profile>,
    /// The answer; its policies say nothing of single objects.
    brief: model::Comparison,
    /// In the order of the answer.
    whole: Vec<PolicyResult>,
    /// Objects that cost no memory.
    ablated: Vec<String>,
}

impl Comparison {
    fn result(&self, at: usize) -> PyResult<&PolicyResult> {
        self.whole.get(at).ok_or_else(|| errors::internal("there is no such policy"))
    }
}

#[pymethods]
impl Comparison {
    /// The answer as plain data, but what its policies do with single objects.
    fn brief<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.brief)
    }

    /// One policy's whole result as plain data, by its position.
    fn policy<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.result(at)?)
    }

    /// One policy's placement as a plan, by its position.
    fn plan(&self, py: Python<'_>, at: usize) -> PyResult<Plan> {
        let result = self.result(at)?;
        let policy = result.policy.clone();
        let (machine, profile) = (&self.machine.get().0, &self.profile.get().0);
        let planned = py.detach(|| {
            let alone = model::Comparison { policies: vec![result.clone()], ..self.brief.clone() };
            place::plan_from(machine, profile, &alone, &policy, &self.ablated)
        });
        planned.map(Plan).ok_or_else(|| {
            let text = format!("policy `{policy}` cannot be used here");
            errors::wrong_request(format!("{text}\nhint: take one that has a time"))
        })
    }
}

/// Tries every policy. `ran_on` is the machine that the profile was recorded on, where that is known: predictions are
/// anchored to the run then. `brought` are policies of the caller's: a name, a line on what it does, and a function.
#[pyfunction]
#[pyo3(signature = (machine, profile, asked, ran_on=None, brought=Vec::new()))]
pub(crate) fn compare(
    py: Python<'_>,
    machine: Py<Machine>,
    profile: Py<Profile>,
    asked: &Bound<'_, PyAny>,
    ran_on: Option<Py<Machine>>,
    brought: Vec<(String, String, Py<PyAny>)>,
) -> PyResult<Comparison> {
    let raised = Raised::default();
    let brought = brought.into_iter().map(|policy| PlacementPolicy::new(policy, &raised).shared()).collect();
    let asked = Request { brought: Brought::new(brought), ..request(asked)? };
    let (on, program) = (&machine.get().0, &profile.get().0);
    let answer = py.detach(|| compared(on, program, &asked, ran_on.as_ref().map(|ran_on| &ran_on.get().0)));
    raised.check()?;
    let mut brief = answer?;
    let whole = std::mem::take(&mut brief.policies);
    brief.policies = whole.iter().map(without_objects).collect();
    Ok(Comparison { machine, profile, brief, whole, ablated: asked.ablated })
}

/// A policy's result, but what it does with single objects.
fn without_objects(result: &PolicyResult) -> PolicyResult {
    let brief = |prediction: &Prediction| Prediction { objects: Vec::new(), ..prediction.clone() };
    let outcome = result.outcome.as_ref().map(brief).map_err(Clone::clone);
    let (policy, about) = (result.policy.clone(), result.about.clone());
    PolicyResult { policy, about, outcome, fast_bytes: result.fast_bytes, fractions: Vec::new(), actions: Vec::new() }
}

fn compared(
    machine: &model::Machine,
    profile: &model::Profile,
    asked: &Request,
    ran_on: Option<&model::Machine>,
) -> PyResult<model::Comparison> {
    let known = ran_on.map(|ran_on| tierloom_predict::anchored(profile, ran_on)).transpose();
    let known = known.map_err(|error| errors::from_predict(&error))?.flatten();
    let (anchored, anchor) = known.unzip();
    let answer = place::compare(machine, anchored.as_ref().unwrap_or(profile), asked);
    Ok(model::Comparison { anchor, ..answer.map_err(|error| errors::from_place(&error))? })
}

/// Names of the planner's policies; shapes where nodes or numbers belong to one.
#[pyfunction]
pub(crate) fn placement_policies() -> Vec<&'static str> {
    place::policy::names()
}

/// Reads `64GiB`, or `40%` of the program's data, as bytes of fast memory.
#[pyfunction]
pub(crate) fn parse_budget(text: &str, footprint_bytes: u64) -> PyResult<u64> {
    place::parse_budget(text, footprint_bytes).map_err(|error| errors::from_place(&error))
}

/// What [`predict`] is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PredictRequest {
    /// By socket, in the order in which they take a single thread.
    teams: Vec<TeamRequest>,
    /// By object, the share of its pages in each memory.
    fractions: Vec<Vec<f64>>,
    /// Objects that cost no memory.
    #[serde(default)]
    ablated: Vec<String>,
}

/// Threads on one socket; the machine's first where none is named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamRequest {
    socket: Option<String>,
    threads: u32,
}

/// Time of one placement, as plain data.
#[pyfunction]
pub(crate) fn predict<'py>(
    py: Python<'py>,
    machine: Py<Machine>,
    profile: Py<Profile>,
    asked: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let asked: PredictRequest = request(asked)?;
    let (machine, profile) = (&machine.get().0, &profile.get().0);
    to_python(py, &py.detach(|| predicted(machine, profile, asked))?)
}

fn predicted(machine: &model::Machine, profile: &model::Profile, asked: PredictRequest) -> PyResult<Prediction> {
    let placement = Placement::new(asked.fractions, machine.memories.len()).map_err(|e| errors::from_placement(&e))?;
    if placement.rows().len() != profile.objects.len() {
        let (rows, objects) = (placement.rows().len(), profile.objects.len());
        let text = format!("{rows} rows of fractions for {objects} objects\nhint: give one row for each object");
        return Err(errors::wrong_request(text));
    }
    let run = |team: &TeamRequest| Ok(Run { socket: socket(machine, team.socket.as_deref())?, threads: team.threads });
    let runs = asked.teams.iter().map(run).collect::<PyResult<Vec<Run>>>()?;
    let request = Request { ablated: asked.ablated, ..Request::default() };
    let predictor = place::predictor(machine, profile, &runs, &request).map_err(|error| errors::from_place(&error))?;
    Ok(predictor.predict(&placement))
}

/// Position of a socket; the first one where none is named.
fn socket(machine: &model::Machine, name: Option<&str>) -> PyResult<usize> {
    let Some(name) = name else { return Ok(0) };
    machine.socket_index(name).ok_or_else(|| errors::no_socket(machine, name))
}
