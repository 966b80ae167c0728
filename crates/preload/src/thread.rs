//! What each thread keeps: its id, its place in a lane, where its stack is, and whether it is inside a hook already.
//!
//! The first access of a thread to ordinary thread-local storage of a shared library may allocate,
//! which would bring us back into `malloc`. So this block uses the initial-exec model: the loader
//! reserves it in every thread's static block because the library is there at start-up, and an
//! access is one load and one addition. Rust has no stable way to ask for that model, hence assembly.

use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tierloom_wire::Cursor;

use crate::forked;

global_asm!(
    ".section .tbss.tierloom_thread,\"awT\",@nobits",
    ".p2align 3",
    ".hidden tierloom_thread",
    ".globl tierloom_thread",
    ".type tierloom_thread, @object",
    ".size tierloom_thread, 40",
    "tierloom_thread:",
    ".zero 40",
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
    /// Where it writes its next record; a lane of the process that `pid` says.
    cursor: AtomicU64,
    /// Its own stack, from where it is known to be mapped to its end; 0 = nobody told.
    stack_low: AtomicU64,
    stack_end: AtomicU64,
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

/// The address of the thread's control block, which glibc puts at the end of the stack of threads that it makes.
pub(crate) fn control_block() -> u64 {
    let address: u64;
    // SAFETY: as above.
    unsafe { asm!("mov {address}, qword ptr fs:[0]", address = out(reg) address, options(pure, readonly, nostack)) };
    address
}

/// Where this thread's own stack is: see `bounds`.
#[inline]
pub(crate) fn stack() -> (u64, u64) {
    let block = block();
    (block.stack_low.load(Ordering::Relaxed), block.stack_end.load(Ordering::Relaxed))
}

/// Says where this thread's own stack is.
pub(crate) fn set_stack(low: u64, end: u64) {
    let block = block();
    block.stack_low.store(low, Ordering::Relaxed);
    block.stack_end.store(end, Ordering::Relaxed);
}

/// Process id and thread id of the caller. Asks the kernel once per thread.
#[inline]
pub(crate) fn identity() -> (u32, u32) {
    let block = block();
    let pid = forked::pid();
    if block.tid.load(Ordering::Relaxed) == 0 || block.pid.load(Ordering::Relaxed) != pid {
        // SAFETY: gettid has no arguments and cannot fail.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        // The lane of before a fork is the parent's.
        block.cursor.store(Cursor::NONE.0, Ordering::Relaxed);
        block.tid.store(u32::try_from(tid).unwrap_or(0), Ordering::Relaxed);
        block.pid.store(pid, Ordering::Relaxed);
    }
    (pid, block.tid.load(Ordering::Relaxed))
}

/// Takes the place where this thread writes next, so that a signal handler gets the one behind it;
/// [`Cursor::NONE`] where it has none, or has just been forked.
#[inline]
pub(crate) fn take_place() -> Cursor {
    let block = block();
    loop {
        let cursor = Cursor(block.cursor.load(Ordering::Relaxed));
        if cursor.is_none() || block.pid.load(Ordering::Relaxed) != forked::pid() {
            return Cursor::NONE;
        }
        if exchange(&block.cursor, cursor, cursor.next()) {
            return cursor;
        }
    }
}

/// The place where this thread writes next, or where its last lane ended.
pub(crate) fn place() -> Cursor {
    Cursor(block().cursor.load(Ordering::Relaxed))
}

/// Has the thread write in a lane from now on, unless a signal handler has found it one meanwhile.
pub(crate) fn enter_lane(first: Cursor) -> bool {
    let block = block();
    let now = Cursor(block.cursor.load(Ordering::Relaxed));
    now.is_none() && exchange(&block.cursor, now, first)
}

/// Compare-and-swap against the handlers of this thread's signals, which cannot come within an
/// instruction. Without the lock that other processors would take: it waits for all that misses the cache.
#[inline]
fn exchange(cell: &AtomicU64, from: Cursor, to: Cursor) -> bool {
    let same: u8;
    // SAFETY: the cell is of this thread's block, which only this thread accesses.
    unsafe {
        asm!(
            "cmpxchg qword ptr [{cell}], {to}",
            "sete {same}",
            cell = in(reg) cell.as_ptr(),
            to = in(reg) to.0,
            same = lateout(reg_byte) same,
            inout("rax") from.0 => _,
            options(nostack),
        );
    }
    same != 0
}

/// Runs `work`, which may make system calls, and leaves `errno` as it was.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: errno is an int of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    let done = work();
    // SAFETY: as above.
    unsafe { *errno = saved };
    done
}

/// Runs `work` of a hook that was entered with this stack pointer, unless this thread is inside
/// another one already (a hook that was entered from the unwinder, or from a signal that interrupted
/// a hook). A hook further out on the stack shows that the inner one was left for good, by `longjmp`.
#[inline(always)]
#[allow(clippy::inline_always)]
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
    fn a_thread_takes_the_places_of_its_lane_one_by_one() {
        forked::watch();
        identity();
        assert!(take_place().is_none());
        let first = Cursor((7 << 32) + 126);
        assert!(enter_lane(first));
        assert!(!enter_lane(Cursor(1)), "it has places left");
        assert_eq!([take_place(), take_place(), take_place()], [first, first.next(), Cursor::NONE]);
        assert!(enter_lane(Cursor(1)));
        // As in a child that was forked: the lane is its parent's.
        block().pid.store(1, Ordering::Relaxed);
        assert!(take_place().is_none());
        identity();
        assert!(take_place().is_none());
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
