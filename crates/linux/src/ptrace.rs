//! Threads of other programs, held for a moment: `ptrace(2)`, by `PTRACE_SEIZE`, which sends no signal.
//!
//! A held thread is let go before anybody could notice more than the time; what was on its way to it (a
//! signal, a stop by job control) goes on as if nobody had been there. Whoever traces must be one thread:
//! the kernel answers no other.

pub mod brief;
pub mod injected;
pub mod interrupted;
pub mod kept;
pub mod vectors;

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::Duration;

use crate::error::LinuxError;

/// Registers of user space in the kernel's order (`user_regs_struct` of `sys/user.h`). `orig_rax` is the number of
/// the system call that the thread is in, -1 in none.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub eflags: u64,
    pub rsp: u64,
    pub ss: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub ds: u64,
    pub es: u64,
    pub fs: u64,
    pub gs: u64,
}

const _: () = assert!(size_of::<Registers>() == size_of::<libc::user_regs_struct>());

/// The code segment of 64-bit user space (`__USER_CS` of the kernel's `segment.h`).
pub const USER_CODE_64: u64 = 0x33;

/// What may be done with memory, as `mmap(2)` wants it.
pub const READ: i32 = libc::PROT_READ;
/// Likewise.
pub const WRITE: i32 = libc::PROT_WRITE;
/// Likewise.
pub const EXECUTE: i32 = libc::PROT_EXEC;

/// A thread of ours that may trace others. It stays in its thread, as the kernel wants it.
#[derive(Debug)]
pub struct Tracer(PhantomData<*const ()>);

/// A thread that we trace came to a halt, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Halt {
    /// Which thread.
    pub tid: u32,
    /// Why.
    pub why: Why,
}

/// Why a thread halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// We interrupted it.
    Interrupted,
    /// Job control stopped it, and it stays so until it is continued.
    Stopped,
    /// This signal is about to be delivered to it.
    Signal(i32),
    /// It enters or leaves a system call, as [`Tracer::run_to_call`] asked.
    Call,
    /// It ended.
    Ended,
}

/// What an operation of `ptrace` takes beside the thread.
#[derive(Clone, Copy)]
struct Operation {
    name: &'static str,
    request: libc::c_uint,
}

const SEIZE: Operation = Operation { name: "ptrace(PTRACE_SEIZE)", request: libc::PTRACE_SEIZE };
const INTERRUPT: Operation = Operation { name: "ptrace(PTRACE_INTERRUPT)", request: libc::PTRACE_INTERRUPT };
const GET: Operation = Operation { name: "ptrace(PTRACE_GETREGS)", request: libc::PTRACE_GETREGS };
const SET: Operation = Operation { name: "ptrace(PTRACE_SETREGS)", request: libc::PTRACE_SETREGS };
const CALL: Operation = Operation { name: "ptrace(PTRACE_SYSCALL)", request: libc::PTRACE_SYSCALL };
const CONT: Operation = Operation { name: "ptrace(PTRACE_CONT)", request: libc::PTRACE_CONT };
const STEP: Operation = Operation { name: "ptrace(PTRACE_SINGLESTEP)", request: libc::PTRACE_SINGLESTEP };
const DETACH: Operation = Operation { name: "ptrace(PTRACE_DETACH)", request: libc::PTRACE_DETACH };

impl Operation {
    /// # Safety
    /// `data` is what the operation takes: a number, or a pointer to memory of the type that it reads or fills.
    unsafe fn on(self, tid: u32, data: usize) -> Result<(), LinuxError> {
        // SAFETY: the caller's promise; the address argument is unused by all of these.
        let answer = unsafe { libc::ptrace(self.request, tid.cast_signed(), std::ptr::null_mut::<u8>(), data) };
        if answer == 0 { Ok(()) } else { Err(LinuxError::last(self.name, format!("thread {tid}"))) }
    }
}

impl Tracer {
    /// The calling thread as a tracer.
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// Attaches to a thread that runs and asks it to halt; it does so within microseconds, or when the system
    /// call that it is in lets it.
    ///
    /// # Errors
    /// It has ended (`ESRCH`), or we may not: another tracer has it, or it is not ours (`EPERM`).
    pub fn hold(&self, tid: u32) -> Result<(), LinuxError> {
        let options = usize::try_from(libc::PTRACE_O_TRACESYSGOOD).unwrap_or(0);
        // SAFETY: the options are plain numbers.
        unsafe { SEIZE.on(tid, options)? };
        // It fails only where the thread has ended, which is seen as a halt.
        let _ended = self.interrupt(tid);
        Ok(())
    }

    /// Asks a thread that we are attached to once more to halt.
    ///
    /// # Errors
    /// It has ended, or is not traced any more: its id is that of another thread, which became another program.
    pub fn interrupt(&self, tid: u32) -> Result<(), LinuxError> {
        // SAFETY: it takes no argument.
        unsafe { INTERRUPT.on(tid, 0) }
    }

