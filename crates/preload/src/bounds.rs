//! Where the stack of each thread is, so that its frames can be read without asking.
//!
//! While a thread runs on its own stack, everything from its stack pointer to the stack's end is mapped: the
//! kernel lets the main stack grow in one piece, and nobody gives a thread's stack back before the thread has
//! ended. The stack pointer may also be elsewhere (coroutines, signal handlers, stacks by hand), so both ends
//! must be known, and where we cannot be sure of them the answer is that they are not.
//!
//! The main stack ends where libc says; the kernel puts no mapping within its limit of that (`mmap_base` of
//! arch/x86/mm/mmap.c). Other threads have their control block at the end of their stack, and of their stack the
//! bytes that its creator asked for: those go with the thread when it begins. Threads that were not made by
//! `pthread_create`, and those that begin while too many others do, have none.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::real::Work;
use crate::thread;

/// Of the main stack no more is taken for sure: no program needs it, and limits may be infinite.
const MOST_OF_MAIN: u64 = 64 << 20;
/// More than glibc keeps at the end of a stack behind the control block's address (`struct pthread`: 2.3 KiB).
const CONTROL_BLOCK: u64 = 16 << 10;

unsafe extern "C" {
    #[link_name = "__libc_stack_end"]
    static MAIN_END: *const c_void;
}

/// The end of this thread's own stack, if its stack pointer is on it.
#[inline]
pub(crate) fn end_of_stack(pointer: u64) -> Option<u64> {
    let (low, end) = thread::stack();
    (low <= pointer && pointer < end).then_some(end)
}

/// Whether this is a signal handler's own stack and a small one: it may have no room for what placing takes.
pub(crate) fn is_cramped(pointer: u64) -> bool {
    /// `SIGSTKSZ` was 8 KiB for decades, three of which a signal frame may take. Placing takes 6 KiB.
    const ROOMY: usize = 32 << 10;
    if end_of_stack(pointer).is_some() {
        return false;
    }
    // SAFETY: stack_t is plain data for which zero is valid; the kernel fills it.
    let used = unsafe {
        let mut used: libc::stack_t = std::mem::zeroed();
        libc::syscall(libc::SYS_sigaltstack, ptr::null::<libc::stack_t>(), &raw mut used);
        used
    };
    used.ss_flags & libc::SS_ONSTACK != 0 && used.ss_size < ROOMY
}

/// Learns where the main stack is; the main thread calls this.
pub(crate) fn learn_main() {
    // SAFETY: the loader has set it, and `limit` is plain numbers.
    let (end, bytes) = unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit);
        (MAIN_END as u64, limit.rlim_cur.min(MOST_OF_MAIN))
    };
    thread::set_stack(end.saturating_sub(bytes), end);
}

/// Work of threads that are being started, on its way into them.
struct Handover {
    taken: AtomicU32,
    work: AtomicPtr<c_void>,
    argument: AtomicPtr<c_void>,
    stack_bytes: AtomicUsize,
}

const HANDOVERS: usize = 128;
static HANDOVER: [Handover; HANDOVERS] = [const {
    Handover {
        taken: AtomicU32::new(0),
        work: AtomicPtr::new(ptr::null_mut()),
        argument: AtomicPtr::new(ptr::null_mut()),
        stack_bytes: AtomicUsize::new(0),
    }
}; HANDOVERS];

/// Work that first learns where its stack is, for a thread with these attributes; when more threads than places
/// are being started at this moment, the work itself.
pub(crate) fn hand_over(how: *const libc::pthread_attr_t, work: Work, argument: *mut c_void) -> (Work, *mut c_void) {
    let free = |place: &&Handover| place.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    let Some(place) = HANDOVER.iter().find(free) else { return (work, argument) };
    place.work.store(work as *mut c_void, Ordering::Relaxed);
    place.argument.store(argument, Ordering::Relaxed);
    place.stack_bytes.store(stack_bytes(how), Ordering::Release);
    (beginning, ptr::from_ref(place).cast_mut().cast())
}

/// The thread could not be started: its place is free again.
pub(crate) fn take_back(work: Work, place: *mut c_void) {
    if work as usize == beginning as Work as usize {
        // SAFETY: `hand_over` passed one of the static places together with `beginning`.
        unsafe { &*place.cast::<Handover>() }.taken.store(0, Ordering::Release);
    }
}

