//! What an object is called, and how it is found again in another run.
//!
//! An allocation site is named after the innermost frame that is the program's own: allocators,
//! containers and constructors of the standard library only pass the request on.

use std::collections::BTreeMap;

use tierloom_model::{Frame, Site};

use crate::elf::Module;
use crate::lines::Lines;
use crate::objects::{CodePlace, Entry, Identity};

/// Functions that allocate for others, by the start of their demangled names.
const WRAPPERS: [&str; 28] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "valloc",
    "pvalloc",
    "operator new",
    "mmap",
    "std::",
    "__gnu_cxx::",
    "void std::",
    "void* std::",
    "alloc::",
    "__rust_",
    "__rdl_",
    "<alloc::",
    "core::",
    "_mm_malloc",
    "PyMem_",
    "PyObject_Malloc",
    "PyDataMem_",
    "_gfortran_",
    "xmalloc",
    "xcalloc",
    "xrealloc",
];
/// Longest function name within an object's name.
const LONGEST_NAME: usize = 60;

/// Names and sites of all objects, made once at the end.
pub(crate) struct Names<'a> {
    modules: &'a [Module],
    lines: BTreeMap<usize, Lines>,
    taken: BTreeMap<String, u32>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(modules: &'a [Module]) -> Self {
        Self { modules, lines: BTreeMap::new(), taken: BTreeMap::new() }
    }

    /// Site and unique name of an object.
    pub(crate) fn name(&mut self, entry: &Entry) -> (Site, String) {
        let site = match &entry.identity {
            Identity::Stack(frames) => Site::Stack(frames.iter().map(|frame| self.frame(*frame)).collect()),
            Identity::Symbol { module, name } => {
                Site::Symbol { module: self.modules[*module].name().to_owned(), symbol: name.clone() }
            }
            Identity::File(path) => Site::File(path.clone()),
            Identity::Name(name) => Site::Name(name.clone()),
        };
        let wanted = match &site {
            Site::Stack(frames) => stack_name(frames),
            Site::Symbol { symbol, .. } => shortened(&demangled(symbol)),
            Site::File(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
            Site::Name(name) => name.clone(),
        };
        let name = self.unique(wanted);
        (site, name)
    }

    fn unique(&mut self, wanted: String) -> String {
        let count = self.taken.entry(wanted.clone()).or_default();
        *count += 1;
        if *count == 1 { wanted } else { self.unique(format!("{wanted}#{}", self.taken[&wanted])) }
    }

    fn frame(&mut self, place: CodePlace) -> Frame {
        let Some(id) = place.module else {
            let module = "[unknown]".to_owned();
            return Frame { module, build_id: String::new(), offset: place.address, function: None, line: None };
        };
        let module = &self.modules[id];
        // A return address lies behind the call; the call itself is one byte before it.
        let call = place.address.saturating_sub(1);
        let lines = self.lines.entry(id).or_insert_with(|| Lines::read(&module.data));
        Frame {
            module: module.name().to_owned(),
            build_id: module.build_id.clone(),
            offset: place.address,
            function: module.function_name(call).map(demangled),
            line: lines.at(call),
        }
    }
}

fn stack_name(frames: &[Frame]) -> String {
    let own = frames.iter().find(|frame| frame.function.as_deref().is_some_and(|name| !is_wrapper(name)));
    match own.or(frames.first()) {
        Some(Frame { function: Some(function), line: Some(line), .. }) => format!("{}@{line}", shortened(function)),
        Some(Frame { function: Some(function), .. }) => shortened(function),
        Some(frame) => format!("{}+{:#x}", frame.module, frame.offset),
        None => "[unknown site]".to_owned(),
    }
}

fn is_wrapper(function: &str) -> bool {
    WRAPPERS.iter().any(|prefix| function.starts_with(prefix))
}

/// A C++ or Rust name as its author wrote it; other names unchanged.
pub(crate) fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    // Without the prefix, a variable named `a` would be read as the type `signed char`.
    if !symbol.starts_with("_Z") {
        return symbol.to_owned();
    }
    cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|parsed| parsed.demangle().ok())
        .unwrap_or_else(|| symbol.to_owned())
}

/// Without parameters and template arguments, and not longer than a table column bears.
fn shortened(function: &str) -> String {
    let mut depth = 0;
    let mut short = String::new();
    for character in function.trim_end_matches(" const").chars() {
        match character {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '(' if depth == 0 && !short.is_empty() => break,
            _ if depth == 0 => short.push(character),
            _ => {}
        }
    }
    let short = short.rsplit(' ').next().unwrap_or(&short);
    let short = if short.is_empty() { function } else { short };
    short.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: Option<&str>) -> Frame {
        Frame {
            module: "app".to_owned(),
            build_id: String::new(),
            offset: 0x10,
            function: Some(demangled(function)),
            line: line.map(str::to_owned),
        }
    }

    #[test]
    fn a_site_is_named_after_the_programs_own_function() {
        let frames = [
            frame("_Znwm", None),
            frame("_ZNSt6vectorIdSaIdEEC1EmRKS0_", None),
            frame("_ZN4mesh5buildEi", Some("mesh.cpp:12")),
            frame("main", None),
        ];
        assert_eq!(stack_name(&frames), "mesh::build@mesh.cpp:12");
        assert_eq!(stack_name(&[frame("alloc_A", None)]), "alloc_A");
        assert_eq!(stack_name(&[]), "[unknown site]");
    }

    #[test]
    fn plain_names_stay_as_they_are() {
        assert_eq!(demangled("a"), "a");
        assert_eq!(demangled("_ZL1a"), "a");
    }

    #[test]
    fn names_are_short_and_unique() {
        assert_eq!(shortened("void fill<double, 3>(double*, int)"), "fill");
        assert_eq!(shortened("mesh::Grid<double>::resize(unsigned long)"), "mesh::Grid::resize");
        let mut names = Names::new(&[]);
        let all: Vec<String> = (0..3).map(|_| names.unique("a".to_owned())).collect();
        assert_eq!(all, ["a", "a#2", "a#3"]);
    }
}
