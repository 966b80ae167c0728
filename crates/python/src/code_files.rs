//! The files of code of a recording: which are here in the builds that ran.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tierloom_analysis::samples_by_file;
use tierloom_binary::search::{Found, Search};
use tierloom_model::Warning;
use tierloom_recording::Recording;

/// The files of code of a recording.
pub(crate) struct CodeFiles {
    pub(crate) search: Search,
    builds: BTreeMap<String, String>,
    samples: BTreeMap<String, u64>,
}

impl CodeFiles {
    /// Looks for them, first in the folders.
    pub(crate) fn find(recording: &Recording, folders: &[PathBuf]) -> Self {
        let builds = recording.binaries.clone();
        let files = Self { search: Search::new(&builds, folders), builds, samples: BTreeMap::new() };
        let is_same = |found: &Found| matches!(found, Found::Same { .. });
        // Where all is here, nobody asks who was sampled.
        if files.search.found().values().all(is_same) { files } else { files.counted(recording) }
    }

    /// Looks for those of a recording that does not know all its builds: what it knows none of is taken as it is here.
    pub(crate) fn find_all(recording: &Recording, folders: &[PathBuf]) -> Self {
        let builds = recording.binaries.clone();
        let search = Search::new(&builds, folders).with_unnoted(folders);
        Self { search, builds, samples: BTreeMap::new() }.counted(recording)
    }

    /// And how many samples fell into each.
    pub(crate) fn counted(self, recording: &Recording) -> Self {
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
    pub(crate) fn refusal(&self, recording: &Path) -> Option<String> {
        let noted = self.samples.iter().filter(|(path, _)| self.builds.contains_key(*path));
        let (own, _) = noted.max_by_key(|(_, samples)| **samples)?;
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
        let (rebuilt, gone): (Vec<_>, Vec<_>) =
            self.lacking().into_iter().partition(|(_, found)| matches!(found, Found::Rebuilt { .. }));
        let names = |files: Vec<(&str, &Found)>| files.into_iter().map(|(path, _)| path.to_owned()).collect();
        let mut missing: Vec<String> = names(gone);
        missing.extend(self.unnoted(false));
        let all_here = rebuilt.is_empty() && missing.is_empty();
        (!all_here).then(|| Warning::CodeLacking { rebuilt: names(rebuilt), missing })
    }

    /// What was taken as it is here, for want of a build.
    pub(crate) fn doubt(&self) -> Option<Warning> {
        let files = self.unnoted(true);
        (!files.is_empty()).then_some(Warning::BuildsUnknown { files })
    }

    /// Files without a noted build that samples fell into and that are here, or are not.
    fn unnoted(&self, here: bool) -> Vec<String> {
        let unnoted = self.samples.keys().filter(|path| !self.builds.contains_key(*path));
        unnoted.filter(|path| self.search.file(path).is_some() == here).cloned().collect()
    }
}

/// One file of code.
#[derive(Serialize)]
pub(crate) struct DescribedFile<'a> {
    path: &'a str,
    build: &'a str,
    samples: u64,
    /// `same`, `rebuilt` or `missing`.
    state: &'static str,
    /// Where it is, or another build of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Where its debug information is, if not in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    debug_file: Option<String>,
    /// That other build.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_build: Option<&'a str>,
}

impl CodeFiles {
    /// As documents tell of them.
    pub(crate) fn described(&self) -> Vec<DescribedFile<'_>> {
        self.search.found().iter().map(|(path, found)| self.one(path, found)).collect()
    }

    fn one<'a>(&'a self, path: &'a str, found: &'a Found) -> DescribedFile<'a> {
        let (state, file, other_build) = match found {
            Found::Same { file } => ("same", Some(file), None),
            Found::Rebuilt { file, build } => ("rebuilt", Some(file), Some(build.as_str())),
            Found::Missing => ("missing", None, None),
        };
        let samples = self.samples.get(path).copied().unwrap_or(0);
        let text = |file: &Path| file.to_string_lossy().into_owned();
        let (file, debug_file) = (file.map(|file| text(file)), self.search.debug_file(path).as_deref().map(text));
        DescribedFile { path, build: &self.builds[path], samples, state, file, debug_file, other_build }
    }
}
