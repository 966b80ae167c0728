//! Profiles from samples that `perf` recorded elsewhere: `perf.data` files, version 2.
//!
//! Two kinds of recordings are read. CPU-clock samples with user registers
//! (`perf record -d -e cpu-clock:u --user-regs=…`) become a [`Recording`] and are worked out as our own
//! are; heap objects cannot be told apart without the preload library, so mappings stand in for them.
//! Memory samples (`perf mem record`: PEBS, IBS, SPE) name data addresses, where the data came from and
//! how long it took. `perf` itself is not needed.
//!
//! Layout: `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h`
//! of Linux. Nothing in a file is trusted: every count is held against the bytes that are left.

mod attributes;
mod cpu_clock;
mod cursor;
pub mod error;
mod features;
mod file;
mod mapping_objects;
mod memory_samples;
mod records;
#[cfg(test)]
mod written;

use std::path::Path;

use attributes::Attribute;
pub use error::PerfDataError;
use file::PerfFile;
use tierloom_recording::Recording;

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

/// The recording of a `perf.data` file; its skid is unknown, and where it does not name its processor, so is that.
///
/// # Errors
/// [`PerfDataError::File`], or [`PerfDataError::NotPerfData`] with what is wrong and what to record instead.
pub fn read(path: &Path) -> Result<Recording, PerfDataError> {
    let bytes = std::fs::read(path).map_err(|source| PerfDataError::File { path: path.to_owned(), source })?;
    let refused = |Flaw { problem, hint }| PerfDataError::NotPerfData { path: path.to_owned(), problem, hint };
    PerfFile::parse(&bytes).and_then(|file| recording(&file)).map_err(refused)
}

fn recording(file: &PerfFile<'_>) -> Result<Recording, Flaw> {
    if file.attributes.iter().any(Attribute::samples_memory) {
        return memory_samples::recording(file);
    }
    cpu_clock::recording(file)
}
