//! Which threads are to be halted at a tick: those that run, each once in so much of its CPU time.
//!
//! The threads of all processes are listed from time to time; between two listings only those are looked at
//! that used CPU time before the last one. Listing a program of hundreds of threads takes a
//! millisecond, so it is done the less often the longer it takes.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::root::Root;
use tierloom_linux::threads::{self, WatchedThread};

/// Time between two listings, ns: a thread that lives shorter is not seen.
const BETWEEN_LISTINGS_NS: u64 = 10_000_000;
/// The share of the time that listing may take: one in so many; but where it took long because somebody else had
/// the processor, the next one is not put off for longer than this.
const LISTING_ONE_IN: u64 = 100;
const MOST_BETWEEN_LISTINGS_NS: u64 = 250_000_000;
/// Threads that are looked at between two listings: more do not run at once on most machines, and each
/// costs two reads of `/proc` a tick.
const MOST_ACTIVE: usize = 64;
/// A thread that was never seen running when a tick came owes no more than this many samples.
const MOST_OWED: i64 = 4;

/// A thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadId {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// The threads of a program and its children.
#[derive(Debug)]
pub(super) struct Threads {
    root: Root,
    processes: BTreeSet<u32>,
    known: BTreeMap<ThreadId, Known>,
    active: Vec<ThreadId>,
    next_listing_ns: u64,
}

/// What is known of a thread.
#[derive(Debug)]
struct Known {
    /// Open while it is active: a program may have more threads than we may open files.
    files: Option<WatchedThread>,
    cpu_ns: u64,
    /// CPU time that no sample stands for yet, ns; less than nothing after one that came early.
    owed_ns: i64,
}

impl Known {
    /// Counts what it used since it was last counted, which it returns.
    fn count(&mut self, cpu_ns: u64) -> u64 {
        let used = cpu_ns.saturating_sub(self.cpu_ns);
        self.cpu_ns = cpu_ns;
        self.owed_ns = self.owed_ns.saturating_add_unsigned(used);
        used
    }

    /// Whether it runs, and has used at least half of `period_ns` since its last sample, which it owes then.
    fn is_due(&mut self, period_ns: i64) -> bool {
        let Some(cpu_ns) = self.files.as_ref().and_then(WatchedThread::cpu_ns) else { return false };
        self.count(cpu_ns);
        if 2 * self.owed_ns < period_ns || !self.files.as_ref().is_some_and(WatchedThread::is_runnable) {
            return false;
        }
        self.owed_ns = (self.owed_ns - period_ns).min(MOST_OWED * period_ns);
        true
    }
}

impl Threads {
    /// Those of this process, and of the ones that it will start.
    pub(super) fn new(root: Root, pid: u32) -> Self {
        let processes = BTreeSet::from([pid]);
        Self { root, processes, known: BTreeMap::new(), active: Vec::new(), next_listing_ns: 0 }
    }

    /// Another process is there.
    pub(super) fn add(&mut self, pid: u32) {
        self.processes.insert(pid);
    }

    /// The threads that run now and have used at least half of `period_ns` since their last sample.
    pub(super) fn due(&mut self, period_ns: u64) -> Vec<ThreadId> {
        self.list();
        let Self { active, known, .. } = self;
        let period_ns = period_ns.cast_signed();
        let is_due = |id: &&ThreadId| known.get_mut(id).is_some_and(|known| known.is_due(period_ns));
        active.iter().filter(is_due).copied().collect()
    }

