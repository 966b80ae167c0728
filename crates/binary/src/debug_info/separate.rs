//! Where debug information lies that was moved out of a file of code: by build id, as distributions
//! install it, or by the name in `.gnu_debuglink`, in the order of the manual of GDB (Separate Debug
//! Files).

use std::path::{Path, PathBuf};

use crate::build_id::linked;
use crate::image::{Image, Wants};

/// The debug file of this very build, and where it was found.
pub(super) fn find(image: &Image, path: &Path, folders: &[PathBuf]) -> Option<(Image, PathBuf)> {
    let build_id = linked(image);
    let link = link(image);
    let by_id = build_id.iter().flat_map(|id| folders.iter().flat_map(|folder| by_build_id(folder, id)));
    let by_name = link.iter().flat_map(|(name, _)| by_name(path, name, folders));
    by_id.chain(by_name).find_map(|candidate| {
        let found = Image::read(&candidate, Wants::Headers).ok()?;
        let same = match (linked(&found), &build_id, &link) {
            (Some(theirs), Some(ours), _) => theirs == *ours,
            (_, _, Some((_, checksum))) => found.checksum() == *checksum,
            _ => false,
        };
        (same && found.has_section(".debug_line")).then_some((found, candidate))
    })
}

/// Name and checksum of the file that debug information was moved to (`.gnu_debuglink`).
pub(super) fn link(image: &Image) -> Option<(String, u32)> {
    let section = image.section(".gnu_debuglink")?;
    let name = section.split(|byte| *byte == 0).next()?;
    let checksum = section.last_chunk::<4>()?;
    Some((String::from_utf8_lossy(name).into_owned(), u32::from_le_bytes(*checksum)))
}

/// As distributions install them, and as `debuginfod-find` keeps them.
fn by_build_id(folder: &Path, id: &str) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_at_checked(2) else { return Vec::new() };
    vec![folder.join(".build-id").join(first).join(format!("{rest}.debug")), folder.join(id).join("debuginfo")]
}

fn by_name(path: &Path, name: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let Some(home) = path.parent() else { return Vec::new() };
    let below = home.strip_prefix("/").unwrap_or(home);
    let global = folders.iter().flat_map(|folder| [folder.join(below).join(name), folder.join(name)]);
    [home.join(name), home.join(".debug").join(name)].into_iter().chain(global).collect()
}
