//! What the kernel's records say, in our words: `include/uapi/linux/perf_event.h`, "enum `perf_event_type`".

/// Registers of a sample: AX BX CX DX SI DI BP SP IP FLAGS R8..R15.
pub const REGISTERS: usize = 18;

/// Words of the stack that a sample keeps of those that it brings.
pub const STACK_WORDS: usize = 64;

/// One sample; what its event does not take is 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// When, ns, on the clock of its event.
    pub time_ns: u64,
    /// CPU.
    pub cpu: u32,
    /// Address of the instruction that it interrupted.
    pub instruction: u64,
    /// Address that was read or written.
    pub address: u64,
    /// Events that it stands for.
    pub period: u64,
    /// Second of a group of counters that was read with it: user instructions of this thread on this CPU so far.
    pub instructions: u64,
    /// Latency in cycles, as the hardware reports it.
    pub weight: u64,
    /// Where the data came from: `union perf_mem_data_src`.
    pub source: u64,
    /// Registers of 64-bit code of user space; a sample of 32-bit code or of a thread without any has none.
    pub registers: Option<[u64; REGISTERS]>,
    /// Words of the stack, from the stack pointer on, where its event takes them and there are so many.
    pub stack: Option<Box<[u64; STACK_WORDS]>>,
    /// Taken in the kernel.
    pub kernel: bool,
}

/// One page fault of user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Process.
    pub pid: u32,
    /// When, ns.
    pub time_ns: u64,
    /// Address of the instruction that read or wrote it.
    pub instruction: u64,
    /// Address that was read or written.
    pub address: u64,
}

/// One record of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The event overflowed.
    Sample(Sample),
    /// Memory of user space was mapped.
    Mmap {
        /// Process.
        pid: u32,
        /// Thread that mapped it.
        tid: u32,
        /// When, ns.
        time_ns: u64,
        /// First address.
        start: u64,
        /// Bytes.
        bytes: u64,
        /// Offset in the file, bytes.
        file_offset: u64,
        /// Whether code can run there.
        executable: bool,
        /// Whether nobody may touch it (`PROT_NONE`); records of before Linux 3.16 do not say.
        closed: bool,
        /// Path, `//anon`, `[heap]`, `[stack]`, `[vdso]`.
        path: String,
        /// Build id of the file in hexadecimal; empty where the record has an inode in its place.
        build_id: String,
    },
    /// A process began to run another program.
    Exec {
        /// Process.
        pid: u32,
        /// When, ns.
        time_ns: u64,
        /// First 15 bytes of the program's name.
        name: String,
    },
    /// A process (not only a thread) was forked.
    Fork {
        /// Process.
        pid: u32,
        /// Its parent.
        parent: u32,
        /// When, ns.
        time_ns: u64,
    },
    /// A thread of a process started another.
    Thread {
        /// Process.
        pid: u32,
        /// The new thread.
        tid: u32,
        /// The one that started it.
        parent_tid: u32,
        /// When, ns.
        time_ns: u64,
    },
    /// The main thread of a process ended.
    Exit {
        /// Process.
        pid: u32,
        /// When, ns.
        time_ns: u64,
    },
    /// So many records of any kind found no room in the ring.
    LostRecords(u64),
    /// So many samples were not even made into records.
    LostSamples(u64),
    /// The kernel held samples back because they took too long.
    Throttled,
}
