//! Recordings that are files: described, and worked out once the files of code are those that ran.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use tierloom_analysis::samples_by_file;
use tierloom_binary::search::{Found, Search};
use tierloom_model::Warning;
use tierloom_model::warning::documents;
use tierloom_record::file;
use tierloom_recording::{Event, Exit, Recording, VERSION};

use crate::errors;
use crate::recording::worked_out;

/// Whether a recorder writes this file now.
#[pyfunction]
pub(crate) fn is_being_recorded(path: PathBuf) -> bool {
    file::is_growing(&path)
}

/// Works a recording out into a profile (JSON) and its samples (an `.npy` file). Files of code are looked for
/// in the folders first; the one that most samples fell into must be the build that ran.
#[pyfunction]
pub(crate) fn analyse_recording(
    py: Python<'_>,
    path: PathBuf,
    name: Option<String>,
    folders: Vec<PathBuf>,
) -> PyResult<(String, Py<PyBytes>)> {
    let mut recording = loaded(py, &path)?;
    let files = py.detach(|| CodeFiles::find(&recording, &folders));
    if let Some(refusal) = files.refusal(&path) {
        return Err(errors::another_build(refusal));
    }
    recording.warnings.extend(files.warning());
    worked_out(py, name, Some(&path), &recording, &files.search)
}

/// What a recording holds (JSON), and which of its files of code are here.
#[pyfunction]
pub(crate) fn describe_recording(py: Python<'_>, path: PathBuf, folders: Vec<PathBuf>) -> PyResult<String> {
    let recording = loaded(py, &path)?;
    let files = py.detach(|| CodeFiles::find(&recording, &folders).counted(&recording));
    serde_json::to_string(&Described::of(&recording, &files)).map_err(|error| errors::internal(&error.to_string()))
}

fn loaded(py: Python<'_>, path: &Path) -> PyResult<Recording> {
    py.detach(|| file::load(path)).map_err(|error| errors::from_recording(&error))
}

/// The files of code of a recording.
pub(crate) struct CodeFiles {
    pub(crate) search: Search,
    builds: BTreeMap<String, String>,
    samples: BTreeMap<String, u64>,
}

impl CodeFiles {
    pub(crate) fn find(recording: &Recording, folders: &[PathBuf]) -> Self {
        let builds = recording.binaries.clone();
        let files = Self { search: Search::new(&builds, folders), builds, samples: BTreeMap::new() };
        let is_same = |found: &Found| matches!(found, Found::Same { .. });
        // Where all is here, nobody asks who was sampled.
        if files.search.found().values().all(is_same) { files } else { files.counted(recording) }
    }

    fn counted(self, recording: &Recording) -> Self {
        Self { samples: samples_by_file(recording), ..self }
    }

    /// Files that are not here as they ran, of those that samples fell into; most samples first.
    fn lacking(&self) -> Vec<(&str, &Found)> {
        let found = self.search.found().iter().map(|(path, found)| (path.as_str(), found));
        let is_lacking =
            |(path, found): &(&str, &Found)| !matches!(found, Found::Same { .. }) && self.samples.contains_key(*path);
        let mut lacking: Vec<(&str, &Found)> = found.filter(is_lacking).collect();
        lacking.sort_by_key(|(path, _)| std::cmp::Reverse(self.samples[*path]));
        lacking
    }

    /// Why nothing can be said of the program: the file that most samples fell into is not the one that ran.
    fn refusal(&self, recording: &Path) -> Option<String> {
        let (own, _) = self.samples.iter().max_by_key(|(_, samples)| **samples)?;
        let build = &self.builds[own];
        let what = match &self.search.found()[own] {
            Found::Same { .. } => return None,
            Found::Rebuilt { file, build: here } => {
                format!("{}: this is build {here}, and build {build} was recorded", file.display())
            }
            Found::Missing => format!("{own}: it is not here, and most samples fell into it (build {build})"),
        };
        let recording = recording.display();
        Some(format!(
            "{what}\nhint: give a folder with the build that ran: tierloom analyse {recording} --binaries FOLDER"
        ))
    }

    /// What a reader must know of files that are not here as they ran.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let (rebuilt, missing): (Vec<_>, Vec<_>) =
            self.lacking().into_iter().partition(|(_, found)| matches!(found, Found::Rebuilt { .. }));
        let names = |files: Vec<(&str, &Found)>| files.into_iter().map(|(path, _)| path.to_owned()).collect();
        let all_here = rebuilt.is_empty() && missing.is_empty();
        (!all_here).then(|| Warning::CodeLacking { rebuilt: names(rebuilt), missing: names(missing) })
    }
}

/// What a recording holds.
#[derive(Serialize)]
struct Described<'a> {
    version: u8,
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

/// One file of code.
#[derive(Serialize)]
struct DescribedFile<'a> {
    path: &'a str,
    build: &'a str,
    samples: u64,
    /// `same`, `rebuilt` or `missing`.
    state: &'static str,
    /// Where it is, or another build of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// That other build.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_build: Option<&'a str>,
}

impl<'a> Described<'a> {
    fn of(recording: &'a Recording, files: &'a CodeFiles) -> Self {
        let each = files.search.found().iter().map(|(path, found)| files.described(path, found));
        Self {
            version: VERSION,
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
            binaries: each.collect(),
        }
    }
}

impl CodeFiles {
    fn described<'a>(&'a self, path: &'a str, found: &'a Found) -> DescribedFile<'a> {
        let (state, file, other_build) = match found {
            Found::Same { file } => ("same", Some(file), None),
            Found::Rebuilt { file, build } => ("rebuilt", Some(file), Some(build.as_str())),
            Found::Missing => ("missing", None, None),
        };
        let samples = self.samples.get(path).copied().unwrap_or(0);
        let file = file.map(|file| file.to_string_lossy().into_owned());
        DescribedFile { path, build: &self.builds[path], samples, state, file, other_build }
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
