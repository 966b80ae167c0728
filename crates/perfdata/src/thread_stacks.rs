//! Stacks of threads: a thread maps the stack of the one that it starts, and starts it at once (`pthread_create`).
//!
//! The kernel calls a thread's stack anonymous memory, so it looks like an array. What tells it is the guard below it: C
//! libraries map a stack closed to everybody and open all of it but its lowest pages, just before they start the thread.
//! Where the file does not say what is closed (`MMAP` records), it is the last mapping before the start.

use tierloom_recording::Mapping;

use crate::mapping_objects::is_anonymous;

/// As the kernel calls the first thread's.
const STACK: &str = "[stack]";
/// Between mapping a stack and starting the thread lie two system calls: microseconds, and more when they are
/// interrupted. Assumed.
const MOST_NS: u64 = 1_000_000;

/// A mapping, and the thread that made it.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) mapping: Mapping,
    pub(super) tid: u32,
    /// Nobody may touch it.
    pub(super) closed: bool,
}

impl Mapped {
    /// Whether it is address space without memory.
    pub(super) fn is_reserved(&self) -> bool {
        self.closed && is_anonymous(&self.mapping)
    }

    /// Whether this is all of that but a guard below.
    fn opens(&self, reserved: &Mapped) -> bool {
        let (mine, its) = (&self.mapping, &reserved.mapping);
        mine.pid == its.pid && its.start < mine.start && its.start + its.bytes == mine.start + mine.bytes
    }
}

/// A thread that was started by another of its process.
#[derive(Debug)]
pub(super) struct ThreadStart {
    pub(super) pid: u32,
    pub(super) parent_tid: u32,
    pub(super) time_ns: u64,
}

/// Names the stacks among mappings; both in the order of time.
pub(super) fn mark_stacks(mapped: &mut [Mapped], threads: &[ThreadStart]) {
    let guarded = mapped.iter().any(Mapped::is_reserved);
    for thread in threads {
        if let Some(at) = stack(mapped, thread, guarded) {
            STACK.clone_into(&mut mapped[at].mapping.path);
        }
    }
}

/// Which mapping is a thread's stack.
fn stack(mapped: &[Mapped], thread: &ThreadStart, guarded: bool) -> Option<usize> {
    let before = mapped.partition_point(|mapped| mapped.mapping.time_ns <= thread.time_ns);
    let first = mapped.partition_point(|mapped| mapped.mapping.time_ns < thread.time_ns.saturating_sub(MOST_NS));
    let is_its = |mapped: &Mapped| mapped.tid == thread.parent_tid && mapped.mapping.pid == thread.pid;
    let its: Vec<usize> = (first..before).filter(|at| is_its(&mapped[*at])).collect();
    let opens = |at: &usize| its.iter().any(|of| of < at && mapped[*of].closed && mapped[*at].opens(&mapped[*of]));
    let last = its.iter().rev().find(|at| !guarded || opens(at))?;
    is_anonymous(&mapped[*last].mapping).then_some(*last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(time_ns: u64, tid: u32, path: &str) -> Mapped {
        let (pid, path, start) = (1, path.to_owned(), 0x7000_0000_0000 + (time_ns << 12));
        Mapped {
            mapping: Mapping { time_ns, pid, start, bytes: 8 << 20, file_offset: 0, executable: false, path },
            tid,
            closed: false,
        }
    }

    fn paths(mut all: Vec<Mapped>, starts: &[(u32, u64)]) -> Vec<String> {
        let started =
            |(parent_tid, time_ns): &(u32, u64)| ThreadStart { pid: 1, parent_tid: *parent_tid, time_ns: *time_ns };
        mark_stacks(&mut all, &starts.iter().map(started).collect::<Vec<_>>());
        all.into_iter().map(|mapped| mapped.mapping.path).collect()
    }

    #[test]
    fn the_last_mapping_just_before_a_thread_starts_is_its_stack() {
        let all = vec![mapped(10, 1, "//anon"), mapped(20, 1, "//anon"), mapped(25, 2, "//anon")];
        assert_eq!(paths(all, &[(1, 30)]), ["//anon", "[stack]", "//anon"]);
    }

    #[test]
    fn an_array_long_before_and_a_file_are_none() {
        assert_eq!(paths(vec![mapped(10, 1, "//anon")], &[(1, 11 + MOST_NS)]), ["//anon"]);
        assert_eq!(paths(vec![mapped(10, 1, "//anon"), mapped(11, 1, "/a")], &[(1, 12)]), ["//anon", "/a"]);
        assert_eq!(paths(vec![mapped(10, 1, "//anon")], &[(1, 9), (2, 12)]), ["//anon"]);
    }

    /// What glibc does: closed memory, all of it opened but a page, and its own heap behind that.
    #[test]
    fn what_opens_a_closed_mapping_but_for_its_guard_is_a_stack() {
        let (array, stack) = (mapped(10, 1, "//anon"), mapped(20, 1, "//anon"));
        let mut closed = mapped(15, 1, "//anon");
        (closed.closed, closed.mapping.start) = (true, stack.mapping.start - 4096);
        closed.mapping.bytes = stack.mapping.bytes + 4096;
        let heap = mapped(25, 1, "//anon");
        let all = || vec![mapped(10, 1, "//anon"), mapped(25, 1, "//anon")];
        assert_eq!(paths(vec![array, closed, stack, heap], &[(1, 30)]), ["//anon", "//anon", "[stack]", "//anon"]);
        assert_eq!(paths(all(), &[(1, 30)]), ["//anon", "[stack]"], "a file that says of nothing that it is closed");
        let mut arena = all();
        arena[0].closed = true;
        assert_eq!(paths(arena, &[(1, 30)]), ["//anon", "//anon"], "its stack was there before");
    }
}
