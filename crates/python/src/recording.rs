//! Recording a program: the sampler, asked from Python.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tierloom_linux::root::Root;
use tierloom_model::{Profile, SampleRow, samples_to_npy};
use tierloom_sampler::import::import;
use tierloom_sampler::record::Backend;
use tierloom_sampler::{Processor, RecordRequest, Recording, SamplerError, analyse, record};

use crate::errors;

/// Names of the backends, as the command line and Python spell them.
const BACKENDS: [(&str, Backend); 3] = [("auto", Backend::Auto), ("perf", Backend::Perf), ("ptrace", Backend::Ptrace)];

/// Runs a program and returns its profile (JSON) and its samples (an `.npy` file).
///
/// `analysing` is called with the number of samples when the program has ended.
#[pyfunction]
pub(crate) fn record_profile(
    py: Python<'_>,
    command: Vec<OsString>,
    name: String,
    hz: Option<u32>,
    backend: &str,
    preload: Option<PathBuf>,
    analysing: Option<Py<PyAny>>,
) -> PyResult<(String, Py<PyBytes>)> {
    let request = RecordRequest { hz, backend: find_backend(backend)?, ..RecordRequest::new(command, preload) };
    let recorded = py.detach(|| record(&request, &mut |_| ()));
    let recording = recorded.map_err(|error| errors::from_sampler(&error))?;
    if let Some(analysing) = analysing {
        analysing.call1(py, (recording.samples.len(),))?;
    }
    let worked_out = py.detach(|| work_out(&recording, &request.root));
    let (profile, rows) = worked_out.map_err(|error| errors::from_sampler(&error))?;
    let profile = Profile { name, ..profile };
    Ok((profile.to_json(), PyBytes::new(py, &samples_to_npy(&rows)).unbind()))
}

/// Works a `perf.data` file out into a profile (JSON) and its samples (an `.npy` file).
#[pyfunction]
pub(crate) fn import_perf(py: Python<'_>, path: PathBuf, name: Option<String>) -> PyResult<(String, Py<PyBytes>)> {
    let worked_out = py.detach(|| import(&path, &Root::default()));
    let (mut profile, rows) = worked_out.map_err(|error| errors::from_sampler(&error))?;
    if let Some(name) = name {
        profile.name = name;
    }
    Ok((profile.to_json(), PyBytes::new(py, &samples_to_npy(&rows)).unbind()))
}

fn work_out(recording: &Recording, root: &Root) -> Result<(Profile, Vec<SampleRow>), SamplerError> {
    analyse(recording, &Processor::of(root))
}

fn find_backend(name: &str) -> PyResult<Backend> {
    BACKENDS.iter().find(|(known, _)| *known == name).map(|(_, backend)| *backend).ok_or_else(|| {
        let known: Vec<&str> = BACKENDS.iter().map(|(known, _)| *known).collect();
        errors::wrong_request(format!("there is no backend `{name}`\nhint: use one of: {}", known.join(", ")))
    })
}
