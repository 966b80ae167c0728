//! Whether a process can be given memory, and a thread let into copies, without harm.

use tierloom_linux::maps::MappedRange;
use tierloom_linux::ptrace::{Registers, Tracer, USER_CODE_64, read_words};
use tierloom_linux::root::Root;

use super::text::ProcessText;

/// Mappings up to which a process gets some more: the kernel refuses more than 65,530 (`vm.max_map_count`), half of
/// which nobody is near. Assumed.
const MOST_MAPPINGS: usize = 32_768;
/// The processor halts behind every instruction (AMD64 manual, volume 2, 3.1.6): somebody steps through the program.
const TRAP_FLAG: u64 = 1 << 8;

/// Whether a process can be given memory without harm: what is counted against a limit may be needed to the last, and
/// memory that is locked is never given back.
pub(super) fn may_have_memory(root: &Root, pid: u32, maps: &[MappedRange]) -> bool {
    let limits = root.text(&format!("/proc/{pid}/limits")).unwrap_or_default();
    let unlimited = |name: &str| {
        let limit = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        limit.trim_start().starts_with("unlimited")
    };
    let status = root.text(&format!("/proc/{pid}/status")).unwrap_or_default();
    unlimited("Max address space")
        && unlimited("Max data size")
        && field(&status, "VmLck:").is_none_or(|locked| locked.starts_with("0 "))
        && maps.len() < MOST_MAPPINGS
}

/// Whether a halted thread may make a call that is not its own: a filter may end it for that, and who takes its calls
/// for itself would see it.
pub(super) fn may_call(root: &Root, tracer: &Tracer, pid: u32, tid: u32) -> bool {
    let status = root.text(&format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    field(&status, "Seccomp:").is_none_or(|mode| mode == "0")
        && field(&status, "x86_Thread_features:").is_none_or(|features| !features.contains("shstk"))
        && !tracer.dispatches_calls(tid)
}

/// Whether a thread that halted in user space may go on in copies: not in the middle of a restartable sequence, nor on
/// its way into one, nor one that is stepped through.
pub(super) fn may_enter(tracer: &Tracer, pid: u32, tid: u32, registers: &Registers, text: &ProcessText) -> bool {
    let is_stepped = registers.eflags & TRAP_FLAG != 0;
    registers.cs == USER_CODE_64 && !is_stepped && !is_in_sequence(tracer, pid, tid, registers, text)
}

/// The kernel starts a sequence anew where it takes the processor away, by the address of the instruction: in a copy it
/// would not know it (`rseq(2)`). On its way in the thread has the address of its descriptor in a register.
fn is_in_sequence(tracer: &Tracer, pid: u32, tid: u32, registers: &Registers, text: &ProcessText) -> bool {
    /// `rseq_cs` of `struct rseq`.
    const DESCRIPTOR: u64 = 8;
    let Some(area) = tracer.rseq_area(tid) else { return false };
    let Some(words) = read_words(pid, area + DESCRIPTOR, 1) else { return true };
    let is_inside =
        words[0] != 0 && text.sequence_at(words[0]).is_none_or(|sequence| sequence.contains(&registers.rip));
    let r = registers;
    let values =
        [r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    is_inside || values.into_iter().any(|value| text.sequence_at(value).is_some())
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}
