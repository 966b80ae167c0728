//! The loops around a function that lie in its callers.
//!
//! A function leaves the callee-saved registers alone unless it saves them first, so a sample in a
//! small kernel still shows the loop counters of the function that called it, provided that all its
//! calls come from one loop. Calls through pointers are not seen; a function that is called so as well
//! may show a stranger's registers, which the tests on pairs of samples then throw out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::arch::CALLEE_SAVED;
use crate::cfg::{BlockId, Function, LoopId};
use crate::code::{Code, FunctionId};
use crate::elf::Binary;
use crate::instruction::RegisterSet;

/// Callers up to this far away are looked at.
const DEEPEST: usize = 4;

/// A caller of a function, direct or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// The function that calls.
    pub function: FunctionId,
    /// Innermost loop around all calls.
    pub inside: Option<LoopId>,
    /// Positions of the calls.
    pub sites: Vec<usize>,
    /// Registers that still hold the caller's values in the called function.
    pub valid: RegisterSet,
}

/// Callers by function, nearest first.
#[derive(Default)]
pub struct Levels {
    by_function: BTreeMap<FunctionId, Arc<[Level]>>,
}

impl Levels {
    /// Callers of a function, as long as each has only one function that calls it.
    pub fn of(&mut self, code: &mut Code, modules: &[Binary], id: FunctionId) -> Arc<[Level]> {
        if let Some(known) = self.by_function.get(&id) {
            return known.clone();
        }
        let levels: Arc<[Level]> = find(code, modules, id).into();
        self.by_function.insert(id, levels.clone());
        levels
    }

    /// As [`Levels::of`], for functions that were asked for before.
    pub fn known(&self, id: FunctionId) -> &[Level] {
        self.by_function.get(&id).map_or(&[], |levels| levels)
    }
}

fn find(code: &mut Code, modules: &[Binary], id: FunctionId) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let mut current = id;
    let mut valid = CALLEE_SAVED;
    while levels.len() < DEEPEST {
        valid = valid.without(written(&code.functions[current].function));
        let calls = code.callers(modules, current);
        let Some(caller) = calls.first().map(|call| call.0) else { break };
        let seen = caller == id || levels.iter().any(|level| level.function == caller);
        if seen || calls.iter().any(|call| call.0 != caller) || valid.is_empty() {
            break;
        }
        let sites: Vec<usize> = calls.iter().map(|call| call.1).collect();
        let inside = common_loop(&code.functions[caller].function, &sites);
        levels.push(Level { function: caller, inside, sites, valid });
        current = caller;
    }
    levels
}

/// Everything a function writes itself; what it calls restores what it must.
fn written(function: &Function) -> RegisterSet {
    function.instructions.iter().fold(RegisterSet::default(), |set, one| set.union(one.written))
}

fn common_loop(function: &Function, sites: &[usize]) -> Option<LoopId> {
    let blocks: Vec<BlockId> = sites.iter().map(|site| function.block_of(*site)).collect();
    let around = function.loops_around(*blocks.first()?);
    around.into_iter().find(|id| blocks.iter().all(|block| function.loops[*id].contains(*block)))
}
