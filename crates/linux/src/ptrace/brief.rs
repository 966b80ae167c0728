//! System calls through which a thread can be kept in sight: they return by themselves, without waiting for anybody, and
//! change no code. In all others a thread may stay for ever, and nobody waits for that.

use super::Registers;
use crate::root::Root;

/// Calls that look something up, or do a thing in memory.
const BRIEF: [i64; 14] = [
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_getcpu,
    libc::SYS_sched_getaffinity,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_lseek,
    libc::SYS_fstat,
];

/// Calls that move bytes between memory and a file.
const OF_FILES: [i64; 4] = [libc::SYS_read, libc::SYS_write, libc::SYS_pread64, libc::SYS_pwrite64];

/// Whether the call that a thread is about to make is such a one, by its registers before it.
pub fn returns_by_itself(root: &Root, pid: u32, registers: &Registers) -> bool {
    let call = registers.rax.cast_signed();
    match call {
        libc::SYS_futex => wakes(registers.rsi),
        libc::SYS_mmap => is_fresh_memory(registers.r10),
        _ if OF_FILES.contains(&call) => is_plain_file(root, pid, registers.rdi),
        _ => BRIEF.contains(&call),
    }
}

/// Operations of `futex(2)` that wait for nobody.
fn wakes(operation: u64) -> bool {
    const WAKING: [i32; 5] =
        [libc::FUTEX_WAKE, libc::FUTEX_REQUEUE, libc::FUTEX_CMP_REQUEUE, libc::FUTEX_WAKE_OP, libc::FUTEX_WAKE_BITSET];
    let own = operation & !u64::from((libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned());
    WAKING.iter().any(|waking| u64::from(waking.cast_unsigned()) == own)
}

fn is_fresh_memory(flags: u64) -> bool {
    let has = |flag: i32| flags & u64::from(flag.cast_unsigned()) != 0;
    has(libc::MAP_ANONYMOUS) && !has(libc::MAP_FIXED) && !has(libc::MAP_POPULATE)
}

/// Whether a descriptor is one of a file on a disk: pipes, sockets and devices wait for somebody, and so do some files that
/// the kernel makes up (`/proc/kmsg`, `trace_pipe`).
fn is_plain_file(root: &Root, pid: u32, descriptor: u64) -> bool {
    let path = root.path(&format!("/proc/{pid}/fd/{descriptor}"));
    let is_made_up = |target: &std::path::Path| target.starts_with("/proc") || target.starts_with("/sys");
    std::fs::read_link(&path).is_ok_and(|target| !is_made_up(&target))
        && std::fs::metadata(&path).is_ok_and(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn returns(call: i64, arguments: [u64; 4]) -> bool {
        let [rdi, rsi, rdx, r10] = arguments;
        let registers = Registers { rax: call.cast_unsigned(), rdi, rsi, rdx, r10, ..Registers::default() };
        returns_by_itself(&Root::default(), std::process::id(), &registers)
    }

    #[test]
    fn who_wakes_others_comes_back_and_who_waits_may_not() {
        let operation = |operation: i32| u64::from(operation.cast_unsigned());
        assert!(returns(libc::SYS_futex, [0, operation(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG), 1, 0]));
        assert!(!returns(libc::SYS_futex, [0, operation(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG), 1, 0]));
        assert!(returns(libc::SYS_sched_yield, [0; 4]));
        assert!(!returns(libc::SYS_nanosleep, [0; 4]) && !returns(libc::SYS_exit, [0; 4]));
        assert!(!returns(libc::SYS_munmap, [0; 4]), "it may be code");
    }

    #[test]
    fn files_come_back_and_pipes_may_not() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let number = |descriptor: i32| u64::try_from(descriptor).unwrap();
        let made_up = std::fs::File::open("/proc/self/status").unwrap();
        assert!(returns(libc::SYS_read, [number(file.as_raw_fd()), 0, 0, 0]));
        assert!(!returns(libc::SYS_read, [number(made_up.as_raw_fd()), 0, 0, 0]));
        assert!(!returns(libc::SYS_read, [number(reader.as_raw_fd()), 0, 0, 0]));
    }
}
