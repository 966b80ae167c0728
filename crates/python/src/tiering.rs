//! The migration simulator: nouns as handles, requests and answers as plain data, traces as rows that Python reads
//! and writes.

use std::fmt::Display;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use tierloom_model::samples_from_npy;
use tierloom_tiering::trace::{Access, Format, Llc, Pace, Parser, ROW_BYTES};
use tierloom_tiering::{self as tiering, Costs, PLACEMENTS, Request, TieringError, policy};

use crate::documents::{request, text_of, to_python};
use crate::errors;
use crate::nouns::{Machine, Profile};
use crate::user_policies::{MigrationTerms, Raised};

/// What the simulator is told about a program.
#[pyclass(frozen)]
pub(crate) struct Workload(tiering::Workload);

#[pymethods]
impl Workload {
    /// Reads and checks the text of a workload file (TOML).
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, file: &str) -> PyResult<Self> {
        py.detach(|| tiering::Workload::from_toml(text, file)).map(Self).map_err(|error| from_tiering(&error))
    }

    /// A workload's document; it is checked when it is simulated.
    #[staticmethod]
    fn from_document(document: &Bound<'_, PyAny>) -> PyResult<Self> {
        let hint = "give a dictionary as `Workload.data` is one";
        let refused = |problem: &dyn Display| errors::bad_workload(&format!("workload: {problem}\nhint: {hint}"));
        let text = text_of(document).map_err(|error| refused(&error))?;
        serde_json::from_str(&text).map(Self).map_err(|error| refused(&error))
    }

    /// What a profile says, for a run on so many threads.
    #[staticmethod]
    fn of_profile(py: Python<'_>, profile: Py<Profile>, threads: u32) -> Self {
        Self(py.detach(|| tiering::Workload::from_profile(&profile.get().0, threads.max(1))))
    }

    /// The workload as plain data.
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }
}

/// A request, with the policy that the caller brings along, if there is one, and what that raises.
fn asked_with(asked: &Bound<'_, PyAny>, brought: Option<MigrationTerms>) -> PyResult<(Request, Raised)> {
    let raised = Raised::default();
    let asked = Request { brought: brought.map(|terms| terms.brought(&raised)), ..request(asked)? };
    Ok((asked, raised))
}

/// Simulates a workload on a machine; returns an outcome as plain data.
#[pyfunction]
#[pyo3(signature = (machine, workload, asked, brought=None))]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    machine: Py<Machine>,
    workload: Py<Workload>,
    asked: &Bound<'py, PyAny>,
    brought: Option<MigrationTerms>,
) -> PyResult<Bound<'py, PyAny>> {
    let (asked, raised) = asked_with(asked, brought)?;
    let answer = py.detach(|| tiering::simulate(&machine.get().0, &workload.get().0, &asked));
    raised.check()?;
    to_python(py, &answer.map_err(|error| from_tiering(&error))?)
}

/// Simulates a profile along its samples (the bytes of `samples.npy`), as [`simulate`] does without.
#[pyfunction]
#[pyo3(signature = (machine, profile, threads, samples, asked, brought=None))]
pub(crate) fn simulate_samples<'py>(
    py: Python<'py>,
    machine: Py<Machine>,
    profile: Py<Profile>,
    threads: u32,
    samples: &[u8],
    asked: &Bound<'py, PyAny>,
    brought: Option<MigrationTerms>,
) -> PyResult<Bound<'py, PyAny>> {
    let (asked, raised) = asked_with(asked, brought)?;
    let rows = py.detach(|| samples_from_npy(samples)).map_err(|problem| {
        let hint = "record the program again, or leave out the samples";
        errors::bad_trace(&format!("samples.npy: {problem}\n  hint: {hint}"))
    })?;
    let (machine, profile) = (&machine.get().0, &profile.get().0);
    let answer = py.detach(|| tiering::simulate_samples(machine, profile, threads.max(1), &rows, &asked));
    raised.check()?;
    to_python(py, &answer.map_err(|error| from_tiering(&error))?)
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
#[pyo3(signature = (machine, asked, file, pace, read, brought=None))]
pub(crate) fn simulate_trace<'py>(
    py: Python<'py>,
    machine: Py<Machine>,
    asked: &Bound<'py, PyAny>,
    file: &str,
    pace: &Bound<'py, PyAny>,
    read: Py<PyAny>,
    brought: Option<MigrationTerms>,
) -> PyResult<Bound<'py, PyAny>> {
    let ((asked, by_policy), pace): (_, TracePace) = (asked_with(asked, brought)?, request(pace)?);
    let pace = Pace { threads: pace.threads, mlp: pace.mlp, ns_per_access: pace.ns_per_access };
    let machine = &machine.get().0;
    let (mut raised, mut row) = (None, 0);
    let answer = py.detach(|| {
        tiering::trace::simulate_trace(machine, &asked, file, pace, |out| {
            Python::attach(|py| take_rows(read.bind(py), &mut row, out)).map_err(|error| {
                raised = Some(error);
                TieringError::BadTrace { file: String::new(), row, problem: String::new(), hint: String::new() }
            })
        })
    });
    by_policy.check()?;
    match (raised, answer) {
        (Some(error), _) => Err(error),
        (None, answer) => to_python(py, &answer.map_err(|error| from_tiering(&error))?),
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
        let py = read.py();
        let fed = py.detach(|| if done { parser.finish(&mut found) } else { parser.feed(text, &mut found) });
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

/// Policies of the simulator, shapes of its placements' names, and default costs of events, as plain data.
#[pyfunction]
pub(crate) fn simulator_terms(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    #[derive(serde::Serialize)]
    struct Terms {
        policies: Vec<(String, String, Vec<policy::Knob>)>,
        placements: &'static str,
        costs: Costs,
    }
    let mut policies = Vec::new();
    for name in policy::names() {
        let policy = policy::by_name(name).map_err(|error| from_tiering(&error))?;
        policies.push((name.to_owned(), policy.about().to_owned(), policy.knobs()));
    }
    to_python(py, &Terms { policies, placements: PLACEMENTS, costs: Costs::default() })
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
