//! Threads of other processes: which there are, what they do, whether they are still there.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

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

/// Threads of a process, ascending; none where it has ended.
pub fn threads_of(root: &Root, pid: u32) -> Vec<u32> {
    let mut tids: Vec<u32> =
        root.names(&format!("/proc/{pid}/task")).iter().filter_map(|name| name.parse().ok()).collect();
    tids.sort_unstable();
    tids
}

/// Processes that this thread has started and that are still its children; none where the kernel does not list
/// them (`CONFIG_PROC_CHILDREN`).
pub fn children_of(root: &Root, pid: u32, tid: u32) -> Vec<u32> {
    let listed = root.text(&format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// A thread that is looked at again and again: its files in `/proc` stay open.
#[derive(Debug)]
pub struct WatchedThread {
    stat: File,
    schedstat: Option<File>,
}

impl WatchedThread {
    /// `None` where it has ended.
    pub fn open(root: &Root, pid: u32, tid: u32) -> Option<Self> {
        let open = |name: &str| File::open(root.path(&format!("/proc/{pid}/task/{tid}/{name}"))).ok();
        Some(Self { stat: open("stat")?, schedstat: open("schedstat") })
    }

    /// Whether it runs or could run: it does not wait for anything (`R` of `proc_pid_stat(5)`).
    pub fn is_runnable(&self) -> bool {
        let mut text = [0; 1024];
        text_of(&self.stat, &mut text).and_then(state).is_some_and(|state| state == 'R')
    }

    /// CPU time that it has used, ns; by the scheduler's count, or by the clock of `stat` (10 ms) where the kernel
    /// keeps none. `None` where it has ended.
    pub fn cpu_ns(&self) -> Option<u64> {
        let mut text = [0; 1024];
        match &self.schedstat {
            Some(file) => text_of(file, &mut text)?.split(' ').next()?.parse().ok(),
            None => cpu_ticks(text_of(&self.stat, &mut text)?).map(|ticks| ticks * NS_PER_TICK),
        }
    }
}

/// `USER_HZ` is 100 on every architecture that we know (`sysconf(3)`, `_SC_CLK_TCK`).
const NS_PER_TICK: u64 = 10_000_000;

fn text_of<'a>(file: &File, into: &'a mut [u8]) -> Option<&'a str> {
    let length = file.read_at(into, 0).ok().filter(|length| *length > 0)?;
    std::str::from_utf8(&into[..length]).ok()
}

/// The fields behind the name, which may hold anything.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(") ")?.1.split(' '))
}

fn state(stat: &str) -> Option<char> {
    fields(stat)?.next()?.chars().next()
}

/// Fields 14 and 15, user and system time; the state is field 3.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut fields = fields(stat)?.skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
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

    fn own_tid() -> u32 {
        // SAFETY: gettid has no arguments and cannot fail.
        u32::try_from(unsafe { libc::gettid() }).unwrap()
    }

    #[test]
    fn a_thread_is_there_until_it_ends() {
        let pid = std::process::id();
        assert!(!is_gone(pid, own_tid()));
        assert!(!is_gone(1, 1), "there, and perhaps not ours");
        let other = std::thread::spawn(own_tid).join().unwrap();
        // It is joined a moment before the kernel has forgotten it.
        while !is_gone(pid, other) {
            std::thread::yield_now();
        }
        assert_ne!(pid_namespace(&Root::default()), 0);
    }

    #[test]
    fn who_looks_at_itself_runs_and_uses_time() {
        let (root, pid, tid) = (Root::default(), std::process::id(), own_tid());
        assert!(threads_of(&root, pid).contains(&tid));
        let own = WatchedThread::open(&root, pid, tid).unwrap();
        assert!(own.is_runnable());
        let before = own.cpu_ns().unwrap();
        while own.cpu_ns().unwrap() == before {}
        assert!(WatchedThread::open(&root, pid, u32::MAX).is_none());
    }

    #[test]
    fn a_child_is_listed_while_it_lives() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let listed = children_of(&Root::default(), std::process::id(), own_tid());
        let there = std::path::Path::new("/proc/self/task").join(own_tid().to_string()).join("children").exists();
        assert_eq!(listed.contains(&child.id()), there);
        let waiting = WatchedThread::open(&Root::default(), child.id(), child.id()).unwrap();
        while waiting.is_runnable() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!waiting.is_runnable());
        assert_eq!(waiting.cpu_ns(), None);
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) R (b) S 1 7 7 0 -1 4194560 1 0 0 0 25 17 0 0 20 0 1 0";
        assert_eq!(state(stat), Some('S'));
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(state("7 (sh"), None);
    }

    #[test]
    fn a_process_started_once() {
        let root = Root::default();
        let own = started(&root, std::process::id()).unwrap();
        assert!(own > started(&root, 1).unwrap());
        assert_eq!(started(&root, u32::MAX), None);
    }
}
