//! What is done for a call that is recorded: `heap` for blocks, `maps` for mappings, and here what
//! both need, and the calls that change who we are: threads that begin, libraries that end.
//!
//! The promise of every hook: the result, `errno` and all effects are those of the next library's
//! function. Records carry the time of what they say, and a recorder sorts by it: a range was handed
//! out at a time after the call, and given back at one before it. So another thread's record of the
//! same address never comes between, and a call that failed has nothing to take back.

#![cfg_attr(test, allow(dead_code))]

pub(crate) mod heap;
pub(crate) mod maps;

use std::ffi::{c_int, c_ulong, c_void};

use tierloom_wire::{Event, Source};

use crate::policy::{self, Handed};
use crate::stack::Identity;
use crate::unwind::Entry;
use crate::{bounds, generation, leave, real, report, stack, thread};

/// What the allocator and the kernel hand out.
pub(crate) type Block = *mut c_void;

/// Records a range that was just handed out, and places it. On a signal stack with little room it stays where the
/// kernel puts it.
#[cold]
fn allocated(address: u64, bytes: u64, entry: Entry, handed: Handed) {
    let source = match handed {
        Handed::Block => Source::Heap,
        Handed::Mapping(_) => Source::Anonymous,
        Handed::Addresses(_) => Source::Reserved,
        Handed::File(_) => Source::File,
    };
    if policy::may_come() && bounds::is_cramped(entry as u64) {
        return;
    }
    policy::look_for_rules();
    let identity = thread::once(entry as u64, || stack::identify(entry)).unwrap_or(Identity::NONE);
    if handed == Handed::Block && policy::keep_to_ourselves(identity, address, bytes) {
        return;
    }
    let Identity { id, rule } = identity;
    // Read last, so that it waits for all of our misses at once.
    report::send(report::now(), Event::Alloc { address, bytes, stack: id, source });
    policy::place(rule, address, bytes, handed);
}

/// `pthread_create`: a thread learns where its stack is as it begins.
///
/// # Safety
/// That of libc.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    how: *const libc::pthread_attr_t,
    work: real::Work,
    argument: Block,
) -> c_int {
    let (wrapped, place) = bounds::hand_over(how, work, argument);
    // SAFETY: the program's call, passed on; the wrapped work calls the program's.
    let refused = unsafe { real::pthread_create(thread, how, wrapped, place) };
    if refused != 0 {
        bounds::take_back(wrapped, place);
    }
    refused
}

/// `prctl`: a process that gives up the processor's clock, or system calls, is left alone from then on. A filter may
/// end it for a call that it never makes itself.
///
/// # Safety
/// That of libc.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn prctl(option: c_int, one: c_ulong, two: c_ulong, three: c_ulong, four: c_ulong) -> c_int {
    const NO_CLOCK: c_ulong = libc::PR_TSC_SIGSEGV as c_ulong;
    if matches!((option, one), (libc::PR_SET_SECCOMP, _) | (libc::PR_SET_TSC, NO_CLOCK)) {
        leave::close();
    }
    // SAFETY: the program's call, passed on.
    unsafe { real::prctl(option, one, two, three, four) }
}

/// `dlclose`: stacks with frames in that library are not to be taken for another one's, and no thread may be in a copy of
/// its code when other code comes to its place.
///
/// # Safety
/// That of libc.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    // SAFETY: the program's call, passed on.
    let refused = leave::left_alone(|| unsafe { real::dlclose(library) });
    thread::quietly(generation::look_for_unloads);
    refused
}

/// `__cxa_finalize`: the program's own last functions come before those of libraries, ours among them, where they were
/// registered with the program's handle (Itanium C++ ABI, 3.3.6.3).
///
/// # Safety
/// That of libc.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __cxa_finalize(handle: *mut c_void) {
    leave::before_last_functions(handle as u64);
    // SAFETY: the program's call, passed on.
    unsafe { real::__cxa_finalize(handle) }
}
