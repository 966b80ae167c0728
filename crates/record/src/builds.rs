//! Which builds of programs and libraries a run has mapped: noted while they run, for soon after a file may
//! be built anew, or gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tierloom_model::Warning;

use tierloom_binary::build_id::build_of;
use tierloom_linux::root::Root;
use tierloom_recording::Mapping;

/// A file as it is now: written anew, or replaced, it is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileState {
    fn of(status: &Metadata) -> Self {
        let (device, inode, bytes) = (status.dev(), status.ino(), status.len());
        Self { device, inode, bytes, changed: (status.mtime(), status.mtime_nsec()) }
    }
}

/// The builds of a run.
#[derive(Debug, Default)]
pub(super) struct Builds {
    known: BTreeMap<String, FileState>,
    /// Paths and builds, in the order in which they were seen.
    named: Vec<(String, String)>,
    /// Paths at which a later mapping found another build.
    rebuilt: BTreeSet<String>,
}

impl Builds {
    /// Notes what a mapping of code is a mapping of.
    pub(super) fn meet(&mut self, mapping: &Mapping, root: &Root) {
        if !mapping.executable || !is_path(&mapping.path) {
            return;
        }
        let Some((file, state)) = file_of(mapping, root) else { return };
        if self.known.insert(mapping.path.clone(), state) == Some(state) {
            return;
        }
        if let Some(build) = build_of(&file) {
            self.name(&mapping.path, build);
        }
    }

    fn name(&mut self, path: &str, build: String) {
        let earlier = self.named.iter().rfind(|(known, _)| known == path);
        if earlier.is_some_and(|(_, known)| *known == build) {
            return;
        }
        if earlier.is_some() {
            self.rebuilt.insert(path.to_owned());
        }
        self.named.push((path.to_owned(), build));
    }

    /// Paths and builds, in the order in which they were seen.
    pub(super) fn named(&self) -> &[(String, String)] {
        &self.named
    }

    /// The last build of each path.
    pub(super) fn by_path(&self) -> BTreeMap<String, String> {
        self.named.iter().cloned().collect()
    }

    /// What a reader must know of paths that had several.
    pub(super) fn warning(&self) -> Option<Warning> {
        let files: Vec<String> = self.rebuilt.iter().cloned().collect();
        (!files.is_empty()).then_some(Warning::Rebuilt { files })
    }
}

/// Files; not what the kernel names for itself, nor devices.
fn is_path(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/dev/")
}

/// The file behind a mapping: by the mapping itself, which names it even when it was removed or replaced (it
/// takes `CAP_CHECKPOINT_RESTORE`); by its path as the process sees it; by its path.
fn file_of(mapping: &Mapping, root: &Root) -> Option<(PathBuf, FileState)> {
    let Mapping { pid, start, bytes, path, .. } = mapping;
    let end = start.checked_add(*bytes)?;
    let ways = [
        root.path(&format!("/proc/{pid}/map_files/{start:x}-{end:x}")),
        root.path(&format!("/proc/{pid}/root{path}")),
        root.path(path),
    ];
    let found = ways.into_iter().find_map(|way| Some((way.metadata().ok()?, way)));
    found.filter(|(status, _)| status.is_file()).map(|(status, way)| (way, FileState::of(&status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(path: &str, executable: bool) -> Mapping {
        let (time_ns, pid) = (0, u32::MAX);
        Mapping { time_ns, pid, start: 0, bytes: 4096, file_offset: 0, executable, path: path.to_owned() }
    }

    fn met(mappings: &[Mapping]) -> Builds {
        let mut builds = Builds::default();
        for mapping in mappings {
            builds.meet(mapping, &Root::default());
        }
        builds
    }

    #[test]
    fn each_file_of_code_is_named_once() {
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let code = mapping(own, true);
        let data =
            [mapping(own, false), mapping("/etc/passwd", true), mapping("//anon", true), mapping("[vdso]", true)];
        assert!(met(&data).named().is_empty());
        let builds = met(&[code.clone(), code]);
        assert_eq!(builds.named(), [(own.to_owned(), build_of(own.as_ref()).unwrap())]);
        assert_eq!(builds.warning(), None);
    }

    #[test]
    fn a_file_that_is_built_anew_is_named_again() {
        let path = std::env::temp_dir().join(format!("tierloom-built-{}", std::process::id()));
        let code = mapping(path.to_str().unwrap(), true);
        let mut builds = Builds::default();
        for source in ["/bin/true", "/bin/false", "/bin/false"] {
            std::fs::copy(source, &path).unwrap();
            builds.meet(&code, &Root::default());
        }
        std::fs::remove_file(&path).unwrap();
        builds.meet(&code, &Root::default());
        assert_eq!(builds.named().len(), 2);
        assert_eq!(builds.by_path().values().next(), build_of("/bin/false".as_ref()).as_ref());
        assert!(matches!(builds.warning(), Some(Warning::Rebuilt { .. })));
    }
}
