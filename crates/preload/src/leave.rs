//! How a process ends while somebody halts its threads: it says so and waits a moment until nobody is held.
//!
//! What runs at the end may be a leak checker that traces the process itself (see the wire's `leave`). Ours is
//! registered by a constructor, so it runs before what the program's own runtime registered when it came up.

use crate::{forked, report};

/// Pauses of the processor, 40 to 140 cycles each: some milliseconds, a hundred times what a halt takes. A recorder
/// that was killed holds nobody, and never says so. No sleep: it may be too late in this process for any system call
/// (`SECCOMP_MODE_STRICT`).
const PAUSES: u32 = 100_000;

/// Has the end of this process told.
pub(crate) fn watch() {
    // SAFETY: registers a function that lives as long as the library, which is never unloaded.
    unsafe { libc::atexit(leave) };
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
