//! The kernel's calls for memory policy, as they are. Each answers 0 or the error number.
//!
//! But for the last two, which are for `alias` alone, none of them changes the content of memory, so none can break the
//! program whose memory it is.

use std::ffi::{c_int, c_long, c_uint};

use tierloom_wire::PAGE_BYTES;

/// Modes and flags of `include/uapi/linux/mempolicy.h` that the `libc` crate does not have.
pub(super) const MPOL_LOCAL: c_int = 4;
pub(super) const MPOL_PREFERRED_MANY: c_int = 5;
pub(super) const MPOL_WEIGHTED_INTERLEAVE: c_int = 6;
pub(super) const MPOL_F_NUMA_BALANCING: c_int = 1 << 13;
const MPOL_MF_MOVE: c_int = 1 << 1;

/// Bits of a node mask, plus one: the kernel reads one bit less than it is told (`get_nodes`).
const MASK_BITS: u64 = 65;

/// `errno` where the call answered that it failed.
fn errno_if(refused: bool) -> u32 {
    // SAFETY: errno is an int of this thread.
    if refused { unsafe { *libc::__errno_location() }.unsigned_abs() } else { 0 }
}

/// `mbind(2)`. To `move_pages` costs a wait for all CPUs even where there is nothing to move.
pub(super) fn mbind(start: u64, bytes: u64, mode: c_int, mask: u64, move_pages: bool) -> u32 {
    let flags = if move_pages { MPOL_MF_MOVE } else { 0 };
    let (pointer, bits) = if mask == 0 { (std::ptr::null(), 0) } else { (&raw const mask, MASK_BITS) };
    // SAFETY: a policy does not change the content of memory; the mask outlives the call.
    errno_if(unsafe { libc::syscall(libc::SYS_mbind, start, bytes, mode, pointer, bits, flags) } != 0)
}

/// The policy of this thread, to be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadPolicy {
    mode: c_int,
    /// Room for all nodes that any kernel is built for: it refuses less than its own number.
    mask: [u64; 16],
}

const MOST_NODES: u64 = 1024;

/// `get_mempolicy(2)` of this thread.
pub(super) fn thread_policy() -> Result<ThreadPolicy, u32> {
    let mut policy = ThreadPolicy { mode: 0, mask: [0; 16] };
    let (mode, mask) = (&raw mut policy.mode, policy.mask.as_mut_ptr());
    // SAFETY: the mode is an int, the mask has as many bits as are said.
    let refused = unsafe { libc::syscall(libc::SYS_get_mempolicy, mode, mask, MOST_NODES, 0_usize, 0_usize) };
    if refused == 0 { Ok(policy) } else { Err(errno_if(true)) }
}

/// `set_mempolicy(2)` of this thread, back to what it was.
pub(super) fn restore_thread_policy(policy: &ThreadPolicy) -> u32 {
    let named = policy.mask.iter().any(|word| *word != 0);
    let (pointer, bits) = if named { (policy.mask.as_ptr(), MOST_NODES + 1) } else { (std::ptr::null(), 0) };
    // SAFETY: the mask has as many bits as the kernel reads.
    errno_if(unsafe { libc::syscall(libc::SYS_set_mempolicy, policy.mode, pointer, bits) } != 0)
}

/// `set_mempolicy(2)` of this thread; threads and children inherit it.
pub(super) fn set_thread_policy(mode: c_int, mask: u64) -> u32 {
    // SAFETY: the mask outlives the call.
    errno_if(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const mask, MASK_BITS) } != 0)
}

/// `madvise(MADV_POPULATE_WRITE)` (Linux 5.14): pages come in now, where the thread's policy says.
pub(super) fn populate(start: u64, bytes: u64) -> u32 {
    loop {
        // SAFETY: pages come in as they would when the program writes to them; nothing is written.
        let refused = unsafe { libc::madvise(start as *mut _, size(bytes), libc::MADV_POPULATE_WRITE) };
        let errno = errno_if(refused != 0);
        if errno != libc::EAGAIN.unsigned_abs() && errno != libc::EINTR.unsigned_abs() {
            return errno;
        }
    }
}

/// `mlock2(MLOCK_ONFAULT)` (Linux 4.4): pages are locked as they come.
pub(super) fn lock_on_fault(start: u64, bytes: u64) -> u32 {
    // SAFETY: a lock does not change the content of memory.
    errno_if(unsafe { libc::syscall(libc::SYS_mlock2, start, bytes, libc::MLOCK_ONFAULT) } != 0)
}

/// `munlock(2)`.
pub(super) fn unlock(start: u64, bytes: u64) -> u32 {
    // SAFETY: as above.
    errno_if(unsafe { libc::munlock(start as *const _, size(bytes)) } != 0)
}

/// `mincore(2)`: which pages of a range are there, one byte a page. Of private memory without a file
/// it says exactly that (`mm/mincore.c`).
pub(super) fn mincore(start: u64, pages: &mut [u8]) -> u32 {
    // SAFETY: the kernel writes one byte for each page of the range.
    errno_if(unsafe { libc::mincore(start as *mut _, pages.len() * size(PAGE_BYTES), pages.as_mut_ptr()) } != 0)
}

/// `move_pages(2)` of this process. Without `nodes` it only asks: `status` is a node, or the negative
/// of an error number (`ENOENT`: there is no page; `EFAULT`: the zero page, or no mapping).
pub(super) fn move_pages(pages: &[u64], nodes: Option<&[c_int]>, status: &mut [c_int]) -> u32 {
    let count = pages.len().min(status.len()).min(nodes.map_or(usize::MAX, <[c_int]>::len));
    let targets = nodes.map_or(std::ptr::null(), <[c_int]>::as_ptr);
    // SAFETY: the arrays have at least `count` entries; moving does not change the content of memory.
    let answer: c_long = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0 as c_uint,
            count,
            pages.as_ptr(),
            targets,
            status.as_mut_ptr(),
            MPOL_MF_MOVE,
        )
    };
    // A positive answer counts pages that did not move; each one's status says why.
    errno_if(answer < 0)
}

/// Bytes of memory that are free on the whole machine; `sysinfo(2)`.
pub(super) fn free_bytes() -> u64 {
    // SAFETY: sysinfo is plain numbers, for which zero is valid, and the call fills it.
    let info = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&raw mut info);
        info
    };
    info.freeram.saturating_mul(u64::from(info.mem_unit))
}

/// `mremap(2)` from no bytes: what is shared at `from` is mapped at `to` as well, over whatever was there.
pub(super) fn map_again(from: u64, bytes: u64, to: u64) -> u32 {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the caller owns the range at `to`, and nobody needs what it holds.
    errno_if(unsafe { libc::syscall(libc::SYS_mremap, from, 0_usize, bytes, flags, to) } < 0)
}

/// `mmap(2)` of new memory, all zeroes, over whatever was there.
pub(super) fn map_anew(start: u64, bytes: u64) -> u32 {
    let (access, none) = (libc::PROT_READ | libc::PROT_WRITE, -1_i64);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the caller owns the range, and nobody needs what it holds.
    errno_if(unsafe { libc::syscall(libc::SYS_mmap, start, bytes, access, flags, none, 0_usize) } < 0)
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