/// Bytes of a stack with these attributes, without its guard.
fn stack_bytes(how: *const libc::pthread_attr_t) -> usize {
    let (mut bytes, mut guard) = (0, 0);
    // SAFETY: attributes are the caller's, or fresh ones that are given back; both answers are numbers. None of
    // these calls takes memory.
    unsafe {
        if how.is_null() {
            let mut usual: libc::pthread_attr_t = std::mem::zeroed();
            libc::pthread_attr_init(&raw mut usual);
            libc::pthread_attr_getstacksize(&raw const usual, &raw mut bytes);
            libc::pthread_attr_getguardsize(&raw const usual, &raw mut guard);
            libc::pthread_attr_destroy(&raw mut usual);
        } else {
            libc::pthread_attr_getstacksize(how, &raw mut bytes);
            libc::pthread_attr_getguardsize(how, &raw mut guard);
        }
    }
    // Before glibc 2.27 the guard was part of it.
    bytes.saturating_sub(guard)
}

/// What a thread calls that begins: where its stack is, then its work, of which it leaves no frame of ours below.
#[unsafe(naked)]
extern "C-unwind" fn beginning(place: *mut c_void) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {begin}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rdx",
        "jmp rax",
        ".cfi_endproc",
        begin = sym begin,
    )
}

/// A work and its argument, in two registers.
#[repr(C)]
struct Begun(*mut c_void, *mut c_void);

extern "C" fn begin(place: *mut c_void) -> Begun {
    // SAFETY: `hand_over` passed one of the static places, taken for this thread alone.
    let place = unsafe { &*place.cast::<Handover>() };
    let bytes = place.stack_bytes.load(Ordering::Acquire) as u64;
    let begun = Begun(place.work.load(Ordering::Relaxed), place.argument.load(Ordering::Relaxed));
    place.taken.store(0, Ordering::Release);
    let end = thread::control_block();
    thread::set_stack(end.saturating_sub(bytes).saturating_add(CONTROL_BLOCK), end);
    begun
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the range is mapped, by the kernel's own list.
    fn is_mapped(low: u64, end: u64) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        maps.lines().any(|line| {
            let (start, rest) = line.split_once('-').unwrap();
            let (stop, rights) = rest.split_once(' ').unwrap();
            number(start) <= low && end <= number(stop) && rights.starts_with("rw")
        })
    }

    extern "C-unwind" fn look(answer: *mut c_void) -> *mut c_void {
        let here = 0_u8;
        let pointer = &raw const here as u64;
        let end = end_of_stack(pointer);
        let (low, _) = thread::stack();
        let right = end.is_some_and(|end| is_mapped(low, end));
        // SAFETY: the test passed a flag that outlives this thread.
        unsafe { *answer.cast::<bool>() = right };
        ptr::null_mut()
    }

    fn thread_with(bytes: Option<usize>) -> bool {
        let mut answer = false;
        // SAFETY: attributes are initialised first, the thread is waited for.
        unsafe {
            let mut how: libc::pthread_attr_t = std::mem::zeroed();
            libc::pthread_attr_init(&raw mut how);
            bytes.map(|bytes| libc::pthread_attr_setstacksize(&raw mut how, bytes));
            let how = if bytes.is_some() { &raw const how } else { ptr::null() };
            let (work, argument) = hand_over(how, look, (&raw mut answer).cast());
            let mut thread = 0;
            let work: extern "C" fn(*mut c_void) -> *mut c_void = std::mem::transmute(work);
            assert_eq!(libc::pthread_create(&raw mut thread, how, work, argument), 0);
            libc::pthread_join(thread, ptr::null_mut());
        }
        answer
    }

    #[test]
    fn a_thread_knows_its_stack_and_all_of_that_is_mapped() {
        assert!(thread_with(None));
        assert!(thread_with(Some(64 << 10)));
        assert!(!thread_with(Some(16 << 10)), "too small to be sure");
    }

    #[test]
    fn a_thread_that_nobody_told_of_has_no_known_stack() {
        let here = 0_u8;
        assert_eq!(end_of_stack(&raw const here as u64), None);
    }

    #[test]
    fn places_that_were_not_used_are_free_again() {
        for _ in 0..2 * HANDOVERS {
            let (work, argument) = hand_over(ptr::null(), look, ptr::null_mut());
            assert_eq!(work as usize, beginning as Work as usize);
            take_back(work, argument);
        }
    }
}
