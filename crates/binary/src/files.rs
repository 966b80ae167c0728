//! The files of this machine, at their own paths.

use std::path::{Path, PathBuf};

use crate::Binaries;
use crate::debug_info::DebugInfo;
use crate::elf::Binary;

/// Where distributions install debug information.
const INSTALLED: &str = "/usr/lib/debug";
/// Where `debuginfod-find` keeps what it fetched, below the user's folder of caches.
const FETCHED: &str = "debuginfod_client";

/// The files of this machine, at their own paths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Binaries for Files {
    fn open(&self, path: &str, build_id: Option<&str>) -> Binary {
        let module = Binary::read(path);
        let another = build_id.is_some_and(|wanted| !module.build_id.is_empty() && module.build_id != wanted);
        if another { Binary::default() } else { module }
    }

    fn debug_info(&self, module: &Binary) -> DebugInfo {
        DebugInfo::read(Path::new(&module.path), &debug_folders())
    }
}

/// Folders of separate debug information.
pub(crate) fn debug_folders() -> Vec<PathBuf> {
    let given = std::env::var_os("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
    let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let fetched = given.or_else(|| caches.or(home).map(|caches| caches.join(FETCHED)));
    std::iter::once(PathBuf::from(INSTALLED)).chain(fetched).collect()
}
