//! Functions of which every run is known: those that only the program's entry leads to.
//!
//! The entry runs once for each process, so everything that it leads to by calls alone can be counted
//! by following the flow down from it.

use std::collections::BTreeMap;

use crate::call_graph::sites::CallKind;
use crate::code::{CallSite, Code, FunctionId};
use crate::elf::Binary;

/// Chains of calls that are followed, and functions that are looked at: what is further from the
/// entry, or has more callers, is hardly called in one way only.
const DEEPEST: usize = 12;
const MOST_CALLERS: usize = 6;
const MOST_FUNCTIONS: usize = 400;

/// Rooted functions with all places that run them; entries have none.
#[derive(Debug, Default)]
pub struct Roots {
    /// By function: the places that run it.
    pub runners: BTreeMap<FunctionId, Vec<CallSite>>,
}

impl Roots {
    /// Those among `functions` and what leads to them.
    pub fn find(code: &mut Code, modules: &[Binary], functions: &[FunctionId]) -> Self {
        let mut search = Search { code, modules, known: BTreeMap::new() };
        let mut roots = Self::default();
        for &id in functions {
            if search.rooted(id, 0) {
                search.collect(id, &mut roots.runners);
            }
        }
        roots
    }
}

struct Search<'a> {
    code: &'a mut Code,
    modules: &'a [Binary],
    /// Runners of those that are rooted; `None` for the others and for those being looked at.
    known: BTreeMap<FunctionId, Option<Vec<CallSite>>>,
}

impl Search<'_> {
    fn rooted(&mut self, id: FunctionId, depth: usize) -> bool {
        if let Some(known) = self.known.get(&id) {
            return known.is_some();
        }
        if depth > DEEPEST || self.known.len() > MOST_FUNCTIONS {
            return false;
        }
        self.known.insert(id, None);
        let placed = &self.code.functions[id];
        if placed.function.start == self.modules[placed.module].entry {
            self.known.insert(id, Some(Vec::new()));
            return true;
        }
        let runners =
            if self.code.is_complete(self.modules, id) { self.code.runners(self.modules, id) } else { Vec::new() };
        let conditional = runners.iter().any(|runner| self.is_conditional_jump(runner));
        let mut callers: Vec<FunctionId> = runners.iter().map(|runner| runner.function).collect();
        callers.sort_unstable();
        callers.dedup();
        let few = !callers.is_empty() && callers.len() <= MOST_CALLERS && !conditional;
        if few && callers.iter().all(|caller| self.rooted(*caller, depth + 1)) {
            self.known.insert(id, Some(runners));
            return true;
        }
        false
    }

    /// A jump that is taken at times runs the function less often than its block.
    fn is_conditional_jump(&self, runner: &CallSite) -> bool {
        let jump = &self.code.functions[runner.function].function.instructions[runner.instruction];
        runner.run == CallKind::Jump && jump.flow.asks_flags()
    }

    fn collect(&self, id: FunctionId, into: &mut BTreeMap<FunctionId, Vec<CallSite>>) {
        if into.contains_key(&id) {
            return;
        }
        let runners = self.known.get(&id).cloned().flatten().unwrap_or_default();
        into.insert(id, runners.clone());
        for runner in runners {
            self.collect(runner.function, into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::CodePlace;

    #[test]
    fn main_is_rooted_in_the_entry_of_its_program() {
        let modules = [Binary::read(std::env::current_exe().unwrap().to_str().unwrap())];
        let named = |start: &u64| modules[0].function_name(*start) == Some("main");
        let main = modules[0].function_ranges().map(|range| range.start).find(named).unwrap();
        let mut code = Code::default();
        let (id, _) = code.find(&modules, CodePlace { module: Some(0), address: main }).unwrap();
        let roots = Roots::find(&mut code, &modules, &[id]);
        assert_eq!(roots.runners[&id].len(), 1);
        let entry = roots.runners[&id][0].function;
        assert!(roots.runners[&entry].is_empty(), "nothing runs the entry");
        assert_eq!(code.functions[entry].function.start, modules[0].entry);
    }
}
