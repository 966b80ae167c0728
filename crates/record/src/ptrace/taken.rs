//! Samples of threads that are halted.

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::ptrace::interrupted::call_of;
use tierloom_linux::ptrace::{Registers, USER_CODE_64, read_words};
use tierloom_recording::{InCopy, REGISTERS, STACK_WORDS, Sample, register};

use crate::running::ThreadId;

/// A sample, and what it found on the stack.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) sample: Sample,
    pub(crate) stack: Option<[u64; STACK_WORDS]>,
}

impl Taken {
    /// Of a thread that is halted.
    pub(super) fn of(sample: Sample) -> Self {
        let words = read_words(sample.pid, sample.registers[register::SP], STACK_WORDS);
        Self { stack: words.and_then(|words| words.try_into().ok()), sample }
    }
}

/// What a recording keeps of registers; `None` in 32-bit code, which nobody decodes.
pub(super) fn sample(id: ThreadId, r: &Registers) -> Option<Sample> {
    let registers: [u64; REGISTERS] = [
        r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.rip, r.eflags, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15,
    ];
    let kernel = call_of(r).is_some();
    let ThreadId { pid, tid } = id;
    (r.cs == USER_CODE_64).then_some(Sample {
        time_ns: monotonic_ns(),
        pid,
        tid,
        instructions: 0,
        registers,
        kernel,
        copy: InCopy::No,
    })
}
