//! What the kernel keeps of a halted thread beside its registers.

use std::mem::MaybeUninit;

use super::{Halt, Tracer, Why};

/// `PTRACE_GET_RSEQ_CONFIGURATION` of the kernel's `ptrace.h`, since 5.13.
const GET_RSEQ: libc::c_uint = 0x420f;
/// `PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG`, since 6.4.
const GET_DISPATCH: libc::c_uint = 0x4211;

/// `struct ptrace_rseq_configuration`.
#[repr(C)]
#[derive(Default)]
struct RseqConfiguration {
    area: u64,
    bytes: u32,
    signature: u32,
    flags: u32,
    padding: u32,
}

/// `struct ptrace_sud_config`.
#[repr(C)]
#[derive(Default)]
struct DispatchConfiguration {
    mode: u64,
    selector: u64,
    offset: u64,
    bytes: u64,
}

impl Tracer {
    /// Where a halted thread tells the kernel of its restartable sequences (`rseq(2)`); `None` where it does not.
    pub fn rseq_area(&self, tid: u32) -> Option<u64> {
        let found: RseqConfiguration = asked(GET_RSEQ, tid)?;
        (found.area != 0).then_some(found.area)
    }

    /// Whether a halted thread takes system calls for itself (`prctl(2)`, `PR_SET_SYSCALL_USER_DISPATCH`).
    pub fn dispatches_calls(&self, tid: u32) -> bool {
        asked::<DispatchConfiguration>(GET_DISPATCH, tid).is_some_and(|found| found.mode != 0)
    }

    /// Whether a thread halted for a fault of the instruction that it is at: it happens again when that is run again.
    pub fn is_fault(&self, halt: Halt) -> bool {
        /// A page went bad that nobody is reading (`sigaction(2)`).
        const BUS_MCEERR_AO: i32 = 5;
        let Why::Signal(signal @ (libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL)) = halt.why else {
            return false;
        };
        // SAFETY: siginfo_t is plain data, for which zero is valid.
        let mut info: libc::siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the kernel fills the structure.
        let answer = unsafe {
            let nothing = std::ptr::null_mut::<u8>();
            libc::ptrace(libc::PTRACE_GETSIGINFO, halt.tid.cast_signed(), nothing, &raw mut info)
        };
        // What somebody sent has a code of zero and less.
        answer == 0 && info.si_code > 0 && (signal, info.si_code) != (libc::SIGBUS, BUS_MCEERR_AO)
    }
}

/// A structure of which the kernel is told the size; `None` where it does not know it.
fn asked<T: Default>(request: libc::c_uint, tid: u32) -> Option<T> {
    let mut found = T::default();
    // SAFETY: the kernel fills at most as many bytes as it is told.
    let answer = unsafe { libc::ptrace(request, tid.cast_signed(), size_of::<T>(), &raw mut found) };
    (answer >= 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn computing() -> Child {
        let child = Command::new("sh").args(["-c", "kill -STOP $$; while :; do :; done"]).spawn().unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        while !state().contains(") T ") {
            std::thread::yield_now();
        }
        // SAFETY: sends a signal to our child.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGCONT) };
        child
    }

    #[test]
    fn who_sends_a_fault_is_told_from_what_makes_one() {
        let mut child = computing();
        let tracer = Tracer::new();
        tracer.hold(child.id()).unwrap();
        tracer.wait_for(child.id());
        assert!(!tracer.is_fault(Halt { tid: child.id(), why: Why::Interrupted }));
        assert!(!tracer.dispatches_calls(child.id()));
        // SAFETY: sends a signal to our child.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGSEGV) };
        tracer.go_on(child.id()).unwrap();
        let sent = tracer.wait_for(child.id());
        assert_eq!((sent.why, tracer.is_fault(sent)), (Why::Signal(libc::SIGSEGV), false));
        // Nothing is mapped at this address.
        let registers = crate::ptrace::Registers { rip: 16, ..tracer.registers(child.id()).unwrap() };
        tracer.set_registers(child.id(), &registers).unwrap();
        tracer.go_on(child.id()).unwrap();
        let made = tracer.wait_for(child.id());
        assert_eq!((made.why, tracer.is_fault(made)), (Why::Signal(libc::SIGSEGV), true));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
