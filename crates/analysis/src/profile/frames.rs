//! Places of code as frames of a call stack: module, function, source line, and what was inlined there.

use std::cell::OnceCell;

use tierloom_binary::Binaries;
use tierloom_binary::code::CodePlace;
use tierloom_binary::debug_info::variables::Variable;
use tierloom_binary::debug_info::{DebugInfo, Missing, SourceFrame};
use tierloom_binary::demangle::demangled;
use tierloom_binary::elf::Binary;
use tierloom_model::{Frame, InlinedInto};

/// Libraries that come with the compiler and the system. Their lines are not asked for: nobody is told to mend them,
/// their debug information is large, and it is there on one machine and not on the next.
const RUNTIMES: [&str; 7] =
    ["libc.so", "ld-linux", "libpthread.so", "libstdc++.so", "libgomp.so", "libgfortran.so", "libm.so"];

/// Frames of all modules; debug information of a module is read when its first frame is asked for.
pub(crate) struct Frames<'a> {
    modules: &'a [Binary],
    binaries: &'a dyn Binaries,
    debug: Vec<OnceCell<DebugInfo>>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(modules: &'a [Binary], binaries: &'a dyn Binaries) -> Self {
        Self { modules, binaries, debug: modules.iter().map(|_| OnceCell::new()).collect() }
    }

    /// The frame of a return address.
    pub(crate) fn frame(&self, place: CodePlace) -> Frame {
        let Some(id) = place.module else {
            let module = "[unknown]".to_owned();
            return Frame { module, offset: place.address, ..Frame::default() };
        };
        let module = &self.modules[id];
        let mut functions = self.functions(id, place.address).into_iter();
        let SourceFrame { function, line } = functions.next().unwrap_or_default();
        Frame {
            module: module.name().to_owned(),
            build_id: module.build_id.clone(),
            offset: place.address,
            function,
            line,
            inlined_into: functions.map(|outer| InlinedInto { function: outer.function, line: outer.line }).collect(),
        }
    }

    /// Variables in scope at the call before a return address, of those functions there that are wanted.
    pub(crate) fn variables(&self, place: CodePlace, is_wanted: impl Fn(&str) -> bool) -> Vec<Variable> {
        let Some(module) = place.module.filter(|module| !is_runtime(self.modules[*module].name())) else {
            return Vec::new();
        };
        let functions = self.functions(module, place.address);
        let outermost_first = functions.iter().rev().map(|frame| frame.function.as_deref().is_some_and(&is_wanted));
        let wanted: Vec<bool> = outermost_first.collect();
        let mut variables = self.debug_info(module).variables(place.address.saturating_sub(1));
        variables.retain(|variable| wanted.get(variable.depth) == Some(&true));
        variables
    }

    /// What a byte of one of these is called in the source.
    pub(crate) fn variable_names(
        &self,
        place: CodePlace,
        variable: &Variable,
        is_behind: bool,
        byte: u64,
    ) -> Vec<String> {
        let Some(module) = place.module else { return Vec::new() };
        self.debug_info(module).names(place.address.saturating_sub(1), variable, is_behind, byte)
    }

    /// The function before a return address that this many others are around.
    pub(crate) fn function(&self, place: CodePlace, depth: usize) -> Option<SourceFrame> {
        self.functions(place.module?, place.address).into_iter().rev().nth(depth)
    }

    /// Why a module has no lines at all.
    pub(crate) fn missing(&self, module: usize) -> Option<&Missing> {
        self.debug[module].get()?.missing()
    }

    fn debug_info(&self, id: usize) -> &DebugInfo {
        self.debug[id].get_or_init(|| self.binaries.debug_info(&self.modules[id]))
    }

    /// Functions before a return address, innermost first; at least one.
    fn functions(&self, id: usize, address: u64) -> Vec<SourceFrame> {
        // A return address lies behind the call; the call itself is one byte before it.
        let call = address.saturating_sub(1);
        let module = &self.modules[id];
        let mut functions = if is_runtime(module.name()) { Vec::new() } else { self.debug_info(id).frames(call) };
        if functions.is_empty() {
            functions.push(SourceFrame::default());
        }
        // What stands in memory has the linker's name, if it has one: a part of a function, a copy of it.
        if let (Some(outermost), Some(symbol)) = (functions.last_mut(), module.function_name(call)) {
            outermost.function = Some(demangled(symbol));
        }
        functions
    }
}

/// Whether a module is a library of the compiler or the system.
pub(crate) fn is_runtime(module: &str) -> bool {
    RUNTIMES.iter().any(|prefix| module.starts_with(prefix))
}

/// The functions of a frame with their lines, innermost first.
pub(crate) fn functions(frame: &Frame) -> impl Iterator<Item = (Option<&str>, Option<&str>)> {
    let inlined = frame.inlined_into.iter().map(|outer| (outer.function.as_deref(), outer.line.as_deref()));
    std::iter::once((frame.function.as_deref(), frame.line.as_deref())).chain(inlined)
}
