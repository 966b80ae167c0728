//! The one place where errors of the Rust crates become Python exceptions of `tierloom.errors`.
//!
//! An exception's class decides the exit code of the command line; its text is the Rust error's.

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyErr, import_exception};
use tierloom_callgrind::CallgrindError;
use tierloom_contention::ContentionError;
use tierloom_expander::ExpanderError;
use tierloom_launch::LaunchError;
use tierloom_model::{Machine, ModelError};
use tierloom_perfdata::PerfDataError;
use tierloom_place::{MatchError, PlaceError};
use tierloom_pmem::PmemError;
use tierloom_predict::PredictError;
use tierloom_probe::ProbeError;
use tierloom_record::RecordError;
use tierloom_record::file::FileError;
use tierloom_runner::RunError;

import_exception!(tierloom.errors, BuildError);
import_exception!(tierloom.errors, MachineError);
import_exception!(tierloom.errors, MeasurementError);
import_exception!(tierloom.errors, PlacementError);
import_exception!(tierloom.errors, PlanError);
import_exception!(tierloom.errors, PoolError);
import_exception!(tierloom.errors, ProfileError);
import_exception!(tierloom.errors, ProgramError);
import_exception!(tierloom.errors, RecordingError);
import_exception!(tierloom.errors, RequestError);
import_exception!(tierloom.errors, TraceError);
import_exception!(tierloom.errors, WorkloadError);

/// Exit codes of shells for programs that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Which file a [`ModelError`] is about.
#[derive(Clone, Copy)]
pub(crate) enum Noun {
    Machine,
    Profile,
    Plan,
}

/// A file that does not hold what it should hold.
pub(crate) fn from_model(noun: Noun, error: &ModelError) -> PyErr {
    about(noun, error.to_string())
}

/// A document that cannot be JSON.
pub(crate) fn no_document(noun: Noun, file: &str, error: &PyErr) -> PyErr {
    about(noun, format!("{file}: {error}\nhint: give a dictionary of texts, numbers, lists and dictionaries"))
}

fn about(noun: Noun, text: String) -> PyErr {
    match noun {
        Noun::Machine => MachineError::new_err(text),
        Noun::Profile => ProfileError::new_err(text),
        Noun::Plan => PlanError::new_err(text),
    }
}

/// A machine whose loads make no curve.
pub(crate) fn from_contention(error: &ContentionError) -> PyErr {
    match error {
        ContentionError::BadLoad { .. } => MachineError::new_err(error.to_string()),
        ContentionError::NoSocket { .. } => RequestError::new_err(error.to_string()),
    }
}

/// A machine, a profile and a run that do not go together.
pub(crate) fn from_predict(error: &PredictError) -> PyErr {
    match error {
        PredictError::Contention(error) => from_contention(error),
        PredictError::RanOn { .. } => MachineError::new_err(error.to_string()),
        PredictError::UnknownObject { .. } => ProfileError::new_err(error.to_string()),
        PredictError::NoThreads { .. } | PredictError::TooManyThreads { .. } | PredictError::SocketTwice { .. } => {
            RequestError::new_err(error.to_string())
        }
    }
}

/// A wrong request, or the answer that no placement does what is asked.
pub(crate) fn from_place(error: &PlaceError) -> PyErr {
    match error {
        PlaceError::UnknownSocket { .. }
        | PlaceError::UnknownNode { .. }
        | PlaceError::UnknownObject { .. }
        | PlaceError::NotReachable { .. }
        | PlaceError::NotAllowed { .. }
        | PlaceError::NoNodes
        | PlaceError::UnknownPolicy { .. }
        | PlaceError::BadPolicy { .. }
        | PlaceError::Brought { .. }
        | PlaceError::BadBudget { .. }
        | PlaceError::BadSlowdown { .. } => RequestError::new_err(error.to_string()),
        PlaceError::TooLarge { .. }
        | PlaceError::DoesNotFit { .. }
        | PlaceError::OutOfReach { .. }
        | PlaceError::NothingFits { .. } => PlacementError::new_err(error.to_string()),
        PlaceError::Predict(error) => from_predict(error),
        PlaceError::Placement(error) => from_placement(error),
    }
}

/// Memories of a plan that are not this machine's nodes, or not surely.
pub(crate) fn from_match(error: &MatchError) -> PyErr {
    RequestError::new_err(error.to_string())
}

/// Fractions that are no placement.
pub(crate) fn from_placement(error: &tierloom_model::PlacementError) -> PyErr {
    RequestError::new_err(format!("{error}\nhint: give shares of an object's pages in the machine's memories"))
}

/// A socket that the machine does not have.
pub(crate) fn no_socket(machine: &Machine, name: &str) -> PyErr {
    let known: Vec<&str> = machine.sockets.iter().map(|socket| socket.name.as_str()).collect();
    let text = format!("machine `{}` has no socket `{name}`", machine.name);
    RequestError::new_err(format!("{text}\nhint: use one of: {}", known.join(", ")))
}

/// A pool that cannot be used, or a request that a pool refuses.
pub(crate) fn from_pmem(error: &PmemError) -> PyErr {
    match error {
        PmemError::Request { .. } => RequestError::new_err(error.to_string()),
        _ => PoolError::new_err(error.to_string()),
    }
}

