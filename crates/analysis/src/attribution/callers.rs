//! Who called the function that a sample is in, and what it had in its registers: by the unwind tables, and what the sample
//! found on its stack.

use std::collections::BTreeMap;

use crate::address_space::AddressSpaces;
use tierloom_binary::arch::{CALLEE_SAVED, STACK_POINTER};
use tierloom_binary::code::{Code, CodePlace, FunctionId};
use tierloom_binary::dataflow::state::{Shown, State};
use tierloom_binary::elf::UnwindRow;
use tierloom_binary::instruction::{Flow, Instruction, RegisterSet};
use tierloom_recording::Sample;

/// Callers that are looked for: those further out are seldom on what a sample brings of the stack. Assumed.
const DEEPEST: usize = 8;

/// Function and position of a call.
pub(crate) type CallPlace = (FunctionId, usize);

/// A caller's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallerFrame {
    /// The function that called.
    pub(crate) function: FunctionId,
    /// Position of the call.
    pub(crate) site: usize,
    /// Its registers, as far as the called function leaves them as they were or keeps them on the stack.
    pub(crate) state: State,
    /// Words from the sample's stack pointer to its own.
    pub(crate) stack_from: usize,
}

/// Unwind tables, as far as they were asked.
#[derive(Default)]
pub(crate) struct UnwindRows {
    rows: BTreeMap<(usize, u64), Option<UnwindRow>>,
}

impl UnwindRows {
    /// The callers of what a sample is in, nearest first; nothing where not even the first can be told.
    pub(crate) fn callers(
        &mut self,
        spaces: &AddressSpaces<'_>,
        code: &mut Code,
        sample: &Sample,
        ((own, _), shown): ((FunctionId, usize), Shown<'_>),
    ) -> Option<Box<[CallerFrame]>> {
        let stack = shown.stack_words();
        let mut place = spaces.code_at(sample.pid, sample.ip());
        let mut state = *shown.state;
        let mut found = Vec::new();
        for depth in 0..DEEPEST {
            let Some(caller) = self.row(spaces, place).and_then(|row| row.caller(&state, &stack)) else {
                if depth == 0 {
                    return None;
                }
                break;
            };
            // The call itself is still the caller's where what comes behind it is another function.
            let call = caller.return_address.wrapping_sub(1);
            place = spaces.code_at(sample.pid, call);
            state = caller.state.in_module(spaces.bias_at(sample.pid, call));
            let Some((function, site)) = code.call_around(&spaces.modules, place) else { continue };
            if depth == 0 {
                for register in left_alone(code, (function, site), own).iter() {
                    state.set(register, shown.state.get(register));
                }
            }
            let words = state.get(STACK_POINTER)?.checked_sub(stack.pointer)? / 8;
            found.push(CallerFrame { function, site, state, stack_from: usize::try_from(words).ok()? });
        }
        Some(found.into())
    }

    fn row(&mut self, spaces: &AddressSpaces<'_>, place: CodePlace) -> Option<&UnwindRow> {
        let module = place.module?;
        let row = || spaces.modules[module].unwind_row(place.address);
        self.rows.entry((module, place.address)).or_insert_with(row).as_ref()
    }
}

/// Registers that calls may change and that the call of a function does not: compilers keep values there when they know what
/// they call. Of a function that calls others itself nothing is said: such a call may be under way.
fn left_alone(code: &Code, (caller, site): (FunctionId, usize), called: FunctionId) -> RegisterSet {
    let (caller, called) = (&code.functions[caller], &code.functions[called]);
    let call = &caller.function.instructions[site];
    let is_direct = caller.module == called.module && call.flow == Flow::Call(called.function.start);
    if !is_direct || called.function.instructions.iter().any(Instruction::is_call) {
        return RegisterSet::default();
    }
    call.clobbered.union(CALLEE_SAVED).others().without(RegisterSet::of(&[STACK_POINTER]))
}
