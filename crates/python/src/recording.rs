//! Recording a program: the sampler, asked from Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use tierloom_analysis::analyse_counted;
use tierloom_binary::Binaries;
use tierloom_linux::root::Root;
use tierloom_model::{Profile, SampleRow, Warning, samples_to_npy};
use tierloom_record::{Backend, RecordRequest, processor, record, skid};
use tierloom_recording::{Event, Exit, InstructionCounts, NearMemory, Processor, Recording, UnrecordedRun};

use crate::code_files::CodeFiles;
use crate::counted;
use crate::documents::text_of;
use crate::errors;
use crate::guarded::guarded;
use crate::nouns::Profile as Handle;

/// Names of the backends, as the command line and Python spell them.
const BACKENDS: [(&str, Backend); 3] = [("auto", Backend::Auto), ("perf", Backend::Perf), ("ptrace", Backend::Ptrace)];

/// What is recorded of a program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Samples per second of CPU time; the usual rate of the backend unless given.
    hz: Option<u32>,
    backend: String,
    /// Also let threads into copies of their code that count.
    windows: bool,
    /// Look ahead of halted threads for so much of their time.
    bursts: Option<f64>,
    /// Where the recording is written while it grows.
    journal: Option<PathBuf>,
    /// It is wanted for itself.
    keep: bool,
    /// What this machine's last-level cache holds, where that was measured, bytes.
    llc_bytes: Option<u64>,
    /// And what its nearest memory does: latency at rest, ns, and lines in flight by demand and where prefetched.
    memory: Option<[f64; 3]>,
    /// Runs of it without the recorder before this one: from start to end, s, and how they ended, as a shell tells it.
    unrecorded: Vec<(f64, u8)>,
}

/// Runs a program and returns its profile and its samples (an `.npy` file). `asked` holds
/// how. When the program has ended, `counting` is called with its exit code, the size of its last-level cache, bytes, and the
/// time that it took, s, and returns files in which callgrind counted another run of it; `analysing` is called with the
/// number of samples when the analysis starts.
#[pyfunction]
pub(crate) fn record_profile(
    py: Python<'_>,
    command: Vec<OsString>,
    name: String,
    preload: Option<PathBuf>,
    asked: &Bound<'_, PyAny>,
    counting: Option<Py<PyAny>>,
    analysing: Option<Py<PyAny>>,
) -> PyResult<(Handle, Py<PyBytes>)> {
    let asked: Asked = serde_json::from_str(&text_of(asked)?)
        .map_err(|error| errors::wrong_request(format!("what to record: {error}")))?;
    let Asked { hz, backend, windows, bursts: ahead, journal, keep, llc_bytes, memory, unrecorded } = asked;
    let backend = find_backend(&backend)?;
    let memory = memory.and_then(|[idle_ns, demand, stream]| NearMemory::new(idle_ns, demand, stream));
    let unrecorded = unrecorded.into_iter().map(|(wall_s, exit_code)| UnrecordedRun { wall_s, exit_code }).collect();
    let usual = RecordRequest::new(command, preload);
    let request = RecordRequest { hz, backend, windows, ahead, journal, keep, llc_bytes, memory, unrecorded, ..usual };
    let recorded = py.detach(|| record(&request, &mut |_| ()));
    let mut recording = recorded.map_err(|error| errors::from_record(&error))?;
    let counted = counting.map(|counting| count(py, &counting, &recording));
    if let Some(analysing) = analysing {
        analysing.call1(py, (recording.samples.len(),))?;
    }
    let files = py.detach(|| CodeFiles::find(&recording, &[]));
    recording.warnings.extend(files.warning());
    let counts = counted.map_or_else(InstructionCounts::default, |counted| usable(counted, &mut recording, &files));
    worked_out(py, Some(name), request.journal.as_deref(), (&recording, &counts), &files.search)
}

/// What was counted in another run; or why nothing was.
fn count(py: Python<'_>, counting: &Py<PyAny>, recording: &Recording) -> Result<InstructionCounts, String> {
    let told = |error: PyErr| error.value(py).to_string();
    let ran = (recording.exit.map(Exit::code), recording.processor.llc_bytes, recording.wall_s);
    let paths: Vec<PathBuf> = counting.call1(py, ran).and_then(|paths| paths.extract(py)).map_err(told)?;
    py.detach(|| tierloom_callgrind::read(&paths)).map_err(|error| errors::from_callgrind(&error).value(py).to_string())
}

/// The counts if they are those of what was recorded. The run itself is not lost where they are not.
fn usable(
    counted: Result<InstructionCounts, String>,
    recording: &mut Recording,
    files: &CodeFiles,
) -> InstructionCounts {
    let checked = counted.and_then(|counts| match counted::refusal(recording, &counts, files) {
        Some(refusal) => Err(refusal),
        None => Ok(counts),
    });
    let counts = checked.unwrap_or_else(|why| {
        recording.warnings.push(Warning::NotCounted { why });
        InstructionCounts::default()
    });
    if !counts.is_empty() {
        recording.warnings.extend(counted::warnings(recording, &counts));
    }
    counts
}

/// The profile and the samples (an `.npy` file) of a recording, which may be on disk, and of what was counted.
pub(crate) fn worked_out(
    py: Python<'_>,
    name: Option<String>,
    path: Option<&Path>,
    (recording, counts): (&Recording, &InstructionCounts),
    binaries: &(impl Binaries + Sync),
) -> PyResult<(Handle, Py<PyBytes>)> {
    let result: Result<(Profile, Vec<SampleRow>), String> =
        py.detach(|| guarded(path, || analyse_counted(recording, counts, binaries)));
    let (mut profile, rows) = result.map_err(errors::failed_analysis)?;
    if let Some(name) = name {
        profile.name = name;
    }
    Ok((Handle(profile), PyBytes::new(py, &samples_to_npy(&rows)).unbind()))
}

/// Works a `perf.data` file out into a profile and its samples (an `.npy` file); of several programs the one of this
/// process. Files of code are looked for in the folders first.
#[pyfunction]
pub(crate) fn import_perf(
    py: Python<'_>,
    path: PathBuf,
    name: Option<String>,
    process: Option<String>,
    folders: Vec<PathBuf>,
) -> PyResult<(Handle, Py<PyBytes>)> {
    let read = py.detach(|| {
        tierloom_perfdata::read(&path, process.as_deref()).map(|recording| completed(recording, &Root::default()))
    });
    let mut recording = read.map_err(|error| errors::from_perf_data(&error))?;
    let files = py.detach(|| CodeFiles::find_all(&recording, &folders));
    recording.warnings.extend(files.warning().into_iter().chain(files.doubt()));
    worked_out(py, name, Some(&path), (&recording, &InstructionCounts::default()), &files.search)
}

/// What the file does not say, from this machine: its processor where none is named, and the skid of the
/// same model.
fn completed(mut recording: Recording, root: &Root) -> Recording {
    let here = processor(root);
    if recording.processor == Processor::default() {
        recording.processor.clone_from(&here);
    }
    if recording.event == Event::CpuClock && recording.processor.name == here.name {
        recording.calibration = skid::calibrate(root).unwrap_or(recording.calibration);
    }
    recording
}

fn find_backend(name: &str) -> PyResult<Backend> {
    BACKENDS.iter().find(|(known, _)| *known == name).map(|(_, backend)| *backend).ok_or_else(|| {
        let known: Vec<&str> = BACKENDS.iter().map(|(known, _)| *known).collect();
        errors::wrong_request(format!("there is no backend `{name}`\nhint: use one of: {}", known.join(", ")))
    })
}
