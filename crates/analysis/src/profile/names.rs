//! What an object is called, and how it is found again in another run.
//!
//! An allocation site is named after the innermost frame that is the program's own: allocators,
//! containers and constructors of the standard library only pass the request on. Where one statement of
//! it allocates for several callers, the name says for whom: `AcquireMemory by OpenCache`. Where what it allocates is
//! assigned to a variable, that variable is the name: one at a fixed address, or a local one that `variables` finds telling.
//!
//! What a library asks for on behalf of a program of Python has the library's name, where its own functions have none: those
//! of the interpreter, through which it was called, are the same for all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use index_vec::IndexSlice;
use tierloom_binary::Binaries;
use tierloom_binary::assignment::{Assignment, Declarations, Fixed, Local, assigned};
use tierloom_binary::code::CodePlace;
use tierloom_binary::debug_info::variables::Variable;
use tierloom_binary::debug_info::{Missing, SourceFrame};
use tierloom_binary::demangle::demangled;
use tierloom_binary::elf::Binary;
use tierloom_model::{Frame, Site};

use crate::address_space::objects::{DataObject, Identity, ObjectId};
use crate::profile::frames::{Frames, functions, is_runtime};
use crate::profile::functions::{is_interpreters, is_own, shortened};
use crate::profile::variables::{self, Claim, Holder, Name};

/// Callers that are looked at to tell apart what one statement allocates: further out are the program's loops.
const NEAREST_CALLERS: usize = 4;

/// What an object is called.
pub(crate) struct Named {
    pub(crate) site: Site,
    /// `file:line` of the program's own statement that allocates or assigns it, where it is known.
    pub(crate) line: Option<String>,
    /// Unique within the profile.
    pub(crate) name: String,
}

/// Names and sites of all objects, made once at the end.
pub(crate) struct Names<'a> {
    modules: &'a [Binary],
    frames: Frames<'a>,
    taken: BTreeMap<String, u32>,
    /// What each object would be called if others were not.
    wanted: BTreeMap<Identity, Name>,
    /// Modules with objects that are named without a line.
    lineless: BTreeSet<usize>,
}

impl<'a> Names<'a> {
    /// Names for these objects, in the order in which they will be asked for.
    pub(crate) fn new(
        modules: &'a [Binary],
        binaries: &'a dyn Binaries,
        entries: &IndexSlice<ObjectId, [DataObject]>,
    ) -> Self {
        let (taken, wanted, lineless) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut names = Self { modules, frames: Frames::new(modules, binaries), taken, wanted, lineless };
        let askers = names.askers(entries);
        let claims: Vec<Claim> = entries.iter().map(|entry| names.claim(&entry.identity, &askers)).collect();
        let identities = entries.iter().map(|entry| entry.identity.clone());
        names.wanted = identities.zip(variables::names(&claims)).collect();
        names
    }

    /// By stack: for whom its statement allocates, where that is for several.
    fn askers(&self, entries: &IndexSlice<ObjectId, [DataObject]>) -> BTreeMap<Vec<CodePlace>, String> {
        let mut statements: BTreeMap<Statement, Vec<Request>> = BTreeMap::new();
        for entry in entries {
            if let Identity::Stack(stack) = &entry.identity
                && let Some((statement, request)) = self.request(stack)
            {
                statements.entry(statement).or_default().push(request);
            }
        }
        statements.values().flat_map(|requests| told_apart(requests)).collect()
    }

