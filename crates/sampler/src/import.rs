//! Profiles from samples that `perf` recorded elsewhere: `perf.data` files, version 2.
//!
//! Two kinds of recordings are read. CPU-clock samples with user registers
//! (`perf record -d -e cpu-clock:u --user-regs=…`) become a [`Recording`] and are worked out as our own
//! are; heap objects cannot be told apart without the preload library, so mappings stand in for them.
//! Memory samples (`perf mem record`: PEBS, IBS, SPE) name data addresses, where the data came from and
//! how long it took, and become a profile directly. `perf` itself is not needed.
//!
//! Layout: `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h`
//! of Linux. Nothing in a file is trusted: every count is held against the bytes that are left.

mod anonymous;
mod clock;
mod features;
mod file;
mod layout;
mod memory;
mod reader;
mod records;
#[cfg(test)]
mod written;

use std::path::Path;

use tierloom_linux::root::Root;
use tierloom_model::{Profile, SampleRow};

use crate::analyse::{Processor, analyse};
use crate::calibrate::calibrate;
use crate::error::SamplerError;
use crate::recording::Recording;
use file::PerfFile;

/// What is wrong with a file, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    problem: String,
    hint: &'static str,
}

impl Flaw {
    fn new(problem: impl Into<String>, hint: &'static str) -> Self {
        Self { problem: problem.into(), hint }
    }

    fn damaged(what: &str) -> Self {
        Self::new(format!("{what} is cut off or damaged"), "record again, and let `perf record` end by itself")
    }
}

/// Works a `perf.data` file out into a profile and its samples; `root` is the machine that reads it.
///
/// # Errors
/// [`SamplerError::File`], or [`SamplerError::NotPerfData`] with what is wrong and what to record instead.
pub fn import(path: &Path, root: &Root) -> Result<(Profile, Vec<SampleRow>), SamplerError> {
    let bytes = std::fs::read(path).map_err(|source| SamplerError::File { path: path.to_owned(), source })?;
    let refused = |Flaw { problem, hint }| SamplerError::NotPerfData { path: path.to_owned(), problem, hint };
    let file = PerfFile::parse(&bytes).map_err(refused)?;
    let here = Processor::of(root);
    let processor = file.features.processor(&here);
    if file.attributes.iter().any(layout::Attribute::samples_memory) {
        return memory::profile(&file, &processor).map_err(refused);
    }
    let mut recording = clock::recording(&file).map_err(refused)?;
    if processor.name == here.name {
        // Skid is the processor's: what is measured here holds for a recording of the same model.
        recording.calibration = calibrate(root).unwrap_or(recording.calibration);
    }
    analyse(&recording, &processor)
}

/// As [`import`] does before the analysis: the recording of a file of CPU-clock samples.
///
/// # Errors
/// As [`import`].
pub fn recording(path: &Path) -> Result<Recording, SamplerError> {
    let bytes = std::fs::read(path).map_err(|source| SamplerError::File { path: path.to_owned(), source })?;
    let refused = |Flaw { problem, hint }| SamplerError::NotPerfData { path: path.to_owned(), problem, hint };
    PerfFile::parse(&bytes).and_then(|file| clock::recording(&file)).map_err(refused)
}
