//! Recordings from samples that `perf` took elsewhere: `perf.data` files, version 2.
//!
//! Two kinds of samples are read. CPU-clock samples with user registers
//! (`perf record -d -e cpu-clock:u --user-regs=…`) become a [`Recording`] and are worked out as our own
//! are; heap objects cannot be told apart without the preload library, so mappings stand in for them.
//! Memory samples (`perf mem record`: PEBS, IBS, SPE) name data addresses, where the data came from and
//! how long it took. `perf` itself is not needed.
//!
//! Layout: `tools/perf/Documentation/perf.data-file-format.txt` of Linux; the kernel's own records in it are read
//! by `linux::perf`, as those of our rings are. A file is read from front to back and never held as a whole. Nothing
//! in it is trusted: every count is held against the bytes that are left.

mod attributes;
mod compressed;
mod cpu_clock;
mod error;
mod features;
mod file;
mod gathered;
mod mapping_objects;
mod memory_samples;
mod stream;
#[cfg(test)]
mod written;

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use error::Flaw;
pub use error::PerfDataError;
use file::PerfFile;
use tierloom_recording::Recording;

/// The recording of a `perf.data` file; its skid is unknown, and where it does not name its processor, so is that.
///
/// # Errors
/// [`PerfDataError::File`], or [`PerfDataError::NotPerfData`] with what is wrong and what to record instead.
pub fn read(path: &Path) -> Result<Recording, PerfDataError> {
    let opened = File::open(path).map_err(Flaw::Unreadable);
    let file = opened.and_then(|file| PerfFile::open(BufReader::new(file)));
    file.and_then(recording).map_err(|flaw| flaw.of(path))
}

fn recording(file: PerfFile<impl Read + Seek>) -> Result<Recording, Flaw> {
    if file.events.any(attributes::Attribute::samples_memory) {
        return memory_samples::recording(file);
    }
    cpu_clock::recording(file)
}
