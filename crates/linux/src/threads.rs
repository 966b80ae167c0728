//! Threads of other processes: whether they are still there.

use std::io;
use std::os::unix::fs::MetadataExt;

use crate::root::Root;

/// Whether there is no such thread; one that we may not send signals to is there.
pub fn is_gone(pid: u32, tid: u32) -> bool {
    // SAFETY: no signal is sent; the arguments are plain numbers.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, pid.cast_signed(), tid.cast_signed(), 0) };
    answer != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// The namespace of process ids that we are in, by the number of its file; 0 where there is no `/proc`.
pub fn pid_namespace(root: &Root) -> u64 {
    std::fs::metadata(root.path("/proc/self/ns/pid")).map_or(0, |status| status.ino())
}

/// When a process started, in ticks of the kernel's clock since the machine's start; `None` where there is none.
pub fn started(root: &Root, pid: u32) -> Option<u64> {
    /// Field 22 of `proc_pid_stat(5)`, counted from behind the name, which may hold anything.
    const POSITION: usize = 19;
    let text = root.text(&format!("/proc/{pid}/stat"))?;
    text.rsplit_once(')')?.1.split_whitespace().nth(POSITION)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_there_until_it_ends() {
        let pid = std::process::id();
        // SAFETY: gettid has no arguments and cannot fail.
        let own = || u32::try_from(unsafe { libc::gettid() }).unwrap();
        assert!(!is_gone(pid, own()));
        assert!(!is_gone(1, 1), "there, and perhaps not ours");
        let other = std::thread::spawn(own).join().unwrap();
        // It is joined a moment before the kernel has forgotten it.
        while !is_gone(pid, other) {
            std::thread::yield_now();
        }
        assert_ne!(pid_namespace(&Root::default()), 0);
    }

    #[test]
    fn a_process_started_once() {
        let root = Root::default();
        let own = started(&root, std::process::id()).unwrap();
        assert!(own > started(&root, 1).unwrap());
        assert_eq!(started(&root, u32::MAX), None);
    }
}
