//! Recordings from samples that `perf` took elsewhere: `perf.data` files, version 2.
//!
//! Two kinds of samples are read. Memory samples (`perf mem record`: PEBS, IBS, SPE) name data addresses, where the data
//! came from and how long it took; any event can be asked for these, so what makes one is that its data source says load
//! or store. Samples of CPU time with user registers, by a clock or by cycles, become a [`Recording`] that is worked out
//! as our own are; heap objects cannot be told apart without the preload library, so mappings stand in for them. `perf`
//! itself is not needed.
//!
//! Layout: `tools/perf/Documentation/perf.data-file-format.txt` of Linux; the kernel's own records in it are read
//! by `linux::perf`, as those of our rings are. A file is read from front to back and never held as a whole. Nothing
//! in it is trusted: every count is held against the bytes that are left.

mod attributes;
mod compressed;
mod cpu_time;
mod data_source;
mod equal_time;
mod error;
mod event_names;
mod features;
mod file;
mod gathered;
mod mapping_objects;
#[cfg(test)]
mod meaning;
mod memory_samples;
mod programs;
mod stream;
mod text;
mod thread_stacks;
#[cfg(test)]
mod written;

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use error::Flaw;
pub use error::PerfDataError;
use file::PerfFile;
use tierloom_recording::Recording;

/// The recording of a `perf.data` file; its skid is unknown, and where it does not name its processor, so is that.
/// `process` chooses a process of it, by id or name, with those that it started.
///
/// # Errors
/// [`PerfDataError::File`], or [`PerfDataError::NotPerfData`] with what is wrong and what to record instead.
pub fn read(path: &Path, process: Option<&str>) -> Result<Recording, PerfDataError> {
    opened(path).and_then(|file| recording(file, process)).map_err(|flaw| flaw.of(path))
}

/// A file, or a folder of `perf record --kcore` or `--threads`: `data` in it, and behind that what the threads that
/// recorded wrote, `data.0` and so on.
fn opened(path: &Path) -> Result<PerfFile<BufReader<File>>, Flaw> {
    let open = |path: PathBuf| File::open(path).map(BufReader::new);
    if !path.is_dir() {
        return PerfFile::open(open(path.to_owned()).map_err(Flaw::Unreadable)?);
    }
    let mut file = PerfFile::open(open(path.join("data")).map_err(Flaw::Unreadable)?)?;
    for number in 0..parts(path) {
        let part = format!("data.{number}");
        let missing = || Flaw::new(format!("{part} of this folder is missing"), "copy the whole folder");
        file.append(open(path.join(&part)).map_err(|_| missing())?);
    }
    Ok(file)
}

/// How many threads recorded, by the highest number of a part.
fn parts(folder: &Path) -> u64 {
    let names = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.strip_prefix("data.")?.parse::<u64>().ok());
    numbers.max().map_or(0, |last| last.saturating_add(1))
}

fn recording(mut file: PerfFile<impl Read + Seek>, process: Option<&str>) -> Result<Recording, Flaw> {
    if file.events.iter().any(attributes::Attribute::says_sources)
        && let Some(recording) = memory_samples::recording(&mut file, process)?
    {
        return Ok(recording);
    }
    cpu_time::recording(&mut file, process)
}