    /// The statement that an object is named after, and the functions that it may do it for.
    fn request<'s>(&self, stack: &'s [CodePlace]) -> Option<(Statement, Request<'s>)> {
        let frames: Vec<Frame> = stack.iter().map(|place| self.frames.frame(*place)).collect();
        if library(&frames).is_some() {
            return None;
        }
        let mut own = stack.iter().flat_map(|place| self.own_functions(*place));
        let (statement, _) = own.next()?;
        let callers = own.map(|(_, function)| function).take(NEAREST_CALLERS).collect();
        Some((statement, Request { stack, callers }))
    }

    /// Functions at a place that say for what they allocate, innermost first, each with its statement there.
    fn own_functions(&self, place: CodePlace) -> Vec<(Statement, String)> {
        let frame = self.frames.frame(place);
        let own = functions(&frame).filter_map(|(function, line)| {
            let function = function.filter(|function| is_own(function))?;
            let statement =
                line.map_or(Statement::Place(place), |line| Statement::Line(function.to_owned(), line.to_owned()));
            Some((statement, shortened(function)))
        });
        own.collect()
    }

    /// Modules with objects that are named without a line, and why, as far as that is known. Files that are not to
    /// be had tell nothing of how they were built.
    pub(crate) fn lineless(&self) -> impl Iterator<Item = (&str, Option<&Missing>)> {
        let all = self.lineless.iter().map(|module| (self.modules[*module].name(), self.frames.missing(*module)));
        all.filter(|(_, missing)| *missing != Some(&Missing::Unreadable))
    }

    /// Site, statement and unique name of an object.
    pub(crate) fn name(&mut self, entry: &DataObject) -> Named {
        let site = match &entry.identity {
            Identity::Stack(stack) => {
                let frames: Vec<Frame> = stack.iter().map(|place| self.frames.frame(*place)).collect();
                self.look_for_line(stack, &frames);
                Site::Stack(frames)
            }
            Identity::Symbol { module, name } => {
                Site::Symbol { module: self.modules[*module].name().to_owned(), symbol: name.clone() }
            }
            Identity::File(path) => Site::File(path.clone()),
            Identity::Name(name) => Site::Name(name.clone()),
        };
        let Name { name, line } = self.wanted[&entry.identity].clone();
        let line = line.or_else(|| allocated_at(&site));
        Named { site, line, name: self.unique(name) }
    }

    /// What an object is called without local variables, and which of these held it.
    fn claim(&self, identity: &Identity, askers: &BTreeMap<Vec<CodePlace>, String>) -> Claim {
        match identity {
            Identity::Stack(stack) => self.allocated(stack, askers.get(stack)),
            Identity::Symbol { name, .. } => Claim::of(shortened(&demangled(name))),
            Identity::File(path) => Claim::of(path.rsplit('/').next().unwrap_or(path).to_owned()),
            Identity::Name(name) => Claim::of(name.clone()),
        }
    }

    fn allocated(&self, stack: &[CodePlace], asker: Option<&String>) -> Claim {
        let Assignment { fixed, mut locals, is_kept } = assigned(self.modules, stack, &Own(&self.frames));
        match fixed {
            Some(Fixed::Symbol(symbol)) => return Claim::of(shortened(&demangled(symbol))),
            Some(Fixed::Declared(local)) => {
                let otherwise = local.names.first().cloned().unwrap_or_default();
                let holders = self.holder(stack[local.call], local).into_iter().collect();
                return Claim { otherwise, holders, is_kept: true };
            }
            None => {}
        }
        let frames: Vec<Frame> = stack.iter().map(|place| self.frames.frame(*place)).collect();
        let asker = asker.map(|function| format!(" by {function}")).unwrap_or_default();
        // Whoever declares a structure says more of it than the function that fills it through a pointer.
        locals.sort_by_key(|local| (local.is_behind, local.call, Reverse(local.depth)));
        let holders = locals.into_iter().filter_map(|local| self.holder(stack[local.call], local)).collect();
        Claim { otherwise: stack_name(&frames) + &asker, holders, is_kept }
    }

    fn holder(&self, place: CodePlace, local: Local) -> Option<Holder> {
        let SourceFrame { function, line } = self.frames.function(place, local.depth)?;
        Some(Holder { names: local.names, function: shortened(&function?), line })
    }

    fn unique(&mut self, wanted: String) -> String {
        let count = self.taken.entry(wanted.clone()).or_default();
        *count += 1;
        if *count == 1 { wanted } else { self.unique(format!("{wanted}#{}", self.taken[&wanted])) }
    }

    /// Notes where the name of an object will have no line.
    fn look_for_line(&mut self, stack: &[CodePlace], frames: &[Frame]) {
        let named_after = frames.iter().position(|frame| named(frame).is_some()).unwrap_or(0);
        let Some((frame, module)) = frames.get(named_after).zip(stack.get(named_after).and_then(|place| place.module))
        else {
            return;
        };
        let has_line = named(frame).map_or(frame.line.is_some(), |(_, line)| line.is_some());
        if !has_line && !is_runtime(&frame.module) {
            self.lineless.insert(module);
        }
    }
}

/// What the program's own functions declare.
struct Own<'f, 'a>(&'f Frames<'a>);

impl Declarations for Own<'_, '_> {
    fn variables(&self, place: CodePlace) -> Vec<Variable> {
        self.0.variables(place, is_own)
    }

    fn names(&self, place: CodePlace, variable: &Variable, is_behind: bool, byte: u64) -> Vec<String> {
        self.0.variable_names(place, variable, is_behind, byte)
    }
}

/// A statement of the program; code that was inlined into several functions is one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Statement {
    /// Function and line.
    Line(String, String),
    /// Where lines are not known.
    Place(CodePlace),
}

/// An allocation, seen from its statement: the callers further out, nearest first.
struct Request<'s> {
    stack: &'s [CodePlace],
    callers: Vec<String>,
}

/// For whom one statement allocates: the nearest callers that are not the same for all.
fn told_apart(requests: &[Request]) -> Vec<(Vec<CodePlace>, String)> {
    let differ = |level: &usize| requests.iter().map(|r| r.callers.get(*level)).collect::<BTreeSet<_>>().len() > 1;
    let Some(level) = (0..NEAREST_CALLERS).find(differ) else { return Vec::new() };
    let asker = |request: &Request| Some((request.stack.to_vec(), request.callers.get(level)?.clone()));
    requests.iter().filter_map(asker).collect()
}

