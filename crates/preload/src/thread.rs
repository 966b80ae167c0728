//! What each thread keeps: its id, and whether it is inside a hook already.
//!
//! The first access of a thread to ordinary thread-local storage of a shared library may allocate,
//! which would bring us back into `malloc`. So this block uses the initial-exec model: the loader
//! reserves it in every thread's static block because the library is there at start-up, and an
//! access is one load and one addition. Rust has no stable way to ask for that model, hence assembly.

use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::forked;

global_asm!(
    ".section .tbss.tierloom_thread,\"awT\",@nobits",
    ".p2align 3",
    ".hidden tierloom_thread",
    ".globl tierloom_thread",
    ".type tierloom_thread, @object",
    ".size tierloom_thread, 16",
    "tierloom_thread:",
    ".zero 16",
    ".text",
);

/// The block of a thread, zero at first. Only its own thread (and its signal handlers) use it.
#[repr(C)]
struct Block {
    /// Kernel thread id; 0 = not asked for yet.
    tid: AtomicU32,
    /// Process that `tid` was asked for in: a fork leaves the block as it was.
    pid: AtomicU32,
    /// Stack pointer at the entry of the hook that is at work; 0 = none.
    inside: AtomicU64,
}

#[inline]
fn block() -> &'static Block {
    let block: *const Block;
    // SAFETY: on x86-64 Linux the word at fs:0 is the thread pointer, and the GOT entry holds the
    // block's distance from it.
    unsafe {
        asm!(
            "mov {block}, qword ptr fs:[0]",
            "add {block}, qword ptr [rip + tierloom_thread@GOTTPOFF]",
            block = out(reg) block,
            options(pure, readonly, nostack),
        );
        // SAFETY: the block is zeroed, 8-aligned, has the size of `Block`, and lives as long as its
        // thread; no reference leaves the thread.
        &*block
    }
}

/// Process id and thread id of the caller. Asks the kernel once per thread.
#[inline]
pub(crate) fn identity() -> (u32, u32) {
    let block = block();
    let pid = forked::pid();
    if block.tid.load(Ordering::Relaxed) == 0 || block.pid.load(Ordering::Relaxed) != pid {
        // SAFETY: gettid has no arguments and cannot fail.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        block.tid.store(u32::try_from(tid).unwrap_or(0), Ordering::Relaxed);
        block.pid.store(pid, Ordering::Relaxed);
    }
    (pid, block.tid.load(Ordering::Relaxed))
}

/// Runs `work` of a hook that was entered with this stack pointer, unless this thread is inside
/// another one already (a hook that was entered from the unwinder, or from a signal that interrupted
/// a hook). A hook further out on the stack shows that the inner one was left for good, by `longjmp`.
pub(crate) fn once<T>(entry: u64, work: impl FnOnce() -> T) -> Option<T> {
    let inside = &block().inside;
    if entry < inside.load(Ordering::Relaxed) {
        return None;
    }
    inside.store(entry, Ordering::Relaxed);
    let done = work();
    inside.store(0, Ordering::Relaxed);
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_block() {
        forked::watch();
        let mine = identity();
        assert_eq!(mine.0, std::process::id());
        let other = std::thread::spawn(identity).join().unwrap();
        assert_eq!(other.0, mine.0);
        assert_ne!(other.1, mine.1);
        assert_eq!(identity(), mine);
    }

    #[test]
    fn work_does_not_nest() {
        assert_eq!(once(800, || once(700, || 1)), Some(None));
        assert_eq!(once(800, || 2), Some(2));
    }

    #[test]
    fn work_that_was_left_for_good_is_forgotten() {
        block().inside.store(700, Ordering::Relaxed);
        assert_eq!(once(800, || 1), Some(1));
        assert_eq!(once(600, || 2), Some(2));
    }
}
