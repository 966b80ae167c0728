//! The functions that the program calls instead of libc's, in assembly: one list, at the end.
//!
//! Most calls are for small blocks, in which nobody is interested. So an entry compares the size with
//! the smallest that is recorded and jumps on to the next library's function: no frame, no register of
//! the caller's touched. The size of a block that is given back lies before it where glibc made it, and
//! is what its `free` looks at next; elsewhere the filter of recorded addresses is asked (see `tracked`).
//! Everything else goes to a hook, which gets the stack pointer, at which the caller's return address
//! lies, as one more argument: so it knows its caller without unwinding, and its own frames are never
//! part of a recorded stack.

#![cfg_attr(test, allow(dead_code))]

use std::arch::naked_asm;

use crate::forked::WIPED;
use crate::hooks::{heap, maps};
use crate::leave;
use crate::real::pointers;
use crate::settings::MIN_BYTES;
use crate::tracked::{FACTOR, FILTER_SHIFT_IN, FILTER_SHIFT_OUT, TRACKED};

/// One entry, documented and exported.
macro_rules! entry {
    ($name:ident, $($assembly:tt)*) => {
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        ///
        /// # Safety
        /// That of libc.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!($($assembly)*)
        }
    };
}

/// A block of `size` bytes: recorded when it is large. The last register is free for the hook.
macro_rules! sized {
    ($($name:ident, $size:literal, $register:literal => $hook:ident;)*) => {$(
        entry! {
            $name,
            concat!("cmp ", $size, ", qword ptr [rip + {least}]"),
            "jae 2f",
            "jmp qword ptr [rip + {real}]",
            "2:",
            concat!("mov ", $register, ", rsp"),
            "jmp {hook}",
            least = sym MIN_BYTES,
            real = sym pointers::$name,
            hook = sym heap::$hook,
        }
    )*};
}

/// A block is given back, with whatever arguments beside: noted when it may have been recorded. An
/// address has its count in the filter; the size before a block has flags in its low bits.
macro_rules! given_back {
    ($($name:ident $(, $register:literal: $($before:literal),*)? => $hook:ident;)*) => {$(
        entry! {
            $name,
            $($($before,)*)?
            "test rdi, rdi",
            "je 3f",
            "cmp byte ptr [rip + {size_before_block}], 0",
            "je 4f",
            "mov rax, qword ptr [rdi - 8]",
            "cmp rax, qword ptr [rip + {least}]",
            "jae 2f",
            "3:",
            "jmp qword ptr [rip + {real}]",
            "4:",
            "mov rax, rdi",
            "shr rax, {shift_in}",
            "imul eax, eax, {factor}",
            "shr eax, {shift_out}",
            "lea r8, [rip + {filter}]",
            "cmp byte ptr [r8 + rax], 0",
            "je 3b",
            "2:",
            $(concat!("mov ", $register, ", rsp"),)?
            "jmp {hook}",
            size_before_block = sym WIPED,
            least = sym MIN_BYTES,
            shift_in = const FILTER_SHIFT_IN,
            factor = const FACTOR.cast_signed(),
            shift_out = const FILTER_SHIFT_OUT,
            filter = sym TRACKED,
            real = sym pointers::$name,
            hook = sym heap::$hook,
        }
    )*};
}

/// Entries that only add the stack pointer, in the register behind the last argument.
macro_rules! always {
    ($($name:ident, $register:literal => $room:ident::$hook:ident;)*) => {$(
        entry! { $name, concat!("mov ", $register, ", rsp"), "jmp {hook}", hook = sym $room::$hook }
    )*};
}

/// `mmap` has six arguments, so the stack pointer goes on the stack.
macro_rules! on_stack {
    ($($name:ident => $hook:ident;)*) => {$(
        entry! {
            $name,
            ".cfi_startproc",
            "push rsp",
            ".cfi_adjust_cfa_offset 8",
            "call {hook}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "ret",
            ".cfi_endproc",
            hook = sym maps::$hook,
        }
    )*};
}

sized! {
    malloc, "rdi", "rsi" => on_malloc;
    valloc, "rdi", "rsi" => on_valloc;
    pvalloc, "rdi", "rsi" => on_pvalloc;
    memalign, "rsi", "rdx" => on_memalign;
    aligned_alloc, "rsi", "rdx" => on_aligned_alloc;
    posix_memalign, "rdx", "rcx" => on_posix_memalign;
}

given_back! {
    free => on_free;
    free_sized => on_free_sized;
    free_aligned_sized => on_free_aligned_sized;
    realloc, "rdx": "cmp rsi, qword ptr [rip + {least}]", "jae 2f" => on_realloc;
}

always! {
    mremap, "r9" => maps::on_mremap;
    sbrk, "rsi" => maps::on_sbrk;
    brk, "rsi" => maps::on_brk;
}

on_stack! {
    mmap => on_mmap;
    mmap64 => on_mmap;
}

entry! {
    calloc,
    "mov rax, rdi",
    "mul rsi",
    "jo 2f",
    "cmp rax, qword ptr [rip + {least}]",
    "jae 2f",
    "jmp qword ptr [rip + {real}]",
    "2:",
    "mov rdx, rsp",
    "jmp {hook}",
    least = sym MIN_BYTES,
    real = sym pointers::calloc,
    hook = sym heap::on_calloc,
}

// `seccomp` has no function of its own in libc. All arguments of a call are kept over ours, and the stack aligned.
entry! {
    syscall,
    "cmp rdi, {seccomp}",
    "je 2f",
    "jmp qword ptr [rip + {real}]",
    "2:",
    "cmp rsi, {filter}",
    "ja 3f",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push r8",
    "push r9",
    "sub rsp, 8",
    "call {close}",
    "add rsp, 8",
    "pop r9",
    "pop r8",
    "pop rcx",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "3:",
    "jmp qword ptr [rip + {real}]",
    seccomp = const libc::SYS_seccomp,
    filter = const libc::SECCOMP_SET_MODE_FILTER,
    real = sym pointers::syscall,
    close = sym leave::close,
}

// The program's `realloc`, as in glibc: that is ours, unless the program brings its own.
entry! {
    reallocarray,
    "mov rax, rsi",
    "mul rdx",
    "jo 2f",
    "mov rsi, rax",
    "jmp qword ptr [rip + realloc@GOTPCREL]",
    "2:",
    "jmp {overflow}",
    overflow = sym heap::on_overflow,
}
