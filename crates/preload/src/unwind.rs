//! The frames of a call stack, found by the tables that compilers write for exceptions (`.eh_frame`).
//!
//! libgcc's `_Unwind_Backtrace` does the same and trusts the stack: it reads wherever the tables and the last
//! frame lead. That is right for exceptions, which only pass frames that expect them. We come unasked, also to
//! stacks that overflowed, that end without a mark, or that no table describes. So every word of the stack is
//! read through [`memory::Memory`], which cannot fault, and a walk ends where it cannot read.
//!
//! | file | step |
//! |---|---|
//! | `cfi`, `bytes` | the tables |
//! | `expression` | what they cannot say by numbers |
//! | `step` | from a frame to its caller's, remembered by address |
//! | `memory` | words of the stack |
//!
//! No lock and no memory is taken, and no system call is made on a thread's own stack.

mod bytes;
mod cfi;
mod expression;
mod memory;
mod step;

use std::arch::naked_asm;

use tierloom_wire::MAX_FRAMES;

use cfi::{REGISTERS, RETURN_ADDRESS, RSP};
use memory::Memory;
use step::Found;

use crate::bounds;

/// Address of the slot that holds the return address of a hook's caller.
pub(crate) type Entry = *const u64;

/// Registers of a frame, by their DWARF numbers. Of a caller only those are true that a callee saves.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Registers([u64; REGISTERS]);

impl Registers {
    fn address(&self) -> u64 {
        self.0[RETURN_ADDRESS]
    }

    fn stack_pointer(&self) -> u64 {
        self.0[RSP]
    }
}

/// Return addresses, innermost first.
pub(crate) struct Frames {
    count: usize,
    addresses: [u64; MAX_FRAMES],
}

impl Frames {
    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.addresses[..self.count]
    }

    /// Adds one; `false` where it is none, or there is no more room.
    fn push(&mut self, address: u64) -> bool {
        let has_room = address != 0 && self.count < MAX_FRAMES;
        if has_room {
            self.addresses[self.count] = address;
            self.count += 1;
        }
        has_room
    }
}

/// Finds out what must be known, before any hook needs it.
pub(crate) fn warm_up() {
    memory::try_out();
    let here = 0_u64;
    frames_from(&raw const here, 0);
}

/// Who called the hook that was entered at `entry`, and who called them. `generation`: of the loaded code.
pub(crate) fn frames_from(entry: Entry, generation: u32) -> Frames {
    let mut registers = Registers([0; REGISTERS]);
    // SAFETY: it writes where the argument says, within its bounds.
    unsafe { read_registers(&mut registers) };
    walk(registers, entry as u64, generation)
}

fn walk(mut registers: Registers, entry: u64, generation: u32) -> Frames {
    let mut frames = Frames { count: 0, addresses: [0; MAX_FRAMES] };
    let pointer = registers.stack_pointer();
    let mut memory = Memory::of_stack(pointer, entry, bounds::end_of_stack(pointer));
    // Frames of ours first: they lie below the entry.
    let mut found = Found::Caller;
    while found != Found::Nobody {
        if registers.stack_pointer() > entry && !frames.push(registers.address()) {
            break;
        }
        found = step::to_caller(&mut registers, found == Found::Interrupted, generation, &mut memory);
    }
    frames
}

/// The registers that a callee saves, of the caller; it goes on at the return address.
#[unsafe(naked)]
unsafe extern "C" fn read_registers(into: &mut Registers) {
    naked_asm!(
        "mov qword ptr [rdi + 8 * 3], rbx",
        "mov qword ptr [rdi + 8 * 6], rbp",
        "mov qword ptr [rdi + 8 * 12], r12",
        "mov qword ptr [rdi + 8 * 13], r13",
        "mov qword ptr [rdi + 8 * 14], r14",
        "mov qword ptr [rdi + 8 * 15], r15",
        "mov rax, qword ptr [rsp]",
        "mov qword ptr [rdi + 8 * 16], rax",
        "lea rax, [rsp + 8]",
        "mov qword ptr [rdi + 8 * 7], rax",
        "ret",
    )
}

#[cfg(test)]
mod tests;
