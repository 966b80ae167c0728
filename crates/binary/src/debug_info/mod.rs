//! Debug information: which source line an address of code stands for, which functions were inlined
//! there, and which variables are in scope.
//!
//! [`DebugInfo`] answers from DWARF, by the crate `addr2line`: in the file itself or in a separate one,
//! packed or not, split into `.dwo` files or a `.dwp` package. Sections are read whole, but only of the
//! files that somebody asks about, and units are parsed as addresses fall into them. Where there are no
//! lines, [`DebugInfo::missing`] says why.

mod dwarf;
mod members;
mod separate;
mod split;
mod units;
pub mod variables;

use std::path::{Path, PathBuf};

use addr2line::Context;
use gimli::{UnitOffset, UnitRef};

use crate::demangle::demangled;
use crate::image::{Image, Wants};
use dwarf::Reader;
use members::Members;
use split::Split;
use units::Units;
use variables::Variable;

/// One function at an address: of several, the first one was inlined into the second, and so on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFrame {
    /// Name as its author wrote it.
    pub function: Option<String>,
    /// `file:line`, the file without folders.
    pub line: Option<String>,
}

/// Why a file of code has no lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// It was compiled without them.
    NotBuilt,
    /// They were moved to another file, which is not here; by the name that the code remembers, if any.
    Elsewhere(Option<String>),
    /// The file of code itself is not to be had.
    Unreadable,
}

/// The file that the debug information of a file of code was moved to, if it was, and is in one of the folders.
pub fn separate_file(path: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    let image = Image::read(path, Wants::Headers).ok()?;
    if image.has_section(".debug_line") { None } else { Some(separate::find(&image, path, folders)?.1) }
}

/// Lines and inlined functions of one file of code.
pub struct DebugInfo {
    source: Option<Source>,
    missing: Option<Missing>,
}

struct Source {
    context: Context<Reader>,
    split: Split,
    units: Units,
}

impl Default for DebugInfo {
    /// Of a file that is not to be had.
    fn default() -> Self {
        Self { source: None, missing: Some(Missing::Unreadable) }
    }
}

impl DebugInfo {
    /// Of a file of code, where separate files of debug information may lie in these folders.
    pub fn read(path: &Path, folders: &[PathBuf]) -> Self {
        let image = Image::read(path, Wants::Headers).unwrap_or_default();
        if image.has_section(".debug_line") {
            return Self::of(&image, path);
        }
        match separate::find(&image, path, folders) {
            Some((image, path)) => Self::of(&image, &path),
            None => Self { source: None, missing: Some(reason(&image)) },
        }
    }

    fn of(image: &Image, path: &Path) -> Self {
        let context = dwarf::load(image, path).ok().and_then(|dwarf| Context::from_dwarf(dwarf).ok());
        let source = context.map(|context| Source { context, split: Split::beside(path), units: Units::default() });
        let missing = source.is_none().then_some(Missing::Unreadable);
        Self { source, missing }
    }

    /// Functions at an address, innermost first; none where nothing is known.
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let Some(Source { context, split, .. }) = &self.source else { return Vec::new() };
        let Ok(mut found) = split.resolve(context.find_frames(address)) else { return Vec::new() };
        let mut frames = Vec::new();
        // A broken unit ends the answer; what came before it stays good.
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let function = name.map(|name| demangled(&name));
            frames.push(SourceFrame { function, line: frame.location.as_ref().and_then(line) });
        }
        frames
    }

    /// Variables that are in scope at an address, of the function there and of those inlined in it.
    pub fn variables(&self, address: u64) -> Vec<Variable> {
        let Some(Source { units, .. }) = &self.source else { return Vec::new() };
        let function = self.function(address);
        function.map(|(unit, function)| variables::in_scope(unit, units, function, address)).unwrap_or_default()
    }

    /// What a byte of a variable is called in the source: the variable's name, and with its member where it has some.
    ///
    /// # Arguments
    /// * `address` - of code where the variable is in scope.
    /// * `is_behind` - whether the variable points to the structure with that byte.
    pub fn names(&self, address: u64, variable: &Variable, is_behind: bool, byte: u64) -> Vec<String> {
        let path = self.members(address, variable, is_behind, byte);
        let own = || if variable.is_this { Vec::new() } else { vec![variable.name.clone()] };
        match path {
            Some(path) if is_behind => path.behind(variable).into_iter().collect(),
            Some(path) => own().into_iter().chain(path.within(variable)).collect(),
            None if is_behind => Vec::new(),
            None => own(),
        }
    }

    /// Which member of a structure a byte is in.
    fn members(&self, address: u64, variable: &Variable, is_behind: bool, byte: u64) -> Option<Members> {
        let ((unit, _), kind) = (self.function(address)?, variable.kind?);
        let Some(elsewhere) = kind.unit else { return Members::at(unit, kind.entry, is_behind, byte) };
        let (other, _) = self.source.as_ref()?.units.around(unit, elsewhere)?;
        Members::at(other.unit_ref(unit.dwarf), kind.entry, is_behind, byte)
    }

    /// The function that stands in memory at an address, and its unit.
    fn function(&self, address: u64) -> Option<(UnitRef<'_, Reader>, UnitOffset)> {
        let Source { context, split, .. } = self.source.as_ref()?;
        let mut frames = split.resolve(context.find_frames(address)).ok()?;
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            outermost = frame.dw_die_offset;
        }
        Some((split.resolve(context.find_dwarf_and_unit(address))?, outermost?))
    }

    /// Why there are no lines, where there are none at all.
    pub fn missing(&self) -> Option<&Missing> {
        self.missing.as_ref()
    }
}

/// Line 0 is code that the compiler made on its own.
fn line(location: &addr2line::Location<'_>) -> Option<String> {
    let (file, line) = (location.file?, location.line.filter(|line| *line > 0)?);
    Some(format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)))
}

fn reason(image: &Image) -> Missing {
    match separate::link(image) {
        Some((name, _)) => Missing::Elsewhere(Some(name)),
        None if image.has_section(".symtab") => Missing::NotBuilt,
        None if image.has_section(".shstrtab") => Missing::Elsewhere(None),
        None => Missing::Unreadable,
    }
}
