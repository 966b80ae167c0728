//! GPU memory expansion: a parameter set and a request in, an outcome out.

use pyo3::prelude::*;
use tierloom_expander::{self as expander, Parameters, Setup, Trace};

use crate::documents::{text_of, to_python};
use crate::errors;

/// Simulates a workload of the parameter set (TOML) under a setup; returns an outcome as plain data.
#[pyfunction]
pub(crate) fn expand<'py>(
    py: Python<'py>,
    parameters: &str,
    file: &str,
    workload: &str,
    setup: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let parameters = read(parameters, file)?;
    let setup = read_setup(setup)?;
    let outcome = py.detach(|| expander::simulate(&parameters, workload, &setup));
    to_python(py, &outcome.map_err(|error| errors::from_expander(&error))?)
}

/// Simulates a trace of 16-byte records; `compute` is the share of instructions beside its accesses.
#[pyfunction]
pub(crate) fn expand_trace<'py>(
    py: Python<'py>,
    parameters: &str,
    file: &str,
    records: &[u8],
    compute: f64,
    setup: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let parameters = read(parameters, file)?;
    let setup = read_setup(setup)?;
    let trace = Trace::from_bytes(records).map_err(|error| errors::from_expander(&error))?;
    let outcome = py.detach(|| expander::replay(&parameters, &trace, compute, &setup));
    to_python(py, &outcome.map_err(|error| errors::from_expander(&error))?)
}

fn read(text: &str, file: &str) -> PyResult<Parameters> {
    Parameters::from_toml(text, file).map_err(|error| errors::from_expander(&error))
}

/// Names of configurations are the user's; everything else comes from our own Python.
fn read_setup(setup: &Bound<'_, PyAny>) -> PyResult<Setup> {
    serde_json::from_str(&text_of(setup)?)
        .map_err(|error| errors::wrong_request(format!("{error}\nhint: `tierloom expand --help` lists what there is")))
}
