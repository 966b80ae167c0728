//! A stretch of time in which every block of code was counted.

/// A stretch of a thread's time in which every block that it ran was counted, or an attempt at one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// When it began, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Where the thread was then.
    pub address: u64,
    /// CPU time that it stands for, ns: from one attempt to the next, on average.
    pub stands_for_ns: u64,
    /// CPU time that it lasted, ns; 0 where nothing was counted.
    pub duration_ns: u64,
    /// What became of the time in which its caches were cold.
    pub warm_up: WarmUp,
    /// What came of it.
    pub outcome: Outcome,
    /// Blocks that were run, ascending by address.
    pub counts: Vec<BlockCount>,
    /// The stack pointer when it began.
    pub stack_pointer: u64,
    /// Where operands were, in a moment before anything was counted.
    pub touches: Vec<Touch>,
}

/// The first millisecond of a window, in which caches are cold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// It was counted with the rest.
    #[default]
    Counted,
    /// Counting began after it.
    LeftOut,
    /// And it took so much longer than the same work took later, ns.
    Longer(u64),
}

/// An operand, and where it was in a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// Address of its instruction.
    pub instruction: u64,
    /// Which of its operands.
    pub operand: Which,
    /// How often it was executed.
    pub executions: u64,
    /// Some of its addresses, evenly from first to last.
    pub addresses: Vec<u64>,
}

/// Which operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Which {
    /// The one that it names; of a gather it is the address that the lanes have in common.
    Named,
    /// What a string instruction reads.
    Source,
    /// Where a string instruction writes, or what it compares with.
    Destination,
    /// None of them: how often a string instruction is repeated at most, in the place of addresses.
    Rounds,
}

/// What came of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// It lasted as long as it should.
    #[default]
    Whole,
    /// The thread came to where nothing is counted: a system call, or code that was not copied yet.
    Cut,
    /// The thread was in code that could not be copied.
    NoCopy,
    /// The thread was in a system call.
    InCall,
}

/// How often a block of code was run in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCount {
    /// Address of its first instruction.
    pub start: u64,
    /// Bytes up to the first of its last instruction, and one more: instructions that begin there belong to it.
    pub bytes: u64,
    /// How often.
    pub executions: u64,
}
