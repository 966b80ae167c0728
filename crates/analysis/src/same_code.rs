//! Whether instructions were counted in the builds that were recorded: a file of counts does not say of which build it is,
//! but its addresses begin instructions, and whoever enters a block runs all of it.

use std::collections::BTreeMap;

use tierloom_binary::Binaries;
use tierloom_binary::code::{Code, FunctionId};
use tierloom_recording::{InstructionCounts, Recording};

use crate::attribution::counted_code::{ByPosition, by_function, tells_itself};

/// Share of blocks and addresses that may not fit: signals leave blocks in the middle, and hand-written code jumps to
/// the middle of instructions. Assumed: of whole programs .1 % does not fit, and of another build most.
const MOST_UNFIT: f64 = 0.05;

/// Files whose counts are those of another build than was recorded.
pub fn of_other_builds(recording: &Recording, counts: &InstructionCounts, binaries: &dyn Binaries) -> Vec<String> {
    let is_other = |(path, build): &(&String, &String)| {
        let Some(executions) = counts.files.get(*path) else { return false };
        let modules = [binaries.open(path, Some(build))];
        let mut code = Code::default();
        let (functions, lost) = by_function(0, executions, &mut code, &modules);
        is_another(&code, &functions, lost)
    };
    recording.binaries.iter().filter(is_other).map(|(path, _)| path.clone()).collect()
}

fn is_another(code: &Code, functions: &BTreeMap<FunctionId, ByPosition>, lost: usize) -> bool {
    let (mut all, mut unfit) = (lost, lost);
    for (id, counted) in functions {
        let function = &code.functions[*id].function;
        for block in &function.blocks {
            let plain = (block.first..block.end).filter(|at| tells_itself(&function.instructions[*at]));
            let mut counts = plain.map(|at| counted.get(&at).copied().unwrap_or(0.0));
            let Some(first) = counts.next() else { continue };
            let is_even = counts.all(|count| (count - first).abs() < 0.5);
            all += usize::from(first > 0.0 || !is_even);
            unfit += usize::from(!is_even);
        }
    }
    unfit as f64 > MOST_UNFIT * all.max(1) as f64
}
