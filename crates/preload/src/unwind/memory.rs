//! Words of the stack, read without ever faulting.
//!
//! What may be read as it is, is what cannot go away while we look: from the stack pointer to the end of the
//! thread's own stack (see `bounds`), and on a stack that nobody told us of (a coroutine's, a signal handler's)
//! to the end of the page on which the hook was entered, which holds a live return address. Everything else is
//! asked about first, page by page: `rt_sigprocmask` with a question that makes no sense copies the word and
//! then refuses the question (`EINVAL`), or finds that it cannot copy (`EFAULT`). It changes nothing, and there
//! is hardly a seccomp filter that forbids it. Where it is forbidden, or answers otherwise, such pages are not
//! read.
//!
//! Between the answer and the read another thread might unmap the page. Frames of a live stack stay; only a
//! walk that has run off the end of a stack without an end mark reads elsewhere, one word.

use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE: u64 = 4096;
const WORD: u64 = 8;

/// The kernel answers as expected.
static ANSWERS: AtomicBool = AtomicBool::new(false);

/// Finds out whether the kernel tells which pages may be read.
pub(super) fn try_out() {
    let here = 0_u64;
    ANSWERS.store(asked(&raw const here as u64) && !asked(PAGE - WORD), Ordering::Relaxed);
}

/// What a walk may read.
#[derive(Debug)]
pub(super) struct Memory {
    low: u64,
    high: u64,
    /// The page that was last asked about and may be read.
    page: u64,
}

impl Memory {
    /// From the stack pointer of a hook to `end` as it is: a stack that ends there is this thread's own and live;
    /// without an end only the page of `entry`, a slot that holds a return address.
    pub(super) fn of_stack(pointer: u64, entry: u64, end: Option<u64>) -> Self {
        let high = end.unwrap_or((entry | (PAGE - 1)) + 1);
        Self { low: pointer, high, page: u64::MAX }
    }

    /// The word at this address; `None` where it cannot be read.
    #[inline]
    pub(super) fn read(&mut self, address: u64) -> Option<u64> {
        self.at_once(address).or_else(|| self.asked_first(address))
    }

    /// The word at this address; `None` where it cannot be read without asking.
    #[inline]
    pub(super) fn at_once(&self, address: u64) -> Option<u64> {
        let is_near = self.low <= address && address < self.high && address.is_multiple_of(WORD);
        // SAFETY: an aligned word in a page that may be read: see the head of this file.
        is_near.then(|| unsafe { *(address as *const u64) })
    }

    #[cold]
    fn asked_first(&mut self, address: u64) -> Option<u64> {
        let may_be_read = address.is_multiple_of(WORD) && self.ask(address);
        // SAFETY: as above.
        may_be_read.then(|| unsafe { *(address as *const u64) })
    }

    fn ask(&mut self, address: u64) -> bool {
        let page = address / PAGE;
        if page != self.page && ANSWERS.load(Ordering::Relaxed) && asked(address) {
            self.page = page;
        }
        page == self.page
    }
}

/// Whether the kernel can copy the word at this address.
fn asked(address: u64) -> bool {
    // No such way to change the mask (SIG_BLOCK, SIG_UNBLOCK and SIG_SETMASK are 0, 1 and 2).
    const NO_WAY: u64 = u64::MAX;
    let mut answer = libc::SYS_rt_sigprocmask;
    // SAFETY: the call copies a word if it can, and then refuses; by hand, because libc's would set `errno`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") answer,
            in("rdi") NO_WAY,
            in("rsi") address,
            in("rdx") 0_u64,
            in("r10") WORD,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer == -i64::from(libc::EINVAL)
}

#[cfg(test)]
impl Memory {
    /// Nothing may be read, and nobody is asked.
    pub(super) fn none() -> Self {
        Self { low: 0, high: 0, page: u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages with these rights in a row; how many words of each page's end and beginning can be read.
    fn readable(rights: &[i32], memory: impl Fn(u64) -> Memory) -> Vec<bool> {
        try_out();
        let length = rights.len() * 4096;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new pages, whose rights are changed one by one, and which are given back.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            for (page, rights) in rights.iter().enumerate() {
                libc::mprotect(start.add(page * 4096), 4096, *rights);
            }
            let mut memory = memory(start as u64);
            let read = |at: u64| memory.read(start as u64 + at).is_some();
            let ends = (0..rights.len() as u64).flat_map(|page| [page * 4096, page * 4096 + 4088]);
            let found = ends.map(read).collect();
            libc::munmap(start, length);
            found
        }
    }

    #[test]
    fn only_pages_that_can_be_read_are() {
        let rights = [libc::PROT_READ, libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE, libc::PROT_NONE];
        let nothing = |_| Memory { low: 0, high: 0, page: u64::MAX };
        assert_eq!(readable(&rights, nothing), [true, true, false, false, true, true, false, false]);
    }

    #[test]
    fn a_foreign_stack_is_read_to_the_end_of_its_page_without_asking() {
        let rights = [libc::PROT_READ, libc::PROT_NONE];
        let stack = |start: u64| Memory::of_stack(start + 64, start + 128, None);
        assert_eq!(stack(0x10_0000).high, 0x10_1000);
        assert_eq!(readable(&rights, stack), [true, true, false, false]);
    }

    #[test]
    fn what_is_no_word_is_not_read() {
        try_out();
        let words = [1_u64, 2];
        let start = words.as_ptr() as u64;
        let mut memory = Memory::of_stack(start, start, Some(start + 16));
        assert_eq!((memory.read(start + 8), memory.read(start + 4)), (Some(2), None));
        assert_eq!(memory.read(u64::MAX - 7), None, "nobody's address");
    }
}
