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
//! | `memory`, `registers` | words of the stack, and what a frame has in its registers |
//!
//! No lock and no memory is taken, and no system call is made on a thread's own stack.

mod bytes;
mod cfi;
mod expression;
mod memory;
mod registers;
mod step;

use std::arch::naked_asm;
use std::mem::MaybeUninit;
use std::slice;

use tierloom_wire::MAX_FRAMES;

use cfi::{RBP, REGISTERS};
use memory::Memory;
use registers::Registers;
use step::{Found, Pointers};

use crate::bounds;

/// Address of the slot that holds the return address of a hook's caller.
pub(crate) type Entry = *const u64;

/// Return addresses, innermost first.
pub(crate) struct Frames {
    count: usize,
    addresses: [MaybeUninit<u64>; MAX_FRAMES],
}

impl Frames {
    #[inline]
    fn none() -> Self {
        Self { count: 0, addresses: [MaybeUninit::uninit(); MAX_FRAMES] }
    }

    pub(crate) fn as_slice(&self) -> &[u64] {
        // SAFETY: so many were pushed.
        unsafe { slice::from_raw_parts(self.addresses.as_ptr().cast(), self.count) }
    }

    /// Adds one; `false` where it is none, or there is no more room.
    #[inline]
    fn push(&mut self, address: u64) -> bool {
        let has_room = address != 0 && self.count < MAX_FRAMES;
        if has_room {
            self.addresses[self.count].write(address);
            self.count += 1;
        }
        has_room
    }
}

/// Finds out what must be known, before any hook needs it.
pub(crate) fn warm_up() {
    let here = 0_u64;
    with_frames(&raw const here, 0, |_| ());
}

/// Calls `work` with the frames of who called the hook that was entered at `entry`, and who called them.
/// `generation`: of the loaded code. In line, so that there are few frames of ours to pass.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(crate) fn with_frames<T>(entry: Entry, generation: u32, work: impl FnOnce(&[u64]) -> T) -> T {
    let mut registers = Registers([0; REGISTERS]);
    // SAFETY: it writes where the argument says, within its bounds.
    unsafe { read_registers(&mut registers) };
    let mut frames = Frames::none();
    walk(&registers, entry as u64, generation, &mut frames);
    work(frames.as_slice())
}

fn walk(from: &Registers, entry: u64, generation: u32, frames: &mut Frames) {
    let pointer = from.stack_pointer();
    let mut memory = Memory::of_stack(pointer, entry, bounds::end_of_stack(pointer));
    if !walk_quickly(from, entry, generation, &memory, frames) {
        frames.count = 0;
        walk_carefully(*from, entry, generation, &mut memory, frames);
    }
}

/// Frames of the usual kind; `false` where there is another one.
fn walk_quickly(from: &Registers, entry: u64, generation: u32, memory: &Memory, frames: &mut Frames) -> bool {
    let mut at = Pointers { address: from.address(), stack: from.stack_pointer(), frame: from.0[RBP] };
    // Frames of ours first: they lie below the entry.
    while at.stack <= entry || frames.push(at.address) {
        let Some(caller) = step::quick(at, generation, memory) else { return false };
        if caller.stack <= at.stack {
            // The outermost frame; or the tables lead back, and who knows where.
            return caller.address == 0;
        }
        at = caller;
    }
    true
}

/// Frames of any kind.
#[cold]
fn walk_carefully(from: Registers, entry: u64, generation: u32, memory: &mut Memory, frames: &mut Frames) {
    /// Frames of ours, those that are kept, and no more: tables that say something wrong may lead in a circle.
    const MOST_STEPS: usize = 2 * MAX_FRAMES;
    let mut registers = from;
    let mut found = Found::Caller;
    for _ in 0..MOST_STEPS {
        if found == Found::Nobody || !(registers.stack_pointer() <= entry || frames.push(registers.address())) {
            return;
        }
        found = step::to_caller(&mut registers, found == Found::Interrupted, generation, memory);
    }
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
