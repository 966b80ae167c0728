//! Which registers a call of a function changes.
//!
//! The ABI lets it change nine. A compiler that sees a small function keeps values in those which that one leaves alone
//! (GCC's `-fipa-ra`, on from `-O2`): counters of loops around calls, too.

use std::collections::BTreeMap;

use crate::arch::{self, CALLEE_SAVED, STACK_POINTER};
use crate::elf::Binary;
use crate::instruction::{Flow, Instruction, RegisterSet};

/// Longer functions leave no register alone that the ABI lets them change. Assumed.
const LONGEST_BYTES: u64 = 1024;
/// Calls in calls that are followed. Assumed.
const DEEPEST: usize = 3;

/// By module and start of the function: what calls of it change, where that is known.
#[derive(Default)]
pub(crate) struct ChangedRegisters {
    known: BTreeMap<(usize, u64), Option<RegisterSet>>,
}

impl ChangedRegisters {
    /// What a call of the function at an address changes; nothing where more than its own code decides.
    pub(crate) fn by_call(&mut self, modules: &[Binary], module: usize, start: u64) -> Option<RegisterSet> {
        self.within(modules, (module, start), DEEPEST)
    }

    fn within(&mut self, modules: &[Binary], at: (usize, u64), depth: usize) -> Option<RegisterSet> {
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        let found = self.find(modules, at, depth);
        if found.is_some() || depth == DEEPEST {
            self.known.insert(at, found);
        }
        found
    }

    fn find(&mut self, modules: &[Binary], (module, start): (usize, u64), depth: usize) -> Option<RegisterSet> {
        let range = modules[module].function_at(start).filter(|range| range.start == start)?;
        let bytes = modules[module].code(&range).filter(|code| code.len() as u64 <= LONGEST_BYTES)?;
        let changed = |one: &Instruction| match one.flow {
            Flow::Call(target) => self.within(modules, (module, target), depth.checked_sub(1)?),
            Flow::Jump(target) | Flow::Branch { target, .. } => range.contains(&target).then_some(one.clobbered),
            Flow::IndirectJump | Flow::IndirectCall { .. } | Flow::Unclear => None,
            Flow::Next | Flow::Return | Flow::Stop => Some(one.clobbered),
        };
        let all = arch::decode(bytes, start)
            .iter()
            .map(changed)
            .try_fold(RegisterSet::default(), |all, one| Some(all.union(one?)))?;
        Some(all.without(CALLEE_SAVED).without(RegisterSet::of(&[STACK_POINTER])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_changes_is_what_the_function_writes() {
        let modules = [Binary::read(std::env::current_exe().unwrap().to_str().unwrap())];
        let mut changed = ChangedRegisters::default();
        let mut known = 0;
        for range in modules[0].function_ranges() {
            let Some(set) = changed.by_call(&modules, 0, range.start) else { continue };
            known += 1;
            assert!(set.common(CALLEE_SAVED).is_empty(), "the function gives them back");
            let bytes = modules[0].code(&range).unwrap();
            let instructions = arch::decode(bytes, range.start);
            let own = instructions.iter().filter(|one| !one.is_call()).map(|one| one.written);
            let own = own.fold(RegisterSet::default(), RegisterSet::union);
            assert!(own.without(set).without(CALLEE_SAVED).without(RegisterSet::of(&[STACK_POINTER])).is_empty());
        }
        assert!(known > 100, "{known}");
        assert_eq!(changed.by_call(&modules, 0, 1), None, "no function begins there");
    }
}
