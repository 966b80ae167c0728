//! Recordings that are files: described, and worked out once the files of code are those that ran.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use tierloom_model::Warning;
use tierloom_model::warning::documents;
use tierloom_record::file;
use tierloom_recording::{Event, Exit, Recording};

use crate::code_files::{CodeFiles, DescribedFile};
use crate::counted;
use crate::documents::to_python;
use crate::errors;
use crate::nouns::Profile;
use crate::recording::worked_out;

/// Whether a recorder writes this file now.
#[pyfunction]
pub(crate) fn is_being_recorded(path: PathBuf) -> bool {
    file::is_growing(&path)
}

/// Works a recording out into a profile and its samples (an `.npy` file). Files of code are looked for
/// in the folders first; the one that most samples fell into must be the build that ran. `counts` are files in which
/// callgrind counted the same builds.
#[pyfunction]
pub(crate) fn analyse_recording(
    py: Python<'_>,
    path: PathBuf,
    name: Option<String>,
    folders: Vec<PathBuf>,
    counts: Vec<PathBuf>,
) -> PyResult<(Profile, Py<PyBytes>)> {
    let counts = py.detach(|| tierloom_callgrind::read(&counts)).map_err(|error| errors::from_callgrind(&error))?;
    let (_, mut recording) = loaded(py, &path)?;
    let files = py.detach(|| CodeFiles::find(&recording, &folders));
    if let Some(refusal) = files.refusal(&path) {
        return Err(errors::another_build(refusal));
    }
    recording.warnings.extend(files.warning());
    if !counts.is_empty() {
        if let Some(refusal) = py.detach(|| counted::refusal(&recording, &counts, &files)) {
            return Err(errors::another_build(refusal));
        }
        let doubts = counted::warnings(&recording, &counts);
        recording.warnings.extend(doubts);
    }
    worked_out(py, name, Some(&path), (&recording, &counts), &files.search)
}

/// What a recording holds, as plain data, and which of its files of code are here.
#[pyfunction]
pub(crate) fn describe_recording(py: Python<'_>, path: PathBuf, folders: Vec<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let (version, recording) = loaded(py, &path)?;
    let files = py.detach(|| CodeFiles::find(&recording, &folders).counted(&recording));
    to_python(py, &Described::of(version, &recording, &files))
}

fn loaded(py: Python<'_>, path: &Path) -> PyResult<(u8, Recording)> {
    py.detach(|| file::load_versioned(path)).map_err(|error| errors::from_recording(&error))
}

/// What a recording holds.
#[derive(Serialize)]
struct Described<'a> {
    format: u8,
    command: &'a [String],
    processor: &'a str,
    llc_bytes: u64,
    event: &'static str,
    hz: f64,
    skid_purity: f64,
    wall_s: f64,
    cpu_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    samples: usize,
    lost_samples: u64,
    allocations: usize,
    lost_allocations: u64,
    page_faults: usize,
    processes: usize,
    #[serde(serialize_with = "documents::serialize")]
    warnings: Vec<Warning>,
    binaries: Vec<DescribedFile<'a>>,
}

impl<'a> Described<'a> {
    fn of(version: u8, recording: &'a Recording, files: &'a CodeFiles) -> Self {
        Self {
            format: version,
            command: &recording.command,
            processor: &recording.processor.name,
            llc_bytes: recording.processor.llc_bytes,
            event: event_name(recording.event),
            hz: if recording.period_ns > 0.0 { 1e9 / recording.period_ns } else { 0.0 },
            skid_purity: recording.calibration.purity,
            wall_s: recording.wall_s,
            cpu_s: recording.cpu_s,
            exit_code: recording.exit.map(Exit::code),
            signal: recording.exit.and_then(Exit::signal),
            samples: recording.samples.len() + recording.accesses.len(),
            lost_samples: recording.lost,
            allocations: recording.allocations.len(),
            lost_allocations: recording.lost_allocations,
            page_faults: recording.faults.len(),
            processes: recording.mappings.iter().map(|mapping| mapping.pid).collect::<BTreeSet<_>>().len(),
            warnings: recording.warnings.clone(),
            binaries: files.described(),
        }
    }
}

fn event_name(event: Event) -> &'static str {
    match event {
        Event::CpuClock => "cpu-clock",
        Event::Ptrace => "ptrace",
        Event::MemoryAccess => "memory-access",
        Event::None => "none",
    }
}