    /// Processes that have ended since they were last listed are gone from the list.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.processes.contains(&pid)
    }

    /// A process or thread may not be looked at, or is gone.
    pub(super) fn leave_alone(&mut self, id: ThreadId) {
        self.active.retain(|other| *other != id);
    }

    fn list(&mut self) {
        let begun = monotonic_ns();
        if begun < self.next_listing_ns {
            return;
        }
        let mut there = BTreeSet::new();
        let mut waiting: Vec<u32> = self.processes.iter().copied().collect();
        self.processes.clear();
        while let Some(pid) = waiting.pop() {
            let tids = threads::threads_of(&self.root, pid);
            if tids.is_empty() || !self.processes.insert(pid) {
                continue;
            }
            for tid in tids {
                waiting.extend(threads::children_of(&self.root, pid, tid));
                there.insert(ThreadId { pid, tid });
            }
        }
        self.meet(&there);
        let took = monotonic_ns().saturating_sub(begun);
        self.next_listing_ns = begun + (took * LISTING_ONE_IN).clamp(BETWEEN_LISTINGS_NS, MOST_BETWEEN_LISTINGS_NS);
    }

    /// What a thread used before it was first seen is not owed: a child on its way to another program is not
    /// halted there.
    fn meet(&mut self, there: &BTreeSet<ThreadId>) {
        self.known.retain(|id, _| there.contains(id));
        let mut used: Vec<(u64, ThreadId)> = there.iter().filter_map(|id| Some((self.used(*id)?, *id))).collect();
        used.retain(|(used, _)| *used > 0);
        used.sort_unstable_by(|one, other| other.cmp(one));
        self.active = used.into_iter().take(MOST_ACTIVE).map(|(_, id)| id).collect();
        let active: BTreeSet<ThreadId> = self.active.iter().copied().collect();
        for (id, known) in &mut self.known {
            if !active.contains(id) {
                known.files = None;
            } else if known.files.is_none() {
                known.files = WatchedThread::open(&self.root, id.pid, id.tid);
            }
        }
    }

    /// CPU time that a thread used since it was last counted, ns.
    fn used(&mut self, id: ThreadId) -> Option<u64> {
        let cpu_ns = WatchedThread::open(&self.root, id.pid, id.tid)?.cpu_ns()?;
        let fresh = || Known { files: None, cpu_ns, owed_ns: 0 };
        Some(self.known.entry(id).or_insert_with(fresh).count(cpu_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::*;

    /// A program and what it starts: ended whatever happens to the test.
    struct Program(Child);

    impl Program {
        fn start(words: &[&str]) -> Self {
            Self(Command::new(words[0]).args(&words[1..]).process_group(0).spawn().unwrap())
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }

        fn end(&mut self) {
            let kill = format!("kill -9 -{}", self.pid());
            Command::new("sh").args(["-c", &kill]).status().unwrap();
            self.0.wait().unwrap();
        }

        /// It is in a system call that waits; page faults wait in another state.
        fn waits(&self) -> bool {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
            stat[stat.rfind(')').unwrap()..].starts_with(") S")
        }
    }

    impl Drop for Program {
        fn drop(&mut self) {
            if matches!(self.0.try_wait(), Ok(None)) {
                self.end();
            }
        }
    }

    /// Threads as they are due, one look after the other, until enough of them were.
    fn due_until(threads: &mut Threads, period_ns: u64, enough: impl Fn(&[ThreadId]) -> bool) -> Vec<ThreadId> {
        let mut due = Vec::new();
        while !enough(&due) {
            due.extend(threads.due(period_ns));
            std::thread::sleep(Duration::from_millis(1));
        }
        due
    }

    /// A listing is due at once: how long one is put off depends on how long the last one took.
    fn due_after_a_listing(threads: &mut Threads, period_ns: u64) -> Vec<ThreadId> {
        threads.next_listing_ns = 0;
        threads.due(period_ns)
    }

    #[test]
    fn who_computes_is_due_as_often_as_it_computes() {
        let program = Program::start(&["sh", "-c", "while :; do :; done"]);
        let id = ThreadId { pid: program.pid(), tid: program.pid() };
        let mut threads = Threads::new(Root::default(), program.pid());
        let due = due_until(&mut threads, 10_000_000, |due| due.len() >= 20);
        let used_ns = threads.known[&id].cpu_ns;
        assert!(due.iter().all(|one| *one == id), "{due:?}");
        assert!(due.len() as u64 <= used_ns / 10_000_000 + 1, "{} in {used_ns} ns", due.len());
    }

    #[test]
    fn who_waits_is_never_due_and_who_ends_is_forgotten() {
        let mut program = Program::start(&["sleep", "1000"]);
        while !program.waits() {
            std::thread::yield_now();
        }
        let mut threads = Threads::new(Root::default(), program.pid());
        for _ in 0..20 {
            assert_eq!(due_after_a_listing(&mut threads, 1), []);
        }
        assert!(threads.has(program.pid()));
        program.end();
        assert_eq!(due_after_a_listing(&mut threads, 1), []);
        assert!(!threads.has(program.pid()));
    }

    #[test]
    fn children_are_followed() {
        let program = Program::start(&["sh", "-c", "sh -c 'while :; do :; done' & wait"]);
        let mut threads = Threads::new(Root::default(), program.pid());
        // The outer one computes, too, until it waits.
        let is_child = |id: &ThreadId| id.pid != program.pid();
        let due = due_until(&mut threads, 1_000_000, |due| due.iter().any(is_child));
        let child = due.into_iter().find(is_child).unwrap();
        assert!(threads::children_of(&Root::default(), program.pid(), program.pid()).contains(&child.pid));
    }
}
