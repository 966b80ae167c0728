//! What was recorded of one run: samples with registers, mappings, allocations.
//!
//! The recorder fills it, the analyser reads it; it is written down while it grows, so that a recorder that
//! is killed loses nothing, and read again, so that an analysis can be repeated, tested on recorded runs,
//! and done on another machine. Nothing is interpreted here: addresses are those of the process that they
//! were seen in.

mod fault;
mod file;
mod instruction_counts;
mod lookahead;
mod ours;
mod processor;
mod signals;
mod stack_top;
mod window;

use std::collections::BTreeMap;

pub use fault::{FAULTS_PER_RECORD, Fault};
pub use file::{
    Beginning, MOST_STACKS, PORTION_RECORDS, Portion, VERSION, chunk_of, ending, is_recording, magic, next, version,
};

pub use instruction_counts::{CacheLines, CountedPart, Fetched, InstructionCounts, SimulatedCaches};
pub use lookahead::{BranchCount, Lookahead};
pub use ours::{PRELOAD_LIBRARY, is_ours};
pub use processor::{NearMemory, Processor};
use signals::signal_name;
pub use stack_top::{STACK_WORDS, StackTop};
use tierloom_model::Warning;
// Those that the kernel tells and that code is followed with.
pub use tierloom_binary::arch::{REGISTERS, register};
// Told by the preload library and kept as it came.
pub use tierloom_wire::Source;
pub use window::{BlockCount, Outcome, Touch, WarmUp, Which, Window};

/// Everything that was recorded of one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recording {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Process id of the program itself; its children have others.
    pub pid: u32,
    /// `CLOCK_MONOTONIC` when the program was let go, ns. All times of a recording are on this clock.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC` when it had ended, ns.
    pub end_ns: u64,
    /// How it ended; `None` where nobody saw it.
    pub exit: Option<Exit>,
    /// User + system CPU time of the program and the children that it waited for, s.
    pub cpu_s: f64,
    /// The system part of `cpu_s`, s: user samples do not cover it.
    pub system_s: f64,
    /// From start to end, s.
    pub wall_s: f64,
    /// CPU time that one sample stands for, ns.
    pub period_ns: f64,
    /// Most CPU time between two samples of a thread, ns, where they come after differently long times; 0 where they come
    /// every `period_ns`, and where nobody knows.
    pub longest_interval_ns: f64,
    /// What drove the samples.
    pub event: Event,
    /// Samples that were taken and could not be kept.
    pub lost: u64,
    /// What it ran on.
    pub processor: Processor,
    /// Runs of it without the recorder, before this one.
    pub unrecorded: Vec<UnrecordedRun>,
    /// Files of code and the builds that ran, by path.
    pub binaries: BTreeMap<String, String>,
    /// In time order.
    pub samples: Vec<Sample>,
    /// In time order: what some of the samples found on the stack. Empty in what other recorders wrote.
    pub stack_tops: Vec<StackTop>,
    /// In time order: accesses that the processor sampled.
    pub accesses: Vec<MemoryAccess>,
    /// In time order: stretches of time in which every block of code was counted.
    pub windows: Vec<Window>,
    /// In time order: what halted threads were about to do.
    pub lookaheads: Vec<Lookahead>,
    /// In time order: some of the page faults of user space, one in so many. Empty where the kernel does
    /// not tell, and in what other recorders wrote.
    pub faults: Vec<Fault>,
    /// In time order: which memory of a process had pages, at some moments; one moment's have one time. Empty in what
    /// other recorders wrote.
    pub residents: Vec<Resident>,
    /// In time order: how far the clocks of all processes were. Empty in what other recorders wrote.
    pub clocks: Vec<Clock>,
    /// In time order: mappings of files and anonymous memory as far as known. A later mapping
    /// replaces an earlier one where they overlap; a child starts with those of its parent.
    pub mappings: Vec<Mapping>,
    /// In time order: forks, execs (which drop all mappings), ends.
    pub processes: Vec<Process>,
    /// In time order.
    pub allocations: Vec<Allocation>,
    /// By stack id: return addresses, innermost first, absolute, of the process that used the id.
    pub stacks: Vec<Vec<u64>>,
    /// Allocation events that could not be kept.
    pub lost_allocations: u64,
    /// Skid of this machine under `event`.
    pub calibration: Calibration,
    /// CPU time that a sample takes from the thread that is sampled, ns; 0 where nobody measured.
    pub sample_cost_ns: f64,
    /// What a reader of the numbers must know.
    pub warnings: Vec<Warning>,
}

