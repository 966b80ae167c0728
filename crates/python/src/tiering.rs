//! The migration simulator: machines and workloads as text, requests and answers as JSON, traces as
//! rows that Python reads and writes.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use tierloom_model::samples_from_npy;
use tierloom_tiering::trace::{Access, Format, Llc, Pace, Parser, ROW_BYTES};
use tierloom_tiering::{self as tiering, Costs, PLACEMENTS, Request, TieringError, Workload, policy};

use crate::{errors, nouns};

/// Checks the text of a workload file (TOML) and returns the workload as JSON.
#[pyfunction]
pub(crate) fn check_workload(text: &str, file: &str) -> PyResult<String> {
    nouns::to_json(&workload(text, file)?)
}

/// A profile (JSON) as a workload (JSON) for a run on so many threads.
#[pyfunction]
pub(crate) fn profile_workload(profile: &str, threads: u32) -> PyResult<String> {
    nouns::to_json(&Workload::from_profile(&nouns::profile(profile, "profile")?, threads.max(1)))
}

/// Simulates a workload (JSON) on a machine (TOML); takes a request and returns an outcome as JSON.
#[pyfunction]
pub(crate) fn simulate(py: Python<'_>, machine: &str, workload: &str, request: &str) -> PyResult<String> {
    let machine = nouns::machine(machine, "machine")?;
    let (workload, request): (Workload, Request) = (parse(workload)?, parse(request)?);
    let answer = py.detach(|| tiering::simulate(&machine, &workload, &request));
    nouns::to_json(&answer.map_err(|error| from_tiering(&error))?)
}

/// Simulates a profile (JSON) along its samples (the bytes of `samples.npy`), as [`simulate`] does without.
#[pyfunction]
pub(crate) fn simulate_samples(
    py: Python<'_>,
    machine: &str,
    profile: &str,
    threads: u32,
    samples: &[u8],
    request: &str,
) -> PyResult<String> {
    let (machine, request): (_, Request) = (nouns::machine(machine, "machine")?, parse(request)?);
    let profile = nouns::profile(profile, "profile")?;
    let rows = samples_from_npy(samples).map_err(|problem| {
        let hint = "record the program again, or leave out the samples";
        errors::bad_trace(&format!("samples.npy: {problem}\n  hint: {hint}"))
    })?;
    let answer = py.detach(|| tiering::simulate_samples(&machine, &profile, threads.max(1), &rows, &request));
    nouns::to_json(&answer.map_err(|error| from_tiering(&error))?)
}

/// What a trace does not say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TracePace {
    threads: u32,
    mlp: f64,
    ns_per_access: f64,
}

/// Simulates a trace on a machine; `read` returns packed rows, and none at the end; `file` is only named in errors.
#[pyfunction]
pub(crate) fn simulate_trace(
    machine: &str,
    request: &str,
    file: &str,
    pace: &str,
    read: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let machine = nouns::machine(machine, "machine")?;
    let (request, pace): (Request, TracePace) = (parse(request)?, parse(pace)?);
    let pace = Pace { threads: pace.threads, mlp: pace.mlp, ns_per_access: pace.ns_per_access };
    let (mut raised, mut row) = (None, 0);
    let answer = tiering::trace::simulate_trace(&machine, &request, file, pace, |out| {
        take_rows(read, &mut row, out).map_err(|error| {
            raised = Some(error);
            TieringError::BadTrace { file: String::new(), row, problem: String::new(), hint: String::new() }
        })
    });
    match (raised, answer) {
        (Some(error), _) => Err(error),
        (None, answer) => nouns::to_json(&answer.map_err(|error| from_tiering(&error))?),
    }
}

fn take_rows(read: &Bound<'_, PyAny>, row: &mut u64, out: &mut Vec<Access>) -> PyResult<()> {
    let rows = read.call0()?;
    let rows: &[u8] = rows.extract()?;
    for bytes in rows.chunks(ROW_BYTES) {
        *row += 1;
        let access = Access::from_row(bytes)
            .ok_or_else(|| errors::bad_trace(&format!("row {row}: it is cut off, or `write` is not 0 or 1")))?;
        out.push(access);
    }
    Ok(())
}

/// Turns the text of a trace into packed rows; `read` returns some text and none at the end, `write`
/// takes rows. Returns the lines read and the accesses written.
#[pyfunction]
#[pyo3(signature = (kind, file, llc_bytes, read, write))]
pub(crate) fn import_trace(
    kind: &str,
    file: &str,
    llc_bytes: Option<u64>,
    read: &Bound<'_, PyAny>,
    write: &Bound<'_, PyAny>,
) -> PyResult<(u64, u64)> {
    let format: Format = kind.parse().map_err(|error| from_tiering(&error))?;
    let mut llc = llc_bytes.map(Llc::new).transpose().map_err(|error| from_tiering(&error))?;
    let (mut parser, mut found, mut written) = (Parser::new(format, file), Vec::new(), 0);
    loop {
        let text = read.call0()?;
        let text: &[u8] = text.extract()?;
        let done = text.is_empty();
        let fed = if done { parser.finish(&mut found) } else { parser.feed(text, &mut found) };
        fed.map_err(|error| from_tiering(&error))?;
        written += hand_on(&mut found, llc.as_mut(), write)?;
        if done {
            return Ok((parser.rows(), written));
        }
    }
}

/// Writes what gets past the cache, as rows.
fn hand_on(found: &mut Vec<Access>, llc: Option<&mut Llc>, write: &Bound<'_, PyAny>) -> PyResult<u64> {
    let mut passed = Vec::new();
    match llc {
        Some(llc) => found.drain(..).for_each(|access| llc.pass(access, &mut passed)),
        None => passed.append(found),
    }
    let mut rows = Vec::with_capacity(passed.len() * ROW_BYTES);
    for access in &passed {
        access.to_row(&mut rows);
    }
    write.call1((PyBytes::new(write.py(), &rows),))?;
    Ok(passed.len() as u64)
}

/// Policies of the simulator, shapes of its placements' names, and default costs of events, as JSON.
#[pyfunction]
pub(crate) fn simulator_terms() -> PyResult<String> {
    #[derive(serde::Serialize)]
    struct Terms {
        policies: Vec<(String, String, Vec<policy::Knob>)>,
        placements: &'static str,
        costs: Costs,
    }
    let mut policies = Vec::new();
    for name in policy::NAMES {
        let policy = policy::by_name(name).map_err(|error| from_tiering(&error))?;
        policies.push((name.to_owned(), policy.about().to_owned(), policy.knobs()));
    }
    nouns::to_json(&Terms { policies, placements: PLACEMENTS, costs: Costs::default() })
}

fn workload(text: &str, file: &str) -> PyResult<Workload> {
    Workload::from_toml(text, file).map_err(|error| from_tiering(&error))
}

/// What comes from our own Python: what does not parse is a fault of ours, not of the user.
fn parse<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| errors::internal(&error.to_string()))
}

/// A workload or a trace that is wrong, a wrong request, or the answer that the data does not fit.
fn from_tiering(error: &TieringError) -> PyErr {
    let text = error.to_string();
    match error {
        TieringError::Contention(error) => errors::from_contention(error),
        TieringError::BadWorkload { .. } => errors::bad_workload(&text),
        TieringError::BadTrace { .. } => errors::bad_trace(&text),
        TieringError::BadRequest { .. } => errors::wrong_request(text),
        TieringError::DoesNotFit { .. } => errors::no_room(&text),
    }
}
