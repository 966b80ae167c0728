//! A row of an unwind table: how to find a function's caller, and what it has in its registers.

use gimli::{CfaRule, RegisterRule};

use crate::arch::{CALLEE_SAVED, RETURN_ADDRESS, STACK_POINTER, in_dwarf, numbered_by_dwarf};
use crate::dataflow::state::{StackWords, State};
use crate::instruction::Gpr;

/// Where the canonical frame address is (DWARF 5, 6.4): at a distance from what a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAddress {
    /// The register.
    pub register: Gpr,
    /// The distance, bytes.
    pub offset: i64,
}

/// Where a register of the caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Saved {
    /// Still in the register.
    Kept,
    /// At this distance from the frame address.
    At(i64),
    /// Somewhere that is not followed.
    Elsewhere,
}

/// What an unwind table says of one place in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwindRow {
    /// Where the frame is.
    pub frame: FrameAddress,
    /// The return address, at this distance from the frame address; nothing in what nobody called.
    back: Option<i64>,
    /// What calls leave as it was.
    saved: Vec<(Gpr, Saved)>,
}

/// The caller of a function, as the function's frame shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Where it goes on.
    pub return_address: u64,
    /// Its registers then, as far as calls leave them as they were.
    pub state: State,
}

impl UnwindRow {
    pub(super) fn of(row: &gimli::UnwindTableRow<usize>) -> Option<Self> {
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let back = match row.register(gimli::Register(RETURN_ADDRESS)) {
            Some(RegisterRule::Offset(offset)) => Some(offset),
            _ => None,
        };
        let saved = |register: Gpr| match row.register(gimli::Register(in_dwarf(register))) {
            // What a table does not mention is as it was (System V ABI for x86-64, 3.2.1).
            None | Some(RegisterRule::SameValue) => Saved::Kept,
            Some(RegisterRule::Offset(offset)) => Saved::At(offset),
            _ => Saved::Elsewhere,
        };
        Some(Self {
            frame: FrameAddress { register: numbered_by_dwarf(register.0)?, offset },
            back,
            saved: CALLEE_SAVED.iter().map(|register| (register, saved(register))).collect(),
        })
    }

    /// The caller, of what the function has in its registers and on its stack; nothing where the stack does not reach so far.
    pub fn caller(&self, state: &State, stack: &StackWords<'_>) -> Option<Caller> {
        let frame = state.get(self.frame.register)?.wrapping_add_signed(self.frame.offset);
        let at = |distance: i64| stack.value(frame.wrapping_add_signed(distance), 8);
        let return_address = at(self.back?)?;
        let mut caller = *state;
        caller.forget(CALLEE_SAVED.others());
        caller.set(STACK_POINTER, Some(frame));
        for (register, saved) in &self.saved {
            match saved {
                Saved::Kept => {}
                Saved::At(distance) => caller.set(*register, at(*distance)),
                Saved::Elsewhere => caller.set(*register, None),
            }
        }
        Some(Caller { return_address, state: caller })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Binary;

    const BX: Gpr = Gpr::new(3);
    const BP: Gpr = Gpr::new(5);
    const CX: Gpr = Gpr::new(1);
    const R12: Gpr = Gpr::new(12);

    /// After `push rbx; push r12; sub rsp, 8`.
    fn row() -> UnwindRow {
        UnwindRow {
            frame: FrameAddress { register: STACK_POINTER, offset: 32 },
            back: Some(-8),
            saved: vec![(BX, Saved::At(-16)), (R12, Saved::At(-24)), (BP, Saved::Kept)],
        }
    }

    fn state() -> State {
        let mut state = State::unknown();
        for (register, value) in [(STACK_POINTER, 0x7000), (BX, 1), (BP, 2), (R12, 3), (CX, 4)] {
            state.set(register, Some(value));
        }
        state
    }

    #[test]
    fn a_caller_has_what_was_saved_and_what_was_left_alone() {
        let stack = StackWords { pointer: 0x7000, words: &[0, 0x12, 0xb, 0x40_1234, 99] };
        let Caller { return_address, state } = row().caller(&state(), &stack).unwrap();
        assert_eq!(return_address, 0x40_1234);
        assert_eq!(
            [BX, BP, R12, STACK_POINTER].map(|register| state.get(register)),
            [Some(0xb), Some(2), Some(0x12), Some(0x7020)]
        );
        assert_eq!(state.get(CX), None, "calls may change it");
    }

    #[test]
    fn where_the_stack_ends_no_caller_is_known() {
        let short = StackWords { pointer: 0x7000, words: &[0, 0x12, 0xb] };
        assert_eq!(row().caller(&state(), &short), None);
        let mut lost = state();
        lost.set(STACK_POINTER, None);
        let stack = StackWords { pointer: 0x7000, words: &[0; 8] };
        assert_eq!(row().caller(&lost, &stack), None);
        assert_eq!(UnwindRow { back: None, ..row() }.caller(&state(), &stack), None, "nobody called it");
    }

    #[test]
    fn at_its_first_instruction_a_function_has_saved_nothing() {
        let module = Binary::read(std::env::current_exe().unwrap().to_str().unwrap());
        let rows: Vec<UnwindRow> =
            module.function_ranges().filter_map(|range| module.unwind_row(range.start)).take(2000).collect();
        let usual = |row: &&UnwindRow| {
            row.frame == FrameAddress { register: STACK_POINTER, offset: 8 }
                && row.back == Some(-8)
                && row.saved.iter().all(|(_, saved)| *saved == Saved::Kept)
        };
        // The entry of the program, linkage tables and the cold halves of functions are others.
        let alike = rows.iter().filter(usual).count();
        assert!(rows.len() > 500 && 10 * alike > 9 * rows.len(), "{alike} of {}", rows.len());
    }
}
