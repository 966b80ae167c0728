//! Measuring this machine: the probe, asked from Python.

use std::ops::ControlFlow;

use pyo3::prelude::*;
use tierloom_linux::host::host;
use tierloom_linux::root::Root;
use tierloom_probe::{MachineFacts, ProbeError, Progress, Request, Scale, beside, describe, measure, monotone};

use crate::documents::{request, to_python};
use crate::errors;

/// Measures this machine and returns it as a machine file (TOML), with everything behind it as plain data.
///
/// `tell` is called before each figure with the share that is done, the seconds left, and a few
/// words; what it raises, and Ctrl-C, end the measurement.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn measure_machine(
    py: Python<'_>,
    name: String,
    date: String,
    full: bool,
    tell: Option<Py<PyAny>>,
) -> PyResult<(String, Bound<'_, PyAny>)> {
    let request = Request { name, date, scale: if full { Scale::FULL } else { Scale::QUICK } };
    let mut raised = None;
    let measured = py.detach(|| {
        measure(&request, &mut |progress| match pass_on(tell.as_ref(), progress) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let measured = measured.map_err(|error| errors::from_probe(&error))?;
    Ok((measured.machine.to_toml(), to_python(py, &measured.report)?))
}

/// Calls `body` with the CPUs that are left while neighbours read near memory at about `gb_s`, and returns what they read
/// meanwhile, GB/s, with its answer; `keep` cores at least are left.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn beside_neighbours(py: Python<'_>, gb_s: f64, keep: usize, body: Py<PyAny>) -> PyResult<(f64, Py<PyAny>)> {
    let found = py.detach(|| beside(gb_s, keep, |cpus| Python::attach(|py| body.call1(py, (cpus.to_vec(),)))));
    let found = found.map_err(|error| errors::from_probe(&error))?;
    Ok((found.gb_s, found.answer?))
}

/// Which host the `/proc` below a folder is of, as machine files and profiles name it.
#[pyfunction]
pub(crate) fn host_identity(root: &str) -> String {
    host(&Root::at(root))
}

/// What the `/proc` and `/sys` below a folder tell about a machine, as plain data.
#[pyfunction]
pub(crate) fn describe_machine<'py>(py: Python<'py>, root: &str) -> PyResult<Bound<'py, PyAny>> {
    let described = py.detach(|| describe(&Root::at(root))).map_err(|error| match error {
        ProbeError::NoMachine => errors::bad_machine(&format!("{root}: {error}")),
        error => errors::bad_machine(&error.to_string()),
    })?;
    to_python(py, &described)
}

/// What each memory of a machine is made of, by what is known of its nodes.
#[pyfunction]
pub(crate) fn memory_kinds<'py>(machine: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let facts: MachineFacts = request(machine)?;
    to_python(machine.py(), &tierloom_probe::memory_kinds(&facts))
}

/// `(GB/s, ns)` points in the order of growing load, as a curve that rises in both.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn rising_curve(points: Vec<[f64; 2]>) -> Vec<(f64, f64)> {
    monotone(&points).into_iter().map(|[gb_s, ns]| (gb_s, ns)).collect()
}

fn pass_on(tell: Option<&Py<PyAny>>, progress: &Progress) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(tell) = tell {
            tell.call1(py, (progress.fraction, progress.seconds_left, progress.doing.as_str()))?;
        }
        Ok(())
    })
}