    /// The next thread that halted or ended, waited for if asked; `None` where no thread that we trace did,
    /// or we trace none. The end of a child of this process is left for its parent to see.
    pub fn next_halt(&self, wait: bool) -> Option<Halt> {
        Self::halt_of(libc::P_ALL, 0, if wait { 0 } else { libc::WNOHANG })
    }

    fn halt_of(which: libc::idtype_t, id: u32, patience: i32) -> Option<Halt> {
        loop {
            // SAFETY: siginfo_t is plain data, for which zero is valid.
            let mut seen: libc::siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
            let flags = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD | patience;
            // SAFETY: the call fills `seen`.
            if unsafe { libc::waitid(which, id, &raw mut seen, flags) } != 0 {
                if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return None;
            }
            // SAFETY: waitid fills these fields, or leaves the zeroes where nothing happened.
            let (pid, status) = unsafe { (seen.si_pid(), seen.si_status()) };
            let tid = u32::try_from(pid).ok().filter(|tid| *tid != 0)?;
            return Some(Halt { tid, why: why(seen.si_code, status) });
        }
    }

    /// Registers of a thread that halted.
    ///
    /// # Errors
    /// It was killed meanwhile.
    pub fn registers(&self, tid: u32) -> Result<Registers, LinuxError> {
        let mut registers = Registers::default();
        // SAFETY: the kernel fills the structure, which has its layout.
        unsafe { GET.on(tid, &raw mut registers as usize)? };
        Ok(registers)
    }

    /// Gives a thread that halted other registers.
    ///
    /// # Errors
    /// It was killed meanwhile.
    pub fn set_registers(&self, tid: u32, registers: &Registers) -> Result<(), LinuxError> {
        // SAFETY: the kernel reads the structure.
        unsafe { SET.on(tid, std::ptr::from_ref(registers) as usize) }
    }

    /// Lets a thread that halted go on, without letting go of it.
    ///
    /// # Errors
    /// It was killed meanwhile.
    pub fn go_on(&self, tid: u32) -> Result<(), LinuxError> {
        // SAFETY: the argument is the number of a signal; 0 is none.
        unsafe { CONT.on(tid, 0) }
    }

    /// Lets a thread that halted go on to the entry or the end of its next system call.
    ///
    /// # Errors
    /// It was killed meanwhile.
    pub fn run_to_call(&self, tid: u32) -> Result<(), LinuxError> {
        // SAFETY: the argument is the number of a signal; 0 is none.
        unsafe { CALL.on(tid, 0) }
    }

    /// Lets a thread that halted do one instruction, behind which it halts as for a signal of its own (`SIGTRAP`).
    ///
    /// # Errors
    /// It was killed meanwhile.
    pub fn step(&self, tid: u32) -> Result<(), LinuxError> {
        // SAFETY: the argument is the number of a signal; 0 is none.
        unsafe { STEP.on(tid, 0) }
    }

    /// Waits until a thread that we trace halts or ends, or for so long.
    pub fn wait_a_moment(&self, longest: Duration) {
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(longest.as_secs()).unwrap_or(0),
            tv_nsec: libc::c_long::from(longest.subsec_nanos()),
        };
        // SAFETY: `sigset_t` is plain data that the first call fills. The signal is blocked in this thread while it is
        // waited for, so it is taken out here and never handled.
        unsafe {
            let mut children: libc::sigset_t = MaybeUninit::zeroed().assume_init();
            libc::sigemptyset(&raw mut children);
            libc::sigaddset(&raw mut children, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const children, std::ptr::null_mut());
            libc::sigtimedwait(&raw const children, std::ptr::null_mut(), &raw const timeout);
        }
    }

    /// Waits for the next halt of this thread, or its end.
    pub fn wait_for(&self, tid: u32) -> Halt {
        Self::halt_of(libc::P_PID, tid, 0).unwrap_or(Halt { tid, why: Why::Ended })
    }

    /// Detaches from a thread that halted, which goes on; a signal that it halted for is delivered.
    pub fn let_go(&self, halt: Halt) {
        let signal = if let Why::Signal(signal) = halt.why { usize::try_from(signal).unwrap_or(0) } else { 0 };
        // SAFETY: the argument is the number of a signal. It fails only where the thread was killed.
        let _killed = unsafe { DETACH.on(halt.tid, signal) };
    }

    /// Detaches from a thread that halted, as if what halted it had not been: a fault that was ours.
    pub fn let_go_on(&self, tid: u32) {
        self.let_go(Halt { tid, why: Why::Interrupted });
    }

    /// Forgets a thread that ended while it was traced, so that its own parent is told. Not for a child of this
    /// process: its parent waits for it.
    pub fn forget(&self, tid: u32) {
        let flags = libc::WEXITED | libc::WNOHANG | libc::__WALL;
        // SAFETY: siginfo_t is plain data, for which zero is valid; the call fills it.
        unsafe {
            let mut seen: libc::siginfo_t = MaybeUninit::zeroed().assume_init();
            libc::waitid(libc::P_PID, tid, &raw mut seen, flags);
        }
    }
}

