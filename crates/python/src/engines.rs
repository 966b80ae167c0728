//! The engines: prediction and placement, asked by JSON and answering in JSON.

use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tierloom_model::{Comparison, Machine, Placement};
use tierloom_place::{self as place, Request};
use tierloom_predict::{Predictor, Run};

use crate::{errors, nouns};

/// Tries every policy; takes a [`Request`] and returns a [`Comparison`] as JSON.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, machine: &str, profile: &str, request: &str) -> PyResult<String> {
    let (machine, profile) = (nouns::machine(machine, "machine")?, nouns::profile(profile, "profile")?);
    let request: Request = parse(request)?;
    let answer = py.detach(|| place::compare(&machine, &profile, &request));
    nouns::to_json(&answer.map_err(|error| errors::from_place(&error))?)
}

/// One policy of a comparison (JSON) as the text of a plan file (TOML).
#[pyfunction]
pub(crate) fn make_plan(machine: &str, profile: &str, comparison: &str, policy: &str) -> PyResult<String> {
    let (machine, profile) = (nouns::machine(machine, "machine")?, nouns::profile(profile, "profile")?);
    let comparison: Comparison = parse(comparison)?;
    place::plan_from(&machine, &profile, &comparison, policy).map(|plan| plan.to_toml()).ok_or_else(|| {
        let text = format!("policy `{policy}` is not in the comparison, or it cannot be used here");
        errors::wrong_request(format!("{text}\nhint: take one that has a time"))
    })
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
}

/// Threads on one socket; the machine's first where none is named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamRequest {
    socket: Option<String>,
    threads: u32,
}

/// Time of one placement; takes and returns JSON.
#[pyfunction]
pub(crate) fn predict(machine: &str, profile: &str, request: &str) -> PyResult<String> {
    let (machine, profile) = (nouns::machine(machine, "machine")?, nouns::profile(profile, "profile")?);
    let request: PredictRequest = parse(request)?;
    let placement =
        Placement::new(request.fractions, machine.memories.len()).map_err(|e| errors::from_placement(&e))?;
    if placement.rows().len() != profile.objects.len() {
        let (rows, objects) = (placement.rows().len(), profile.objects.len());
        let text = format!("{rows} rows of fractions for {objects} objects\nhint: give one row for each object");
        return Err(errors::wrong_request(text));
    }
    let run = |team: &TeamRequest| Ok(Run { socket: socket(&machine, team.socket.as_deref())?, threads: team.threads });
    let runs = request.teams.iter().map(run).collect::<PyResult<Vec<Run>>>()?;
    let predictor = Predictor::over(&machine, &profile, &runs).map_err(|error| errors::from_predict(&error))?;
    nouns::to_json(&predictor.predict(&placement))
}

/// Position of a socket; the first one where none is named.
fn socket(machine: &Machine, name: Option<&str>) -> PyResult<usize> {
    let Some(name) = name else { return Ok(0) };
    machine.socket_index(name).ok_or_else(|| errors::no_socket(machine, name))
}

/// A request comes from our own Python: what does not parse is a fault of ours, not of the user.
fn parse<T: DeserializeOwned>(request: &str) -> PyResult<T> {
    serde_json::from_str(request).map_err(|error| errors::internal(&error.to_string()))
}
