//! Windows, understood: which blocks of which functions ran how often in a stretch of time.

use std::collections::BTreeMap;

use tierloom_binary::cfg::BlockId;
use tierloom_binary::code::{Code, FunctionId};
use tierloom_recording::{BlockCount, Outcome, WarmUp, Window};

use crate::address_space::AddressSpaces;
use crate::attribution::page_faults::PageFaults;
use crate::attribution::touches::Touches;

/// A window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountedWindow {
    /// Function and position of the instruction at which it began, where the code is known.
    pub(crate) entered: Option<(FunctionId, usize)>,
    /// CPU time that it stands for, ns.
    pub(crate) stands_for_ns: f64,
    /// CPU time outside of the kernel that it lasted, ns; 0 where nothing was counted.
    pub(crate) duration_ns: f64,
    /// The same with the kernel's for page faults.
    pub(crate) with_faults_ns: f64,
    pub(crate) warm_up: WarmUp,
    pub(crate) outcome: Outcome,
    /// Executions of blocks.
    pub(crate) executions: BTreeMap<(FunctionId, BlockId), f64>,
    /// Where operands were just before.
    pub(crate) touches: Touches,
}

impl CountedWindow {
    /// As the world is at the time of the window.
    pub(crate) fn of(
        window: &Window,
        faults: &PageFaults<'_>,
        code: &mut Code,
        spaces: &mut AddressSpaces<'_>,
    ) -> Self {
        let place = spaces.code_at(window.pid, window.address);
        let entered = code.find(&spaces.modules, place);
        let executions = executions(window.pid, &window.counts, code, spaces);
        Self {
            entered,
            stands_for_ns: window.stands_for_ns as f64,
            duration_ns: faults.own_ns(window),
            with_faults_ns: window.duration_ns as f64,
            warm_up: window.warm_up,
            outcome: window.outcome,
            executions,
            touches: Touches::of((window.pid, window.stack_pointer), &window.touches, code, spaces),
        }
    }
}

/// How often blocks ran.
fn executions(
    pid: u32,
    counts: &[BlockCount],
    code: &mut Code,
    spaces: &AddressSpaces<'_>,
) -> BTreeMap<(FunctionId, BlockId), f64> {
    let mut executions = BTreeMap::new();
    for count in counts {
        for block in blocks(pid, count, code, spaces) {
            *executions.entry(block).or_default() += count.executions as f64;
        }
    }
    executions
}

/// Blocks that begin in a stretch of code. What was counted as one block may be several, where somebody jumps to its
/// middle, and the other way round.
fn blocks(pid: u32, count: &BlockCount, code: &mut Code, spaces: &AddressSpaces<'_>) -> Vec<(FunctionId, BlockId)> {
    let place = spaces.code_at(pid, count.start);
    let Some((id, first)) = code.find(&spaces.modules, place) else { return Vec::new() };
    let function = &code.functions[id].function;
    let end = place.address + count.bytes;
    let begins = |index: &usize| function.blocks[function.block_of(*index)].first == *index;
    let inside = |index: &usize| function.instructions[*index].address < end;
    let covered = (first..function.instructions.len()).take_while(inside);
    covered.filter(begins).map(|index| (id, function.block_of(index))).collect()
}
