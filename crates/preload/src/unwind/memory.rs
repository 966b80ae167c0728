//! Words of the stack, read without ever faulting.
//!
//! What may be read as it is, is what cannot go away while we look: from the stack pointer to the end of the
//! thread's own stack (see `bounds`), and on a stack that nobody told us of (a coroutine's, a signal handler's)
//! to the end of the page on which the hook was entered, which holds a live return address. Of everything else the
//! kernel makes a copy, or says that it cannot (`process_vm_readv` of ourselves, which every process may, and which
//! Docker's filter allows since Linux 4.8). Where it is refused, such words are not read.

use tierloom_wire::PAGE_BYTES;

use crate::{forked, thread};

const WORD: u64 = 8;
/// Words that are copied at once: frames lie side by side, and threads have little stack to spare.
const COPIED: usize = 16;
const COPIED_BYTES: u64 = COPIED as u64 * WORD;

/// What a walk may read.
#[derive(Debug)]
pub(super) struct Memory {
    low: u64,
    high: u64,
    /// Where the copy is from; a multiple of its size, so that it lies in one page.
    from: u64,
    copy: [u64; COPIED],
}

impl Memory {
    /// From the stack pointer of a hook to `end` as it is: a stack that ends there is this thread's own and live;
    /// without an end only the page of `entry`, a slot that holds a return address.
    pub(super) fn of_stack(pointer: u64, entry: u64, end: Option<u64>) -> Self {
        Self::between(pointer, end.unwrap_or((entry | (PAGE_BYTES - 1)) + 1))
    }

    fn between(low: u64, high: u64) -> Self {
        Self { low, high, from: u64::MAX, copy: [0; COPIED] }
    }

    /// The word at this address; `None` where it cannot be read.
    #[inline]
    pub(super) fn read(&mut self, address: u64) -> Option<u64> {
        self.at_once(address).or_else(|| self.copied(address))
    }

    /// The word at this address; `None` where it cannot be read without a copy.
    #[inline]
    pub(super) fn at_once(&self, address: u64) -> Option<u64> {
        let is_near = self.low <= address && address < self.high && address.is_multiple_of(WORD);
        // SAFETY: an aligned word that may be read: see the head of this file.
        is_near.then(|| unsafe { *(address as *const u64) })
    }

    #[cold]
    fn copied(&mut self, address: u64) -> Option<u64> {
        let from = address & !(COPIED_BYTES - 1);
        if !address.is_multiple_of(WORD) || (from != self.from && !self.copy_from(from)) {
            return None;
        }
        self.copy.get(usize::try_from((address - from) / WORD).ok()?).copied()
    }

    /// Whether the kernel could copy the words from there on.
    fn copy_from(&mut self, from: u64) -> bool {
        let bytes = size_of_val(&self.copy);
        let here = libc::iovec { iov_base: self.copy.as_mut_ptr().cast(), iov_len: bytes };
        let there = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: bytes };
        // SAFETY: the kernel writes at most as many bytes as the copy has.
        let read = thread::quietly(|| unsafe {
            libc::process_vm_readv(own_pid(), &raw const here, 1, &raw const there, 1, 0)
        });
        self.from = if usize::try_from(read) == Ok(bytes) { from } else { u64::MAX };
        self.from == from
    }
}

/// This process, also where it was forked and does not know it yet.
fn own_pid() -> libc::pid_t {
    match forked::pid() {
        // SAFETY: getpid has no arguments and cannot fail.
        0 => unsafe { libc::getpid() },
        pid => pid.cast_signed(),
    }
}

#[cfg(test)]
impl Memory {
    /// Nothing may be read as it is.
    pub(super) fn none() -> Self {
        Self::between(0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages with these rights in a row; how many words of each page's end and beginning can be read.
    fn readable(rights: &[i32], memory: impl Fn(u64) -> Memory) -> Vec<bool> {
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
        let nothing = |_| Memory::between(0, 0);
        assert_eq!(readable(&rights, nothing), [true, true, false, false, true, true, false, false]);
    }

    #[test]
    fn a_foreign_stack_is_read_to_the_end_of_its_page_as_it_is() {
        let rights = [libc::PROT_READ, libc::PROT_NONE];
        let stack = |start: u64| Memory::of_stack(start + 64, start + 128, None);
        assert_eq!(stack(0x10_0000).high, 0x10_1000);
        assert_eq!(readable(&rights, stack), [true, true, false, false]);
    }

    #[test]
    fn what_is_no_word_is_not_read() {
        let words = [1_u64, 2];
        let start = words.as_ptr() as u64;
        let mut memory = Memory::of_stack(start, start, Some(start + 16));
        assert_eq!((memory.read(start + 8), memory.read(start + 4)), (Some(2), None));
        assert_eq!(memory.read(u64::MAX - 7), None, "nobody's address");
    }
}
