//! Split DWARF (`-gsplit-dwarf`): the file of code holds line tables, and a `.dwo` file for each unit, or
//! one `.dwp` package beside it, the functions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackage, Reader as _};

use super::dwarf::{Reader, section};
use crate::image::{Image, Wants};

/// The other files of a file of code.
pub(super) struct Split {
    package: Option<DwarfPackage<Reader>>,
    /// Where to look for what is no longer where it was compiled.
    folder: PathBuf,
}

impl Split {
    /// What lies beside a file of code.
    pub(super) fn beside(path: &Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".dwp");
        let package = Image::read(&path.with_file_name(name), Wants::Headers).ok().and_then(|image| package(&image));
        Self { package, folder: path.parent().unwrap_or(path).to_owned() }
    }

    /// An answer of `addr2line`, with the files that it asks for.
    pub(super) fn resolve<L: LookupContinuation<Buf = Reader>>(&self, mut result: LookupResult<L>) -> L::Output {
        loop {
            match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => result = continuation.resume(self.load(&load)),
            }
        }
    }

    fn load(&self, wanted: &SplitDwarfLoad<Reader>) -> Option<Arc<Dwarf<Reader>>> {
        let packed = self.package.as_ref().and_then(|package| package.find_cu(wanted.dwo_id, &wanted.parent).ok()?);
        packed.or_else(|| self.unit(wanted)).map(Arc::new)
    }

    fn unit(&self, wanted: &SplitDwarfLoad<Reader>) -> Option<Dwarf<Reader>> {
        let path = text(wanted.path.as_ref()?)?;
        let compiled = PathBuf::from(wanted.comp_dir.as_ref().and_then(text).unwrap_or_default()).join(&path);
        let moved = self.folder.join(compiled.file_name()?);
        [compiled, moved].iter().find_map(|path| {
            let image = Image::read(path, Wants::Headers).ok()?;
            let mut dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(section(&image, id.dwo_name()))).ok()?;
            let unit = dwarf.units().next().ok()??;
            let is_it = dwarf.unit(unit).ok()?.dwo_id == Some(wanted.dwo_id);
            is_it.then(|| {
                dwarf.make_dwo(&wanted.parent);
                dwarf
            })
        })
    }
}

fn package(image: &Image) -> Option<DwarfPackage<Reader>> {
    let empty = Reader::new(Arc::from([]), gimli::LittleEndian);
    DwarfPackage::load(|id| Ok::<_, gimli::Error>(section(image, id.dwo_name())), empty).ok()
}

fn text(bytes: &Reader) -> Option<String> {
    bytes.to_string_lossy().ok().map(std::borrow::Cow::into_owned)
}
