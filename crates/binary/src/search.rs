//! Files of code in the builds that ran: in folders that somebody gives, else at their own paths.
//!
//! A folder may be laid out as debuggers want it (`.build-id/xx/yyyy`), may hold files at their whole paths,
//! as a copied root or a container's does, or may just hold them. A file of another build is never opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Binaries;
use crate::build_id::build_of;
use crate::debug_info::{DebugInfo, separate_file};
use crate::elf::Binary;
use crate::files::debug_folders;

/// What there is of a file of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The build that ran.
    Same {
        /// Where.
        file: PathBuf,
    },
    /// Other builds alone.
    Rebuilt {
        /// Where the first of them is.
        file: PathBuf,
        /// Which build it is.
        build: String,
    },
    /// Nothing.
    Missing,
}

/// Files of code, by the paths at which they ran.
#[derive(Debug, Default)]
pub struct Search {
    found: BTreeMap<String, Found>,
    /// Where separate debug information may be.
    debug_folders: Vec<PathBuf>,
    /// Where files are whose builds nobody noted; `None` where these are not opened.
    unnoted: Option<Vec<PathBuf>>,
}

impl Search {
    /// Looks for builds by path, first in the folders.
    pub fn new(builds: &BTreeMap<String, String>, folders: &[PathBuf]) -> Self {
        let one = |(path, build): (&String, &String)| (path.clone(), look_for(path, build, folders));
        let debug_folders = folders.iter().cloned().chain(debug_folders()).collect();
        Self { found: builds.iter().map(one).collect(), debug_folders, unnoted: None }
    }

    /// Takes files whose build nobody noted as they are here, first from these folders: by whole path, or by name.
    #[must_use]
    pub fn with_unnoted(self, folders: &[PathBuf]) -> Self {
        Self { unnoted: Some(folders.to_owned()), ..self }
    }

    /// Where the file is that ran at a path, as far as anybody can tell.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        match self.found.get(path) {
            Some(Found::Same { file }) => Some(file.clone()),
            Some(_) => None,
            None => {
                let in_folders = self.unnoted.as_ref()?.iter().flat_map(|folder| places_in(folder, path, ""));
                in_folders.chain([PathBuf::from(path)]).find(|file| file.is_file())
            }
        }
    }

    /// Where the debug information of a file is, if it was moved out of it.
    pub fn debug_file(&self, path: &str) -> Option<PathBuf> {
        separate_file(&self.file(path)?, &self.debug_folders)
    }

    /// What there is of each file, by the path at which it ran.
    pub fn found(&self) -> &BTreeMap<String, Found> {
        &self.found
    }
}

impl Binaries for Search {
    fn open(&self, path: &str, _build_id: Option<&str>) -> Binary {
        let mut module = self.file(path).map_or_else(Binary::default, |file| Binary::read(&file.to_string_lossy()));
        path.clone_into(&mut module.path);
        module
    }

    fn debug_info(&self, module: &Binary) -> DebugInfo {
        let file = self.file(&module.path);
        file.map_or_else(DebugInfo::default, |file| DebugInfo::read(&file, &self.debug_folders))
    }
}

fn look_for(path: &str, wanted: &str, folders: &[PathBuf]) -> Found {
    let mut other = Found::Missing;
    let places = folders.iter().flat_map(|folder| places_in(folder, path, wanted));
    for file in places.chain([PathBuf::from(path)]) {
        match build_of(&file) {
            Some(build) if build == wanted => return Found::Same { file },
            Some(build) if other == Found::Missing => other = Found::Rebuilt { file, build },
            _ => {}
        }
    }
    other
}

/// Where a folder may hold a file.
fn places_in(folder: &Path, path: &str, build: &str) -> Vec<PathBuf> {
    let by_build = build.split_at_checked(2).map(|(first, rest)| folder.join(".build-id").join(first).join(rest));
    let whole = folder.join(path.trim_start_matches('/'));
    let by_name = Path::new(path).file_name().map(|name| folder.join(name));
    by_build.into_iter().chain([whole]).chain(by_name).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_build_is_found_wherever_a_folder_keeps_it_and_another_build_never_opened() {
        let folder = std::env::temp_dir().join(format!("tierloom-search-{}", std::process::id()));
        let (own, build) = ("/no/such/folder/true", build_of(Path::new("/bin/true")).unwrap());
        let builds = BTreeMap::from([(own.to_owned(), build.clone())]);
        let (first, rest) = build.split_at(2);
        for place in [".build-id".to_owned() + "/" + first + "/" + rest, own[1..].to_owned(), "true".to_owned()] {
            let file = folder.join(place);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            assert_eq!(Search::new(&builds, &[]).found()[own], Found::Missing);
            fs::copy("/bin/false", &file).unwrap();
            let search = Search::new(&builds, std::slice::from_ref(&folder));
            assert!(matches!(&search.found()[own], Found::Rebuilt { file: found, .. } if *found == file));
            assert!(!search.open(own, None).is_elf);
            fs::copy("/bin/true", &file).unwrap();
            let search = Search::new(&builds, std::slice::from_ref(&folder));
            assert_eq!(search.found()[own], Found::Same { file });
            let module = search.open(own, None);
            assert_eq!((module.is_elf, module.path.as_str()), (true, own));
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn a_file_that_nobody_noted_is_opened_where_that_is_wanted_alone() {
        let wanted = Search::default().with_unnoted(&[PathBuf::from("/bin")]);
        assert!(Search::default().file("/bin/true").is_none());
        assert_eq!(wanted.file("/opt/true"), Some(PathBuf::from("/bin/true")));
        assert_eq!(wanted.open("/opt/true", None).path, "/opt/true");
        assert_eq!(wanted.file("/opt/no-such-program"), None);
    }

    #[test]
    fn the_folder_goes_before_the_path_and_a_file_that_nobody_noted_is_not_opened() {
        let build = build_of(Path::new("/bin/true")).unwrap();
        let builds = BTreeMap::from([("/bin/true".to_owned(), build)]);
        let search = Search::new(&builds, &[PathBuf::from("/usr"), PathBuf::from("/")]);
        assert_eq!(search.found()["/bin/true"], Found::Same { file: PathBuf::from("/usr/bin/true") });
        assert!(!search.open("/bin/false", None).is_elf);
    }
}
