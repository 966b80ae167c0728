//! Stacks of threads: a thread maps the stack of the one that it starts, and starts it at once (`pthread_create`).
//!
//! The kernel calls a thread's stack anonymous memory, so it looks like an array. What tells it is the order: the last
//! mapping of a thread just before it starts another.

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
    for thread in threads {
        let before = mapped.partition_point(|mapped| mapped.mapping.time_ns <= thread.time_ns);
        let is_its = |mapped: &&mut Mapped| mapped.tid == thread.parent_tid && mapped.mapping.pid == thread.pid;
        let last = mapped[..before].iter_mut().rev().find(is_its);
        if let Some(Mapped { mapping, .. }) = last
            && thread.time_ns - mapping.time_ns <= MOST_NS
            && is_anonymous(mapping)
        {
            STACK.clone_into(&mut mapping.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(time_ns: u64, tid: u32, path: &str) -> Mapped {
        let (pid, path, start) = (1, path.to_owned(), 0x7000_0000_0000 + (time_ns << 12));
        Mapped {
            mapping: Mapping { time_ns, pid, start, bytes: 8 << 20, file_offset: 0, executable: false, path },
            tid,
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
}