/// The recorder's crates indent their hints; everybody else starts a line with them.
fn told(error: &impl std::fmt::Display) -> String {
    error.to_string().replace("\n  hint:", "\nhint:")
}

/// A program that cannot be started.
fn from_launch(error: &LaunchError) -> PyErr {
    match error {
        LaunchError::NotFound { .. } => ProgramError::new_err((told(error), NOT_FOUND)),
        LaunchError::NotExecutable { .. } => ProgramError::new_err((told(error), NOT_EXECUTABLE)),
        LaunchError::NoCommand => RequestError::new_err(told(error)),
        LaunchError::NoPreload { .. } | LaunchError::Kernel { .. } => RecordingError::new_err(told(error)),
    }
}

/// A program that cannot be recorded.
pub(crate) fn from_record(error: &RecordError) -> PyErr {
    match error {
        RecordError::Launch(error) => from_launch(error),
        RecordError::Rate { .. }
        | RecordError::Output { .. }
        | RecordError::NotARecording { .. }
        | RecordError::BeingRecorded { .. } => RequestError::new_err(told(error)),
        RecordError::PerfRefused { .. }
        | RecordError::PtraceRefused { .. }
        | RecordError::NoSamples { .. }
        | RecordError::Kernel { .. }
        | RecordError::NoSpace { .. } => RecordingError::new_err(told(error)),
    }
}

/// A program that cannot be run under a plan.
pub(crate) fn from_run(error: &RunError) -> PyErr {
    match error {
        RunError::Launch(error) => from_launch(error),
        RunError::SeveralWeights { .. } | RunError::NotPlaced { .. } => RequestError::new_err(told(error)),
        RunError::Kernel { .. } | RunError::HostWeights { .. } | RunError::HostWeightsTaken { .. } => {
            RecordingError::new_err(told(error))
        }
    }
}

/// A file that is no recording.
pub(crate) fn from_recording(error: &FileError) -> PyErr {
    match error {
        FileError::NotARecording { .. } => RequestError::new_err(told(error)),
        FileError::Io { .. } => RecordingError::new_err(told(error)),
    }
}

/// Files of code that are not those that were recorded.
pub(crate) fn another_build(text: String) -> PyErr {
    BuildError::new_err(text)
}

/// A file that is no `perf.data` that can be worked out.
pub(crate) fn from_perf_data(error: &PerfDataError) -> PyErr {
    match error {
        PerfDataError::NotPerfData { .. } => RequestError::new_err(told(error)),
        PerfDataError::File { .. } => RecordingError::new_err(told(error)),
    }
}

/// A file that is no callgrind's, or without what is asked of it.
pub(crate) fn from_callgrind(error: &CallgrindError) -> PyErr {
    match error {
        CallgrindError::File { .. }
        | CallgrindError::Twice { .. }
        | CallgrindError::PartMissing { .. }
        | CallgrindError::OtherCaches { .. }
        | CallgrindError::NotCallgrind { .. } => RequestError::new_err(told(error)),
    }
}

/// An analysis that broke a promise of ours.
pub(crate) fn failed_analysis(text: String) -> PyErr {
    RecordingError::new_err(text)
}

/// A machine that cannot be measured.
pub(crate) fn from_probe(error: &ProbeError) -> PyErr {
    match error {
        ProbeError::NoCoreLeft { .. } | ProbeError::Slower { .. } => RequestError::new_err(error.to_string()),
        _ => MeasurementError::new_err(error.to_string()),
    }
}

/// A file or a tree that holds no machine.
pub(crate) fn bad_machine(text: &str) -> PyErr {
    MachineError::new_err(text.to_owned())
}

/// A parameter set or a request that cannot be simulated.
pub(crate) fn from_expander(error: &ExpanderError) -> PyErr {
    match error {
        ExpanderError::Broken(text) => internal(text),
        ExpanderError::Syntax { .. }
        | ExpanderError::Figure { .. }
        | ExpanderError::Unknown { .. }
        | ExpanderError::Request { .. } => RequestError::new_err(error.to_string()),
    }
}

/// A path that the machine does not have.
pub(crate) fn no_path(machine: &Machine, socket: &str, memory: &str) -> PyErr {
    let known: Vec<String> = machine.paths.iter().map(|path| format!("{} to {}", path.from, path.to)).collect();
    let text = format!("machine `{}` has no path from `{socket}` to `{memory}`", machine.name);
    RequestError::new_err(format!("{text}\nhint: use one of: {}", known.join(", ")))
}

/// A workload file that does not hold a workload.
pub(crate) fn bad_workload(text: &str) -> PyErr {
    WorkloadError::new_err(text.to_owned())
}

/// A trace with a row that cannot be read.
pub(crate) fn bad_trace(text: &str) -> PyErr {
    TraceError::new_err(text.to_owned())
}

/// Data that finds no room.
pub(crate) fn no_room(text: &str) -> PyErr {
    PlacementError::new_err(text.to_owned())
}

/// A request that cannot be right, whatever the files say.
pub(crate) fn wrong_request(text: String) -> PyErr {
    RequestError::new_err(text)
}

/// A promise of our own that does not hold: worth a bug report.
pub(crate) fn internal(text: &str) -> PyErr {
    let hint = "this is a fault of tierloom: please report it, with the command and the files that led to it";
    PyRuntimeError::new_err(format!("tierloom broke a promise of its own: {text}\nhint: {hint}"))
}
