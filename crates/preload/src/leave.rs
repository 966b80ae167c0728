//! How a process ends, or gives up system calls, while somebody halts its threads: it says so and waits a moment until
//! nobody is held.
//!
//! What runs at the end may be a leak checker that traces the process itself (see the wire's `leave`). Ours is
//! registered by a constructor, so it runs before what a runtime registered that came up earlier; and where the runtime is
//! linked into the program, before the first function that was registered with the program's handle.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tierloom_wire::Region;

use crate::{forked, report, thread};

/// Pauses of the processor, 40 to 140 cycles each: some tenths of a second. A window lasts 4 ms, and on a busy machine the
/// recorder waits its turn. A recorder that was killed holds nobody, and never says so. No sleep: it may be too late in
/// this process for any system call (`SECCOMP_MODE_STRICT`).
const PAUSES: u32 = 10_000_000;

/// Has the end of this process told.
pub(crate) fn watch() {
    // SAFETY: registers a function that lives as long as the library, which is never unloaded.
    unsafe { libc::atexit(leave) };
}

/// Functions that were registered with this handle are about to run: the program's own are the first of all.
pub(crate) fn before_last_functions(handle: u64) {
    if program().is_some_and(|range| range.contains(&handle)) {
        leave();
    }
}

/// Where the program itself is mapped; `None` where its headers do not say where they are.
fn program() -> Option<Range<u64>> {
    // SAFETY: the kernel gives both at the start, and they never change.
    let (start, count) = unsafe { (libc::getauxval(libc::AT_PHDR), libc::getauxval(libc::AT_PHNUM)) };
    if start == 0 {
        return None;
    }
    // SAFETY: there are so many headers of the program, which is mapped as long as we run.
    let headers = unsafe { std::slice::from_raw_parts(start as *const libc::Elf64_Phdr, usize::try_from(count).ok()?) };
    let base = start.wrapping_sub(headers.iter().find(|header| header.p_type == libc::PT_PHDR)?.p_vaddr);
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let end = loaded.map(|header| header.p_vaddr + header.p_memsz).max()?;
    Some(base..base.wrapping_add(end))
}

/// Nothing is recorded or placed from now on, and no thread of this process is let into copies: it is about to give up
/// the processor's clock, or system calls. A thread that leaves a copy says so by a call, for which a filter that came
/// meanwhile would kill the process. Makes no system call.
pub(crate) extern "C" fn close() {
    leave();
    report::close();
}

extern "C" fn leave() {
    let Some(region) = report::region().filter(|region| region.leave(forked::pid())) else { return };
    for _ in 0..PAUSES {
        if !region.is_holding() {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Does what no thread that is held may be surprised by: it unmaps code, and a thread may be in a copy of it.
pub(crate) fn left_alone<T>(work: impl FnOnce() -> T) -> T {
    /// Somebody holds and does not let go: the recorder was killed.
    static IN_VAIN: AtomicBool = AtomicBool::new(false);
    let region = report::region().filter(|_| !IN_VAIN.load(Ordering::Relaxed));
    let (pid, tid) = thread::identity();
    let paused = region.filter(|region| region.pause(pid, tid));
    let in_vain = paused.as_ref().is_some_and(|region| !thread::quietly(|| is_let_go(region)));
    IN_VAIN.fetch_or(in_vain, Ordering::Relaxed);
    let done = work();
    // A recorder that is alive after all leaves this process alone from now on.
    if let Some(region) = paused.filter(|_| !in_vain) {
        region.resume(pid, tid);
    }
    done
}

/// Waits until nobody is held, for a second at most: it takes a fifth of a millisecond, but on a busy machine the recorder
/// waits its turn.
fn is_let_go(region: &Region<'_>) -> bool {
    let until = Instant::now() + Duration::from_secs(1);
    loop {
        if !region.is_holding() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        // SAFETY: it has no arguments and touches no memory.
        unsafe { libc::sched_yield() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_told_from_its_libraries() {
        static OURS: u8 = 0;
        let range = program().unwrap();
        assert!(range.contains(&(&raw const OURS as u64)));
        assert!(!range.contains(&(libc::getauxval as *const () as u64)) && !range.contains(&0));
    }
}
