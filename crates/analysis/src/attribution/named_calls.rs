//! Calls that name what they run, in the code or in the linkage table: they never run anything else.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::callers::CallPlace;
use crate::attribution::observed::AttributedSample;
use tierloom_binary::code::{Code, FunctionId};
use tierloom_binary::elf::Binary;
use tierloom_binary::instruction::Flow;

/// Such calls, and what they run, as far as samples show it.
pub(crate) fn named_calls(
    seen: &[AttributedSample],
    code: &Code,
    modules: &[Binary],
) -> BTreeMap<CallPlace, FunctionId> {
    let shown = seen.iter().flat_map(AttributedSample::calls);
    let shown: BTreeSet<(CallPlace, FunctionId)> =
        shown.map(|(called, frame)| ((frame.function, frame.site), called)).collect();
    shown.into_iter().filter(|(place, called)| names(code, modules, *place, *called)).collect()
}

fn names(code: &Code, modules: &[Binary], (caller, site): CallPlace, called: FunctionId) -> bool {
    let (caller, called) = (&code.functions[caller], &code.functions[called]);
    let module = &modules[caller.module];
    let imported = match caller.function.instructions[site].flow {
        Flow::Call(target) if caller.module == called.module && target == called.function.start => return true,
        Flow::Call(target) => module.import_behind(target),
        Flow::IndirectCall { slot } => slot.and_then(|slot| module.import(slot)),
        _ => None,
    };
    imported.is_some_and(|name| modules[called.module].exports(name, called.function.start))
}
