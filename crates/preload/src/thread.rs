//! What each thread keeps: its id, and whether it is inside a hook already; and which process this is.
//!
//! The first access of a thread to ordinary thread-local storage of a shared library may allocate,
//! which would bring us back into `malloc`. So this block uses the initial-exec model: the loader
//! reserves it in every thread's static block because the library is there at start-up, and an
//! access is one load and one addition. Rust has no stable way to ask for that model, hence assembly.

use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

const PAGE: usize = 4096;

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

/// The process; asked for at the start, and again in a forked child.
static PID: AtomicU32 = AtomicU32::new(0);
/// A word that the kernel zeroes in every forked child (`MADV_WIPEONFORK`, Linux 4.14): `clone(2)` and
/// `_Fork` run no handlers of `pthread_atfork`. Null where the kernel does not.
static NOT_FORKED: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

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
pub(crate) fn identity() -> (u32, u32) {
    let block = block();
    let pid = PID.load(Ordering::Relaxed);
    if block.tid.load(Ordering::Relaxed) == 0 || block.pid.load(Ordering::Relaxed) != pid {
        // SAFETY: gettid has no arguments and cannot fail.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        block.tid.store(u32::try_from(tid).unwrap_or(0), Ordering::Relaxed);
        block.pid.store(pid, Ordering::Relaxed);
    }
    (pid, block.tid.load(Ordering::Relaxed))
}

/// Asks the kernel which process this is: at the start, and in a forked child. Returns which it was.
pub(crate) fn learn_process() -> u32 {
    // SAFETY: getpid has no arguments and cannot fail.
    let before = PID.swap(unsafe { libc::getpid() }.unsigned_abs(), Ordering::Relaxed);
    if let Some(word) = not_forked() {
        word.store(1, Ordering::Relaxed);
    }
    before
}

/// Asks the kernel to leave a mark in children that are forked without telling us.
pub(crate) fn watch_forks() {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice, which is advised on as a whole.
    unsafe {
        let page = crate::real::mmap(std::ptr::null_mut(), PAGE, access, kind, -1, 0);
        if page != libc::MAP_FAILED && libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) == 0 {
            NOT_FORKED.store(page.cast(), Ordering::Release);
        }
    }
    learn_process();
}

/// Whether this is a forked child that has not yet asked which process it is.
pub(crate) fn is_forked() -> bool {
    not_forked().is_some_and(|word| word.load(Ordering::Relaxed) == 0)
}

fn not_forked() -> Option<&'static AtomicU32> {
    // SAFETY: null, or the start of a page that is never unmapped and holds zeroes at first.
    unsafe { NOT_FORKED.load(Ordering::Acquire).as_ref() }
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
        watch_forks();
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

    #[test]
    fn a_child_without_handlers_knows_that_it_was_forked() {
        watch_forks();
        assert!(!is_forked());
        // SAFETY: the child makes a system call and ends; glibc knows nothing of it.
        let child = unsafe { libc::syscall(libc::SYS_fork) };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(is_forked())) };
        }
        let mut status = 0;
        // SAFETY: `status` is an int.
        unsafe { libc::waitpid(i32::try_from(child).unwrap(), &raw mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 1);
        assert!(!is_forked());
    }
}
