//! Functions of the modules, decoded once and only where samples fell, and who calls them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use index_vec::IndexVec;

use crate::call_graph::changed_registers::ChangedRegisters;
use crate::call_graph::sites::{CallIndex, CallKind};
use crate::call_graph::teams::InTeams;
use crate::cfg::Function;
use crate::elf::Binary;
pub use crate::index::FunctionId;

/// Functions longer than this are generated tables or broken bounds.
const LONGEST_FUNCTION_BYTES: u64 = 4 << 20;

/// Where an address of code lies: module and virtual address, or no module and the address itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodePlace {
    /// Position of the module.
    pub module: Option<usize>,
    /// Virtual address in it.
    pub address: u64,
}

/// A function with the module it is in.
pub struct LoadedFunction {
    /// Position of the module.
    pub module: usize,
    /// What it was decoded to.
    pub function: Arc<Function>,
}

/// Decoded functions.
#[derive(Default)]
pub struct Code {
    /// In the order in which they were first asked for.
    pub functions: IndexVec<FunctionId, LoadedFunction>,
    by_start: BTreeMap<(usize, u64), Option<FunctionId>>,
    /// By module, made when first asked for.
    calls: BTreeMap<usize, CallIndex>,
    changed: ChangedRegisters,
}

impl Code {
    /// The function around a place of code and the position of the instruction that starts there.
    pub fn find(&mut self, modules: &[Binary], place: CodePlace) -> Option<(FunctionId, usize)> {
        let id = self.around(modules, place)?;
        let instruction = self.functions[id].function.instruction_at(place.address)?;
        Some((id, instruction))
    }

    /// The function around a place of code, and the position of the call that it lies in.
    pub fn call_around(&mut self, modules: &[Binary], place: CodePlace) -> Option<(FunctionId, usize)> {
        let id = self.around(modules, place)?;
        let instructions = &self.functions[id].function.instructions;
        let position = instructions.partition_point(|one| one.address <= place.address).checked_sub(1)?;
        instructions[position].is_call().then_some((id, position))
    }

    fn around(&mut self, modules: &[Binary], place: CodePlace) -> Option<FunctionId> {
        let module = place.module?;
        let range = modules[module].function_at(place.address)?;
        self.function(modules, module, &range)
    }

    fn function(&mut self, modules: &[Binary], module: usize, range: &Range<u64>) -> Option<FunctionId> {
        if let Some(known) = self.by_start.get(&(module, range.start)) {
            return *known;
        }
        let bytes = modules[module].code(range).filter(|_| range.end - range.start <= LONGEST_FUNCTION_BYTES);
        let id = bytes.map(|bytes| {
            let changed_by = |start| self.changed.by_call(modules, module, start);
            let function = Arc::new(Function::decode_among(bytes, range.start, changed_by));
            self.functions.push(LoadedFunction { module, function })
        });
        self.by_start.insert((module, range.start), id);
        id
    }

    /// Places of its module that run a function each time they are passed, as (function, position): direct calls, and jumps
    /// as a last act.
    pub fn passed_by(&mut self, modules: &[Binary], id: FunctionId) -> Vec<(FunctionId, usize)> {
        let all = self.runners(modules, id);
        let runs = |runner: &&CallSite| match runner.run {
            CallKind::Call => true,
            // One that is taken at times runs the function less often than its block.
            CallKind::Jump => {
                let jump = &self.functions[runner.function].function.instructions[runner.instruction];
                !jump.flow.asks_flags()
            }
            CallKind::Once | CallKind::Team => false,
        };
        all.iter().filter(runs).map(|runner| (runner.function, runner.instruction)).collect()
    }

    /// Direct calls of a function within its module, as (caller, position of the call).
    pub fn callers(&mut self, modules: &[Binary], id: FunctionId) -> Vec<(FunctionId, usize)> {
        let all = self.runners(modules, id);
        all.into_iter()
            .filter(|runner| runner.run == CallKind::Call)
            .map(|runner| (runner.function, runner.instruction))
            .collect()
    }

    /// All places of its module that run a function.
    pub fn runners(&mut self, modules: &[Binary], id: FunctionId) -> Vec<CallSite> {
        let (module, start) = (self.functions[id].module, self.functions[id].function.start);
        let sites = self.index(modules, module).sites(start).to_vec();
        let runner = |site: crate::call_graph::sites::Site| {
            let place = CodePlace { module: Some(module), address: site.address };
            let (function, instruction) = self.find(modules, place)?;
            Some(CallSite { function, instruction, run: site.run })
        };
        sites.into_iter().filter_map(runner).collect()
    }

    /// Whether [`Code::runners`] are all there can be.
    pub fn is_complete(&mut self, modules: &[Binary], id: FunctionId) -> bool {
        let (module, start) = (self.functions[id].module, self.functions[id].function.start);
        self.index(modules, module).is_complete(start)
    }

    /// Whether a function runs in parallel regions of OpenMP, as far as its module tells.
    pub fn in_teams(&mut self, modules: &[Binary], id: FunctionId) -> InTeams {
        let (module, start) = (self.functions[id].module, self.functions[id].function.start);
        let binary = &modules[module];
        let around = |address| binary.function_at(address).map(|range| range.start);
        InTeams::of(self.index(modules, module), binary.entry, around, start)
    }

    fn index(&mut self, modules: &[Binary], module: usize) -> &CallIndex {
        self.calls.entry(module).or_insert_with(|| CallIndex::of(&modules[module]))
    }
}

/// A place that runs a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSite {
    /// The function that the place is in.
    pub function: FunctionId,
    /// Position of the instruction.
    pub instruction: usize,
    /// How it runs it.
    pub run: CallKind,
}