/// A run of the program that nobody recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnrecordedRun {
    /// From start to end, s.
    pub wall_s: f64,
    /// As a shell tells how it ended.
    pub exit_code: u8,
}

impl Recording {
    /// The part of all CPU time that taking samples took, 0 to 1; 0 where nobody measured what one takes.
    pub fn sample_share(&self) -> f64 {
        /// Whatever was measured, the program ran as well.
        const MOST: f64 = 0.5;
        if self.period_ns > 0.0 { (self.sample_cost_ns / self.period_ns).min(MOST) } else { 0.0 }
    }

    /// What came in any order, in the order of time; and an allocation whose stack was lost names an empty
    /// stack, so that every id can be looked up.
    pub fn put_in_order(&mut self) {
        self.samples.sort_by_key(|sample| sample.time_ns);
        self.windows.sort_by_key(|window| window.time_ns);
        self.lookaheads.sort_by_key(|lookahead| lookahead.time_ns);
        self.stack_tops.sort_by_key(|top| top.time_ns);
        self.faults.sort_by_key(|fault| fault.time_ns);
        self.residents.sort_by_key(|resident| resident.time_ns);
        self.clocks.sort_by_key(|clock| clock.time_ns);
        self.mappings.sort_by_key(|mapping| mapping.time_ns);
        self.processes.sort_by_key(|process| process.time_ns);
        self.allocations.sort_by_key(|allocation| allocation.time_ns);
        let empty = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        let mut used = false;
        for allocation in &mut self.allocations {
            if let AllocationEvent::Alloc { stack, .. } = &mut allocation.event
                && *stack >= empty
            {
                *stack = empty;
                used = true;
            }
        }
        if used {
            self.stacks.push(Vec::new());
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It returned this exit code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Exit {
    /// Of a process that returned this code, or that this signal killed.
    pub fn of(code: Option<i32>, signal: Option<i32>) -> Self {
        signal.map_or(Self::Code(code.unwrap_or(0)), Self::Signal)
    }

    /// What a shell would report: the code, or 128 + the signal.
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        }
    }

    /// Name of the signal that killed it.
    pub fn signal(self) -> Option<String> {
        match self {
            Exit::Code(_) => None,
            Exit::Signal(signal) => Some(signal_name(signal)),
        }
    }
}

/// What drove the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Event {
    /// `perf_event_open`, software event `cpu-clock`: CPU time of each thread.
    CpuClock,
    /// `ptrace`: threads that run were halted for a moment, each once in so much of its CPU time.
    Ptrace,
    /// The processor itself: memory accesses with their addresses (PEBS, IBS, SPE).
    MemoryAccess,
    /// Nothing: only allocations were recorded.
    #[default]
    None,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// User instructions of this thread since its previous sample; 0 = unknown.
    pub instructions: u64,
    /// Registers of user space, by [`register`].
    pub registers: [u64; REGISTERS],
    /// Taken inside the kernel: the registers are those at its entry, no user access was waiting.
    pub kernel: bool,
    /// Whether it was taken in a copy that counts.
    pub copy: InCopy,
}

/// Where a sample found its thread: in the program, or in a copy of its code that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InCopy {
    /// In the program, or in a copy that is slow anyway.
    #[default]
    No,
    /// In a copy, at an instruction of the program.
    Own,
    /// In a copy, at an instruction that was added.
    Added,
}

