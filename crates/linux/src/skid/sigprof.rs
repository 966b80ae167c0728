//! The same measurement where the kernel gives no samples: a timer of CPU time and `SIGPROF`.
//!
//! It happens in a forked child, so that neither the handler nor the interrupted system calls are
//! those of the program that measures. The child calls only async-signal-safe functions.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{BATCHES, Memory, PADDING, Skid, landmarks};
use crate::error::LinuxError;

/// Counts by distance, then elsewhere, then all.
type Counts = [AtomicU32; PADDING + 3];
const ELSEWHERE: usize = PADDING + 1;
const ALL: usize = PADDING + 2;

/// Where the child's handler counts: a page that it shares with its parent.
static COUNTS: AtomicU64 = AtomicU64::new(0);

/// Runs the loop over `bytes` (a power of two) of memory until `samples` were taken, or for about two
/// seconds. The kernel gives at most one sample per scheduler tick (100 to 1000 a second).
///
/// # Errors
/// No memory, no process or no timer is left.
pub fn measure_by_sigprof(bytes: usize, period_ns: u64, samples: u32) -> Result<Skid, LinuxError> {
    let memory = Memory::new(bytes)?;
    let page = SharedPage::new()?;
    // SAFETY: the child calls only async-signal-safe functions and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(LinuxError::last("fork", "measurement of skid"));
    }
    if child == 0 {
        count_in_child(&memory, page.counts(), period_ns, samples);
    }
    let mut status = 0;
    // SAFETY: `child` is our child and `status` an int.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0
        && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
    {}
    let counts = page.counts();
    let mut skid = Skid { elsewhere: counts[ELSEWHERE].load(Ordering::Relaxed), ..Skid::default() };
    for (behind, count) in skid.behind.iter_mut().zip(counts) {
        *behind = count.load(Ordering::Relaxed);
    }
    Ok(skid)
}

fn count_in_child(memory: &Memory, counts: &Counts, period_ns: u64, samples: u32) -> ! {
    COUNTS.store(std::ptr::from_ref(counts) as u64, Ordering::Relaxed);
    if arm(period_ns) {
        let mut seed = 12345;
        for _ in 0..2 * BATCHES {
            seed = memory.walk(seed);
            if counts[ALL].load(Ordering::Relaxed) >= samples {
                break;
            }
        }
    }
    // SAFETY: leaves without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

fn arm(period_ns: u64) -> bool {
    let second = 1_000_000_000;
    let interval = libc::timespec {
        tv_sec: libc::time_t::try_from(period_ns / second).unwrap_or(1),
        tv_nsec: libc::c_long::try_from(period_ns % second).unwrap_or(0),
    };
    let times = libc::itimerspec { it_interval: interval, it_value: interval };
    let mut timer: c_int = 0;
    // SAFETY: sigaction and sigevent are plain data for which zero is valid; all pointers are to
    // locals of the types that the calls take; the handler has the type that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigprof as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut());
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut mask, libc::SIGPROF);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const mask, std::ptr::null_mut());
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_signo = libc::SIGPROF;
        event.sigev_notify = libc::SIGEV_SIGNAL;
        let clock = libc::CLOCK_THREAD_CPUTIME_ID;
        libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut timer) == 0
            && libc::syscall(libc::SYS_timer_settime, timer, 0, &raw const times, std::ptr::null_mut::<c_void>()) == 0
    }
}

extern "C" fn on_sigprof(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid context to an SA_SIGINFO handler; `count_in_child` stored the
    // address of counters that outlive the child.
    let (ip, counts) = unsafe {
        let context = &*context.cast::<libc::ucontext_t>();
        (context.uc_mcontext.gregs[libc::REG_RIP as usize], &*(COUNTS.load(Ordering::Relaxed) as *const Counts))
    };
    let (load, after) = landmarks();
    let mut one = Skid::default();
    one.count(ip.cast_unsigned(), load, after);
    let position = one.behind.iter().position(|count| *count > 0).unwrap_or(ELSEWHERE);
    counts[position].fetch_add(1, Ordering::Relaxed);
    counts[ALL].fetch_add(1, Ordering::Relaxed);
}

/// A page that parent and child share; unmapped when dropped.
struct SharedPage(*mut c_void);

impl SharedPage {
    fn new() -> Result<Self, LinuxError> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Counts>(), access, kind, -1, 0) };
        if start == libc::MAP_FAILED { Err(LinuxError::last("mmap", "one page")) } else { Ok(Self(start)) }
    }

    fn counts(&self) -> &Counts {
        // SAFETY: the page is zeroed, aligned, larger than the counters and lives as long as `self`;
        // both processes access it as atomics only.
        unsafe { &*self.0.cast::<Counts>() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size and nobody borrows it.
        unsafe { libc::munmap(self.0, size_of::<Counts>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_counts_for_its_parent() {
        // In the cache the loop does not wait; that there are samples at all is what counts here.
        let skid = measure_by_sigprof(1 << 20, 1_000_000, 5).unwrap();
        assert!(skid.behind.iter().sum::<u32>() + skid.elsewhere > 0, "{skid:?}");
    }
}