impl Default for Tracer {
    fn default() -> Self {
        Self::new()
    }
}

/// What `waitid` says of a traced thread: the low byte of the status is a signal, the next one an event.
fn why(code: i32, status: i32) -> Why {
    /// A stop at a system call, told from a `SIGTRAP` by this bit (`PTRACE_O_TRACESYSGOOD`).
    const AT_CALL: i32 = libc::SIGTRAP | 0x80;
    const BY_US: i32 = libc::SIGTRAP | libc::PTRACE_EVENT_STOP << 8;
    match (code, status) {
        (libc::CLD_TRAPPED | libc::CLD_STOPPED, AT_CALL) => Why::Call,
        (libc::CLD_TRAPPED | libc::CLD_STOPPED, BY_US) => Why::Interrupted,
        (libc::CLD_TRAPPED | libc::CLD_STOPPED, status) if status >> 8 != 0 => Why::Stopped,
        (libc::CLD_TRAPPED | libc::CLD_STOPPED, signal) => Why::Signal(signal),
        _ => Why::Ended,
    }
}

/// Reads words of another process's memory; `None` where they cannot be read whole.
pub fn read_words(pid: u32, address: u64, count: usize) -> Option<Vec<u64>> {
    let mut words = vec![0_u64; count];
    let bytes = size_of_val(words.as_slice());
    let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
    let there = libc::iovec { iov_base: usize::try_from(address).ok()? as *mut libc::c_void, iov_len: bytes };
    // SAFETY: the kernel fills at most `bytes` bytes of `words`.
    let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &raw const here, 1, &raw const there, 1, 0) };
    (usize::try_from(read) == Ok(bytes)).then_some(words)
}

/// Reads bytes of another process's memory; says how many there were.
pub fn read_bytes(pid: u32, address: u64, into: &mut [u8]) -> usize {
    let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let Ok(there) = usize::try_from(address) else { return 0 };
    let there = libc::iovec { iov_base: there as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel fills at most the bytes of `into`.
    let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn busy() -> Child {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        // Until it is the shell, it is us.
        while std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap().trim() != "sh" {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn a_thread_is_held_read_and_let_go() {
        let mut child = busy();
        let tracer = Tracer::new();
        for _ in 0..20 {
            tracer.hold(child.id()).unwrap();
            let halt = tracer.next_halt(true).unwrap();
            assert_eq!(halt, Halt { tid: child.id(), why: Why::Interrupted });
            let registers = tracer.registers(child.id()).unwrap();
            assert_eq!((registers.cs, registers.rip != 0), (USER_CODE_64, true));
            assert!(read_words(child.id(), registers.rsp, 2).is_some());
            tracer.let_go(halt);
            assert_eq!(tracer.next_halt(false), None);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Whether a process has a handler for a signal.
    fn catches(pid: u32, signal: i32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
        u64::from_str_radix(caught, 16).unwrap() & 1 << (signal - 1) != 0
    }

    #[test]
    fn a_signal_on_its_way_arrives() {
        let mut child = Command::new("sh").args(["-c", "trap 'exit 7' USR1; while :; do :; done"]).spawn().unwrap();
        while !catches(child.id(), libc::SIGUSR1) {
            std::thread::yield_now();
        }
        let tracer = Tracer::new();
        tracer.hold(child.id()).unwrap();
        // SAFETY: sends a signal to our child.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGUSR1) };
        tracer.let_go(tracer.next_halt(true).unwrap());
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn who_ends_while_traced_is_left_to_its_parent() {
        let mut child = busy();
        let tracer = Tracer::new();
        tracer.hold(child.id()).unwrap();
        child.kill().unwrap();
        while tracer.next_halt(true).unwrap().why != Why::Ended {}
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn who_is_not_ours_is_refused() {
        let error = Tracer::new().hold(u32::MAX >> 1).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ESRCH));
        assert_eq!(Tracer::new().next_halt(false), None);
        assert_eq!(read_words(u32::MAX >> 1, 4096, 1), None);
    }

    #[test]
    fn the_status_says_why() {
        assert_eq!(why(libc::CLD_TRAPPED, libc::SIGTRAP | libc::PTRACE_EVENT_STOP << 8), Why::Interrupted);
        assert_eq!(why(libc::CLD_TRAPPED, libc::SIGSTOP | libc::PTRACE_EVENT_STOP << 8), Why::Stopped);
        assert_eq!(why(libc::CLD_TRAPPED, libc::SIGTRAP | 0x80), Why::Call);
        assert_eq!(why(libc::CLD_TRAPPED, libc::SIGTRAP), Why::Signal(libc::SIGTRAP));
        assert_eq!(why(libc::CLD_KILLED, libc::SIGKILL), Why::Ended);
    }
}
