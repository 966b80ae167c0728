//! Branches between the entry of a function and its first loop, by what it was called with.
//!
//! Whether there is anything to do is often asked before a loop begins, of an argument; in the loop itself nothing need be
//! left of it. The code before the call says what the arguments were: constants, or what the caller still has in its
//! registers and on its stack.

use std::collections::BTreeMap;

use crate::attribution::Observed;
use crate::attribution::callers::CallerFrame;
use crate::frequency::branches::{BranchCounts, BranchTable, MOST_SAMPLES, decided, run_on};
use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::state::{Shown, State};
use tierloom_binary::instruction::RegisterSet;

/// Which way such branches go, by the calls that samples are in.
pub(crate) fn by_arguments(observed: &Observed) -> BranchTable {
    let mut found: BTreeMap<(FunctionId, BlockId), BranchCounts> = BTreeMap::new();
    for (id, calls) in calls(observed) {
        let function = &observed.code.functions[id].function;
        for &(number, frame) in calls.iter().step_by(calls.len().div_ceil(MOST_SAMPLES)) {
            let state = arguments(observed, frame, observed.shown_of(number, frame));
            run_on(function, 0, state, |block, taken| {
                let outside = function.blocks[block].inner_loop.is_none();
                if outside {
                    found.entry((id, block)).or_default().add(taken);
                }
                outside
            });
        }
    }
    decided(found)
}

/// Calls of each function that samples are in: position of the sample, and the caller.
fn calls(observed: &Observed) -> BTreeMap<FunctionId, Vec<(usize, &CallerFrame)>> {
    let mut calls: BTreeMap<FunctionId, Vec<(usize, &CallerFrame)>> = BTreeMap::new();
    for (number, seen) in observed.seen.iter().enumerate() {
        for (called, frame) in seen.calls() {
            calls.entry(called).or_default().push((number, frame));
        }
    }
    calls
}

/// Registers at a call, by the code of its block.
fn arguments(observed: &Observed, frame: &CallerFrame, shown: Shown<'_>) -> State {
    let function = &observed.code.functions[frame.function].function;
    let before = &function.instructions[function.blocks[function.block_of(frame.site)].first..frame.site];
    let stack = shown.stack_words();
    let mut state = frame.state;
    state.forget(before.iter().fold(RegisterSet::default(), |set, one| set.union(one.clobbered)));
    for instruction in before {
        state.execute_beside(instruction, &stack);
    }
    state
}