impl Sample {
    /// Instruction pointer.
    pub fn ip(&self) -> u64 {
        self.registers[register::IP]
    }
}

/// Where the data of an access came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSource {
    /// From memory, or, of a store, it missed the caches.
    pub memory: bool,
    /// From another node, from its memory or its caches.
    pub remote: bool,
    /// From another core's cache.
    pub shared: bool,
}

/// A memory access that the processor sampled (PEBS, IBS, SPE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryAccess {
    /// When, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Address that was read or written.
    pub address: u64,
    /// It wrote.
    pub store: bool,
    /// Where its data came from.
    pub source: DataSource,
    /// Cycles that it took; 0 = unknown.
    pub cycles: u64,
    /// Accesses that it stands for; 0 = unknown.
    pub period: u64,
}

/// What all threads of all processes together had used by a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// When, ns.
    pub time_ns: u64,
    /// User CPU time, ns.
    pub user_ns: u64,
    /// System CPU time, ns.
    pub system_ns: u64,
    /// Time in which they could have run and had no CPU because other programs did, ns.
    pub queued_ns: u64,
    /// Time in which the recorder held them, ns.
    pub held_ns: u64,
}

/// Which memory of a process had pages at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resident {
    /// When, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Stretches with pages, ascending by address.
    pub stretches: Vec<Stretch>,
}

/// Addresses of which some have pages, in memory or swapped out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// First address.
    pub start: u64,
    /// Bytes of addresses.
    pub bytes: u64,
    /// Bytes of them that have pages.
    pub present_bytes: u64,
}

/// A range of addresses got a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// When, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Offset of `start` in the file, bytes.
    pub file_offset: u64,
    /// Whether code can run there.
    pub executable: bool,
    /// Path of the file, or `//anon`, `[heap]`, `[stack]`, `[vdso]`.
    pub path: String,
}

/// A process came, changed or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// When, ns.
    pub time_ns: u64,
    /// Which.
    pub pid: u32,
    /// What happened.
    pub change: Change,
}

/// What happened to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was forked off this process and starts with its mappings.
    Fork {
        /// Process id of the parent.
        parent: u32,
    },
    /// It became another program: its earlier mappings and allocations are gone.
    Exec {
        /// First 15 bytes of the program's name.
        name: String,
    },
    /// It ended.
    Exit,
}

/// What the program asked of its allocator or of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// When, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// What.
    pub event: AllocationEvent,
}

/// What happened to a range of memory: of all that the preload library tells ([`tierloom_wire::Event`]) the part
/// that an analysis needs, so that a recording can hold nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationEvent {
    /// A range was handed out. Allocations of at least the threshold only.
    Alloc {
        /// First address.
        address: u64,
        /// Bytes asked for.
        bytes: u64,
        /// Position in [`Recording::stacks`].
        stack: u32,
        /// By what.
        source: Source,
    },
    /// A range that an `Alloc` named was given back.
    Free {
        /// First address.
        address: u64,
    },
    /// A range of addresses was unmapped; it may hold, cut or miss allocations.
    Unmap {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// What may be done with a range of addresses changed.
    Protect {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// It may be read or written now.
        accessible: bool,
    },
}

/// How far samples fall from the instruction that waited, measured on the machine of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Instructions between the waiting load and the sampled instruction pointer: 1 says that the
    /// sample names the next instruction.
    pub offset: u32,
    /// Share of samples exactly there, 0 to 1. Below 0.8 blame on the previous instruction is a guess.
    pub purity: f64,
    /// Samples that this rests on; 0 = not measured.
    pub samples: u32,
}

impl Default for Calibration {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Calibration {
    /// No measurement: the offset of every machine measured so far (Zen 3 under cpu-clock).
    pub const UNKNOWN: Self = Self { offset: 1, purity: 0.0, samples: 0 };

    /// Whether a sample tells which instruction waited: not where a measurement says otherwise.
    pub fn tells_instruction(&self) -> bool {
        const PURE: f64 = 0.8;
        self.samples == 0 || self.purity >= PURE
    }
}
