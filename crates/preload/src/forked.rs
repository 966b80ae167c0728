//! How a forked child knows that it is one, whoever forked it: `clone(2)` and `_Fork` run no handlers
//! of `pthread_atfork`.
//!
//! The kernel zeroes one page of ours in every child (`MADV_WIPEONFORK`, Linux 4.14): it holds the
//! process id, and what every `free` reads anyway, so that asking costs no page of its own.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A page whose words are 0 in a child that does not yet know of itself.
#[repr(C, align(4096))]
pub(crate) struct Wiped {
    /// Whether the blocks are glibc's, as `real` finds out; where it was wiped the filter is asked, which then
    /// lets pass what it does not know. First, because the entries read it by the address of the page.
    size_before_block: AtomicBool,
    pid: AtomicU32,
}

pub(crate) static WIPED: Wiped = Wiped { size_before_block: AtomicBool::new(false), pid: AtomicU32::new(0) };
/// The same where nobody wipes it: what a child learns anew, and whose it is.
static SIZE_BEFORE_BLOCK: AtomicBool = AtomicBool::new(false);
static PARENT: AtomicU32 = AtomicU32::new(0);
/// The process that the library came up in.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Says whether the word before a block holds its size.
pub(crate) fn tell_size_before_block(holds: bool) {
    SIZE_BEFORE_BLOCK.store(holds, Ordering::Relaxed);
    WIPED.size_before_block.store(holds, Ordering::Release);
}

/// Whether it does; `false` in a child that has not learnt it.
#[inline]
pub(crate) fn size_before_block() -> bool {
    WIPED.size_before_block.load(Ordering::Relaxed)
}

/// Asks the kernel to wipe the page in every child. A kernel that does not leaves us with the handlers.
pub(crate) fn watch() {
    let page = (&raw const WIPED).cast_mut().cast();
    // SAFETY: the page is ours alone: it is aligned to pages, and as long as one.
    let _wiped = unsafe { libc::madvise(page, size_of::<Wiped>(), libc::MADV_WIPEONFORK) };
    learn();
}

/// Asks the kernel which process this is: at the start, and in a forked child. Returns which it was.
pub(crate) fn learn() -> u32 {
    // SAFETY: getpid has no arguments and cannot fail.
    let pid = unsafe { libc::getpid() }.unsigned_abs();
    WIPED.size_before_block.store(SIZE_BEFORE_BLOCK.load(Ordering::Relaxed), Ordering::Relaxed);
    WIPED.pid.store(pid, Ordering::Relaxed);
    let _others = FIRST.compare_exchange(0, pid, Ordering::Relaxed, Ordering::Relaxed);
    PARENT.swap(pid, Ordering::Relaxed)
}

/// Whether this process was forked from the one that the library came up in: it has one thread, and locks that
/// others had then are nobody's.
pub(crate) fn is_child() -> bool {
    pid() != FIRST.load(Ordering::Relaxed)
}

/// The process; 0 in a child that was forked and has not learnt it.
#[inline]
pub(crate) fn pid() -> u32 {
    WIPED.pid.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_wiped_and_no_more() {
        let bytes = usize::try_from(tierloom_wire::PAGE_BYTES).unwrap();
        assert_eq!((size_of::<Wiped>(), align_of::<Wiped>()), (bytes, bytes));
    }

    #[test]
    fn a_child_without_handlers_knows_that_it_was_forked() {
        watch();
        assert_eq!(pid(), std::process::id());
        assert!(!is_child());
        // SAFETY: the child makes a system call and ends; glibc knows nothing of it.
        let child = unsafe { libc::syscall(libc::SYS_fork) };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(pid() == 0 && is_child())) };
        }
        let mut status = 0;
        // SAFETY: `status` is an int.
        unsafe { libc::waitpid(i32::try_from(child).unwrap(), &raw mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 1);
        assert_eq!(pid(), std::process::id());
    }
}
