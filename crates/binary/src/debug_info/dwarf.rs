//! DWARF sections of a file, each unpacked and kept for as long as somebody asks.

use std::path::Path;
use std::sync::Arc;

use gimli::{Dwarf, EndianArcSlice, LittleEndian};

use crate::image::{Image, Wants};

/// How `gimli` reads a section.
pub(super) type Reader = EndianArcSlice<LittleEndian>;

/// What a file has of debug information, with the file that `dwz` moved shared parts of it to.
pub(super) fn load(image: &Image, path: &Path) -> Result<Dwarf<Reader>, gimli::Error> {
    let mut dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(section(image, Some(id.name()))))?;
    if let Some(shared) = shared(image, path) {
        dwarf.load_sup(|id| Ok::<_, gimli::Error>(section(&shared, Some(id.name()))))?;
    }
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    Ok(dwarf)
}

/// A section; empty where there is none.
pub(super) fn section(image: &Image, name: Option<&'static str>) -> Reader {
    let data = name.and_then(|name| image.section(name)).unwrap_or_else(|| Arc::from([]));
    Reader::new(data, LittleEndian)
}

/// `.gnu_debugaltlink`: a path, from the folder of the file where it is not absolute, and a build id.
fn shared(image: &Image, path: &Path) -> Option<Image> {
    let link = image.section(".gnu_debugaltlink")?;
    let end = link.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&link[..end]).ok()?;
    let shared = Image::read(&path.parent()?.join(name), Wants::Headers).ok()?;
    shared.has_section(".debug_str").then_some(shared)
}