/// The library that asked for memory of its own accord, as far as is known, called by an interpreter.
fn library(frames: &[Frame]) -> Option<&str> {
    let is_interpreters = |frame: &Frame| named(frame).is_some_and(|(function, _)| is_interpreters(function));
    let (inner, outer) = frames.split_at(frames.iter().position(|frame| named(frame).is_some())?);
    let interpreter = outer.first().filter(|frame| is_interpreters(frame))?;
    let asks = |frame: &&Frame| frame.module != interpreter.module && !is_runtime(&frame.module);
    inner.iter().rfind(asks)?.module.split('.').next()
}

fn stack_name(frames: &[Frame]) -> String {
    if let Some(library) = library(frames) {
        return library.to_owned();
    }
    match frames.iter().find_map(named).or_else(|| functions(frames.first()?).find_map(with_function)) {
        Some((function, Some(line))) => format!("{}@{line}", shortened(function)),
        Some((function, None)) => shortened(function),
        None => frames
            .first()
            .map_or_else(|| "[unknown site]".to_owned(), |frame| format!("{}+{:#x}", frame.module, frame.offset)),
    }
}

fn allocated_at(site: &Site) -> Option<String> {
    let Site::Stack(frames) = site else { return None };
    let frames = Some(frames).filter(|frames| library(frames).is_none())?;
    frames.iter().find_map(named)?.1.map(str::to_owned)
}

/// The innermost function of a frame, with its line, that says for what it allocates.
fn named(frame: &Frame) -> Option<(&str, Option<&str>)> {
    functions(frame).filter_map(with_function).find(|(function, _)| is_own(function))
}

fn with_function<'f>((function, line): (Option<&'f str>, Option<&'f str>)) -> Option<(&'f str, Option<&'f str>)> {
    Some((function?, line))
}

#[cfg(test)]
mod tests {
    use tierloom_model::InlinedInto;

    use super::*;

    fn frame(function: &str, line: Option<&str>) -> Frame {
        Frame {
            module: "app".to_owned(),
            offset: 0x10,
            function: Some(demangled(function)),
            line: line.map(str::to_owned),
            ..Frame::default()
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
        let stripped = Frame { function: None, ..frame("", None) };
        assert_eq!(stack_name(&[stripped, frame("__libc_start_main", None)]), "app+0x10");
    }

    #[test]
    fn what_a_library_asks_for_in_python_is_named_after_the_library() {
        let of = |module: &str, function: Option<&str>| Frame {
            module: module.to_owned(),
            function: function.map(str::to_owned),
            ..frame("", None)
        };
        let numpy = of("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", None);
        let called = [of("python3.11", None), of("python3.11", Some("PyObject_Vectorcall"))];
        let asked = [numpy.clone(), called[0].clone(), called[1].clone()];
        assert_eq!(stack_name(&asked), "_multiarray_umath");
        assert_eq!(stack_name(&called), "PyObject_Vectorcall", "the interpreter's own");
        let with_symbols = of("lib.so", Some("array_empty"));
        assert_eq!(stack_name(&[with_symbols, called[1].clone()]), "array_empty");
        // A program's own function tells more than a library without symbols.
        assert_eq!(stack_name(&[numpy, frame("main", Some("main.c:3"))]), "main@main.c:3");
    }

    #[test]
    fn an_inlined_function_that_is_the_programs_own_gives_the_name() {
        let inlined = |function: &str, line: &str| InlinedInto {
            function: Some(function.to_owned()),
            line: Some(line.to_owned()),
        };
        let allocation = Frame {
            inlined_into: vec![inlined("mesh::grid(int)", "mesh.cpp:12"), inlined("main", "main.cpp:3")],
            ..frame("double* std::allocate<double>(unsigned long)", Some("new_allocator.h:137"))
        };
        assert_eq!(stack_name(&[allocation]), "mesh::grid@mesh.cpp:12");
    }

    #[test]
    fn a_statement_that_allocates_for_several_says_for_whom() {
        let stacks: Vec<Vec<CodePlace>> = (0..3).map(|address| vec![CodePlace { module: None, address }]).collect();
        let request = |at: usize, callers: &[&str]| Request {
            stack: &stacks[at],
            callers: callers.iter().map(|name| (*name).to_owned()).collect(),
        };
        let told = told_apart(&[
            request(0, &["get", "open", "main"]),
            request(1, &["get", "blur", "main"]),
            request(2, &["get"]),
        ]);
        assert_eq!(told, [(stacks[0].clone(), "open".to_owned()), (stacks[1].clone(), "blur".to_owned())]);
        assert!(told_apart(&[request(0, &["get", "main"]), request(1, &["get", "main"])]).is_empty());
    }

    #[test]
    fn names_are_unique() {
        let mut names = Names::new(&[], &tierloom_binary::Files, IndexSlice::new(&[]));
        let all: Vec<String> = (0..3).map(|_| names.unique("a".to_owned())).collect();
        assert_eq!(all, ["a", "a#2", "a#3"]);
    }
}
