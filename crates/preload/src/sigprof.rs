//! Samples without `perf_event_open`: a timer of its own CPU time for each thread, and `SIGPROF`.
//!
//! The kernel looks at such timers at its scheduler tick, so there are at most as many samples as
//! ticks (100 to 1000 a second), and only threads that use the CPU are interrupted: a thread that
//! waits in a system call is left alone. A program that uses `SIGPROF` itself takes it from us, and
//! then there are no more samples; the recording says how many there were.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use tierloom_wire::{Event, SAMPLE_REGISTERS};

use crate::real::Work;
use crate::{report, thread};

/// The kernel's order of registers in a signal frame, in ours.
const ORDER: [c_int; SAMPLE_REGISTERS] = [
    libc::REG_RAX,
    libc::REG_RBX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_RBP,
    libc::REG_RSP,
    libc::REG_RIP,
    libc::REG_EFL,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// CPU time between samples, ns; 0 = no samples.
static PERIOD_NS: AtomicU64 = AtomicU64::new(0);
/// Key under which each thread keeps its timer, so that it goes with the thread; key + 1, 0 = none.
static TIMER_KEY: AtomicU32 = AtomicU32::new(0);

/// Installs the handler and arms the timer of this thread.
pub(crate) fn start(hz: u64) {
    let Some(period_ns) = 1_000_000_000_u64.checked_div(hz) else { return };
    let mut key = 0;
    // SAFETY: sigaction is plain data for which zero is valid; the handler has the type that
    // SA_SIGINFO asks for. The key's destructor lives as long as the library.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigprof as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut());
        if libc::pthread_key_create(&raw mut key, Some(delete_timer)) == 0 {
            TIMER_KEY.store(key + 1, Ordering::Relaxed);
        }
    }
    PERIOD_NS.store(period_ns, Ordering::Release);
    arm();
}

/// Arms a timer for the calling thread; it is not inherited by forks.
pub(crate) fn arm() {
    let period_ns = PERIOD_NS.load(Ordering::Acquire);
    if period_ns == 0 {
        return;
    }
    let (_, tid) = thread::identity();
    let interval = libc::timespec {
        tv_sec: libc::time_t::try_from(period_ns / 1_000_000_000).unwrap_or(1),
        tv_nsec: libc::c_long::try_from(period_ns % 1_000_000_000).unwrap_or(0),
    };
    let times = libc::itimerspec { it_interval: interval, it_value: interval };
    let mut timer: c_int = 0;
    // SAFETY: sigevent is plain data for which zero is valid; all pointers are to locals of the types
    // that the system calls take (libc's own timer_create would hide the kernel's id).
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_signo = libc::SIGPROF;
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = tid.cast_signed();
        let clock = libc::CLOCK_THREAD_CPUTIME_ID;
        if libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut timer) != 0 {
            return;
        }
        libc::syscall(libc::SYS_timer_settime, timer, 0, &raw const times, std::ptr::null_mut::<libc::itimerspec>());
        if let Some(key) = TIMER_KEY.load(Ordering::Relaxed).checked_sub(1) {
            // The value has to be non-null: 1 + the timer.
            let value = usize::try_from(timer).unwrap_or(0) + 1;
            libc::pthread_setspecific(key, value as *const c_void);
        }
    }
}

/// A thread ends: its timer would stay with the process.
unsafe extern "C" fn delete_timer(value: *mut c_void) {
    // SAFETY: a number; the kernel refuses what is no timer of ours.
    unsafe { libc::syscall(libc::SYS_timer_delete, value as usize - 1) };
}

extern "C" fn on_sigprof(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid context to an SA_SIGINFO handler; errno is an int of this
    // thread. All that is called is async-signal-safe: atomics, the vDSO's clock, gettid.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        let context = &*context.cast::<libc::ucontext_t>();
        let mut registers = [0; SAMPLE_REGISTERS];
        for (register, position) in registers.iter_mut().zip(ORDER) {
            *register = context.uc_mcontext.gregs[usize::try_from(position).unwrap_or(0)].cast_unsigned();
        }
        report::send(report::now(), Event::Sample { registers });
        *errno = saved;
    }
}

/// Work of threads that are being started, on its way into them.
struct Handover {
    taken: AtomicU32,
    work: AtomicPtr<c_void>,
    argument: AtomicPtr<c_void>,
}

const HANDOVERS: usize = 128;
static HANDOVER: [Handover; HANDOVERS] = [const {
    Handover {
        taken: AtomicU32::new(0),
        work: AtomicPtr::new(std::ptr::null_mut()),
        argument: AtomicPtr::new(std::ptr::null_mut()),
    }
}; HANDOVERS];

/// Work that arms a timer first. Without samples, or when more threads than places are being started
/// at this moment, the work itself.
pub(crate) fn wrap(work: Work, argument: *mut c_void) -> (Work, *mut c_void) {
    if PERIOD_NS.load(Ordering::Relaxed) == 0 {
        return (work, argument);
    }
    let free = |place: &&Handover| place.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    let Some(place) = HANDOVER.iter().find(free) else { return (work, argument) };
    place.work.store(work as *mut c_void, Ordering::Relaxed);
    place.argument.store(argument, Ordering::Release);
    (armed, std::ptr::from_ref(place).cast_mut().cast())
}

/// The thread could not be started: its place is free again.
pub(crate) fn unwrap(work: Work, place: *mut c_void) {
    if work as usize == armed as Work as usize {
        // SAFETY: `wrap` passed one of the static places together with `armed`.
        unsafe { &*place.cast::<Handover>() }.taken.store(0, Ordering::Release);
    }
}

/// May be left by unwinding (`pthread_exit`, cancellation): it has nothing to clean up.
extern "C-unwind" fn armed(place: *mut c_void) -> *mut c_void {
    // SAFETY: `wrap` passed one of the static places, taken for this thread alone.
    let place = unsafe { &*place.cast::<Handover>() };
    let argument = place.argument.load(Ordering::Acquire);
    // SAFETY: `wrap` stored a function of this type.
    let work: Work = unsafe { std::mem::transmute(place.work.load(Ordering::Relaxed)) };
    place.taken.store(0, Ordering::Release);
    arm();
    work(argument)
}
