//! What samples found on the stacks of their threads.

/// Words of the stack that a sample may bring: the counters and ends of loops that compilers keep there lie near the stack
/// pointer. The frame of a blocked matrix product has 21 at `-O2` and 38 at `-O3` (measured, GCC 12). Assumed.
pub const STACK_WORDS: usize = 64;

/// What a sample found on its thread's stack, from the stack pointer on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackTop {
    /// That of its sample, ns.
    pub time_ns: u64,
    /// Thread.
    pub tid: u32,
    /// What lies there.
    pub words: [u64; STACK_WORDS],
}

impl StackTop {
    /// What the sample of a thread at a time found, of what was kept in the order of time.
    pub fn find(kept: &[Self], time_ns: u64, tid: u32) -> Option<&Self> {
        let first = kept.partition_point(|top| top.time_ns < time_ns);
        kept[first..].iter().take_while(|top| top.time_ns == time_ns).find(|top| top.tid == tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_a_sample_is_that_of_its_thread() {
        let top = |time_ns, tid| StackTop { time_ns, tid, words: [u64::from(tid); STACK_WORDS] };
        let kept = [top(1, 7), top(2, 7), top(2, 8), top(4, 7)];
        assert_eq!(StackTop::find(&kept, 2, 8), Some(&kept[2]));
        assert_eq!([(2, 9), (3, 7), (5, 7)].map(|(time_ns, tid)| StackTop::find(&kept, time_ns, tid)), [None; 3]);
    }
}
