//! Whether the recorder is there: it may be killed while the program runs, which goes on alone, and its
//! process id may be another's when the program starts one of its own.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use tierloom_wire::Region;

use crate::lane;

/// Longest `/proc/PID/fd/N` with its zero byte, and room to spare.
const LONGEST: usize = 64;
/// Where its memory was opened; empty where that has a longer name.
static PATH: [AtomicU8; LONGEST] = [const { AtomicU8::new(0) }; LONGEST];

/// Whether a path still leads to the memory of a recorder: opening anything else may do something.
pub(crate) fn is_memory(path: &CStr) -> bool {
    const NAME: [u8; 16] = *b"/memfd:tierloom-";
    let mut target = [0; NAME.len()];
    !path.to_bytes().starts_with(b"/proc/") || (read_link(path.to_bytes_with_nul(), &mut target) > 0 && target == NAME)
}

/// Keeps where its memory was opened.
pub(crate) fn remember(path: &CStr) {
    let bytes = path.to_bytes_with_nul();
    if bytes.len() <= LONGEST && bytes.starts_with(b"/proc/") {
        PATH.iter().zip(bytes).for_each(|(to, byte)| to.store(*byte, Ordering::Relaxed));
    }
}

/// Whether it has ended, as far as this process can see: not one in another namespace of process ids.
/// Async-signal-safe, and leaves `errno` as it was.
pub(crate) fn is_gone(region: &Region) -> bool {
    // SAFETY: `errno` is an int of this thread.
    let errno = unsafe { *libc::__errno_location() };
    let gone = lane::is_near_recorder() && (has_no_process(region.recorder()) || has_closed_its_memory());
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    gone
}

fn has_no_process(pid: u32) -> bool {
    // SAFETY: no signal is sent; the arguments are plain numbers, `errno` an int of this thread. By number, because
    // programs bring a `kill` of their own.
    unsafe {
        pid != 0 && libc::syscall(libc::SYS_kill, pid.cast_signed(), 0) != 0 && *libc::__errno_location() == libc::ESRCH
    }
}

/// One that was killed and that its parent did not wait for yet has a process and no files. Where there is
/// no `/proc`, as behind `chroot`, nothing can be said.
fn has_closed_its_memory() -> bool {
    let path: [u8; LONGEST] = std::array::from_fn(|at| PATH[at].load(Ordering::Relaxed));
    path[0] != 0 && is_no_link(&path) && !is_no_link(b"/proc/self\0")
}

/// Whether there is no such link; `path` ends with a zero byte.
fn is_no_link(path: &[u8]) -> bool {
    // SAFETY: `errno` is an int of this thread.
    read_link(path, &mut [0; 8]) < 0 && unsafe { *libc::__errno_location() } == libc::ENOENT
}

/// Reads the start of where a link leads; `path` ends with a zero byte.
fn read_link(path: &[u8], target: &mut [u8]) -> i64 {
    debug_assert_eq!(path.last(), Some(&0));
    // SAFETY: `path` is a C string, `target` has room for as much as is said.
    unsafe { libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path.as_ptr(), target.as_mut_ptr(), target.len()) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_there_until_it_was_waited_for() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        assert!(!has_no_process(pid) && !has_no_process(std::process::id()));
        child.wait().unwrap();
        assert!(has_no_process(pid));
    }

    #[test]
    fn one_that_was_killed_has_no_files() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let path = format!("/proc/{}/fd/0\0", child.id());
        assert!(!is_no_link(path.as_bytes()));
        child.kill().unwrap();
        // SAFETY: geteuid has no arguments and cannot fail.
        let is_root = unsafe { libc::geteuid() } == 0;
        // To others the kernel does not even say that a process that nobody has waited for has no files.
        while is_root && !is_no_link(path.as_bytes()) {
            std::thread::yield_now();
        }
        assert!(!has_no_process(child.id()), "nobody has waited for it");
        child.wait().unwrap();
        assert!(is_no_link(path.as_bytes()));
    }
}
