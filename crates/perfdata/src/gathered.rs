//! What every file tells beside its samples: what was mapped, which processes came and went, what was lost.

use std::collections::BTreeMap;

use tierloom_linux::perf::{Record, Sample};
use tierloom_model::Warning;
use tierloom_recording::{Change, Mapping, Process, Processor};

use crate::attributes::Attribute;
use crate::features::Features;
use crate::mapping_objects::{Anonymous, is_code_of};
use crate::programs::Program;
use crate::thread_stacks::{Mapped, ThreadStart, mark_stacks};

/// The records that are no samples, on their way into a recording.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    mapped: Vec<Mapped>,
    threads: Vec<ThreadStart>,
    pub(super) mappings: Vec<Mapping>,
    pub(super) processes: Vec<Process>,
    pub(super) lost: Losses,
    throttled: bool,
    /// Build ids by path, as far as mappings say them.
    build_ids: BTreeMap<String, String>,
}

/// What was taken and is not there.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Records that found no room.
    records: u64,
    /// Samples, as far as they are told by themselves.
    samples: u64,
    /// The events count all samples that they lost, those among them whose record found no room.
    told_twice: bool,
    /// Samples without registers of 64-bit user code.
    pub(super) without_registers: u64,
}

impl Losses {
    /// Every loss once: since Linux 6.1 `perf` asks each event in the end how many samples it lost
    /// (`PERF_FORMAT_LOST`), and writes that behind the kernel's own records of the same.
    pub(super) fn count(&self) -> u64 {
        let told = if self.told_twice { self.records.max(self.samples) } else { self.records + self.samples };
        told + self.without_registers
    }
}

impl Gathered {
    /// Takes a record; hands back a sample.
    pub(super) fn take(&mut self, event: &Attribute, record: Record) -> Option<Sample> {
        match record {
            Record::Sample(sample) => return Some(sample),
            Record::Mmap { pid, tid, time_ns, start, bytes, file_offset, executable, closed, path, build_id } => {
                if !build_id.is_empty() {
                    self.build_ids.insert(path.clone(), build_id);
                }
                let mapping = Mapping { time_ns, pid, start, bytes, file_offset, executable, path };
                self.mapped.push(Mapped { mapping, tid, closed });
            }
            Record::Exec { pid, time_ns, name } => self.change(time_ns, pid, Change::Exec { name }),
            Record::Fork { pid, parent, time_ns } => self.change(time_ns, pid, Change::Fork { parent }),
            Record::Thread { pid, parent_tid, time_ns, .. } => {
                self.threads.push(ThreadStart { pid, parent_tid, time_ns });
            }
            Record::Exit { pid, time_ns } => self.change(time_ns, pid, Change::Exit),
            Record::LostRecords(count) => self.lost.records = self.lost.records.saturating_add(count),
            Record::LostSamples(count) => {
                self.lost.samples = self.lost.samples.saturating_add(count);
                self.lost.told_twice |= event.counts_lost_samples();
            }
            Record::Throttled => self.throttled = true,
        }
        None
    }

    fn change(&mut self, time_ns: u64, pid: u32, change: Change) {
        self.processes.push(Process { time_ns, pid, change });
    }

    /// Everything in the order of time.
    pub(super) fn put_in_order(&mut self) {
        self.processes.sort_by_key(|process| process.time_ns);
        self.threads.sort_by_key(|thread| thread.time_ns);
        self.mapped.sort_by_key(|mapped| mapped.mapping.time_ns);
        mark_stacks(&mut self.mapped, &self.threads);
        // Address space that is kept free holds nothing; what of it is opened later is reported again.
        let held = std::mem::take(&mut self.mapped).into_iter().filter(|mapped| !mapped.is_reserved());
        self.mappings = held.map(|mapped| mapped.mapping).collect();
    }

    /// Leaves out what is of other programs, and gives mappings that stand for objects their names; how many there are.
    pub(super) fn keep(&mut self, program: &Program) -> usize {
        self.mappings.retain(|mapping| program.inherits_of(mapping.pid));
        self.processes.retain(|process| program.inherits_of(process.pid));
        let mut anonymous = Anonymous::default();
        self.mappings = std::mem::take(&mut self.mappings).into_iter().map(|mapping| anonymous.name(mapping)).collect();
        anonymous.count()
    }

    /// What a reader of the numbers must know.
    pub(super) fn warning(&self) -> Option<Warning> {
        self.throttled.then_some(Warning::Throttled)
    }

    /// When a process first ran a program.
    pub(super) fn start_ns(&self, pid: u32) -> Option<u64> {
        self.execs(pid).next()
    }

    fn execs(&self, pid: u32) -> impl DoubleEndedIterator<Item = u64> {
        let is_exec = move |process: &&Process| process.pid == pid && matches!(process.change, Change::Exec { .. });
        self.processes.iter().filter(is_exec).map(|process| process.time_ns)
    }

    /// When this process ended; 0 where nobody says.
    pub(super) fn end_ns(&self, pid: u32) -> u64 {
        let ends = self.processes.iter().filter(|process| process.pid == pid && process.change == Change::Exit);
        ends.map(|process| process.time_ns).max().unwrap_or(0)
    }

    /// The program's path and arguments: the path from its first mapping of code, since analysis compares it. What was
    /// mapped before its last exec was `perf`'s own, or a shell's.
    pub(super) fn command(&self, features: &Features, pid: u32) -> Vec<String> {
        let exec_ns = self.execs(pid).next_back().unwrap_or(0);
        let is_code = |mapping: &&Mapping| is_code_of(mapping, pid) && mapping.time_ns >= exec_ns;
        let typed = features.program().unwrap_or_default();
        let code = self.mappings.iter().find(is_code).map(|mapping| mapping.path.clone());
        let program = code.or_else(|| typed.first().cloned());
        program.into_iter().chain(typed.iter().skip(1).cloned()).collect()
    }

    /// The builds that ran, of the files that were mapped.
    pub(super) fn binaries(&self, features: &Features) -> BTreeMap<String, String> {
        let build_of = |path: &String| self.build_ids.get(path).or_else(|| features.build_ids.get(path));
        let known = self.mappings.iter().filter_map(|mapping| Some((&mapping.path, build_of(&mapping.path)?)));
        known.map(|(path, build_id)| (path.clone(), build_id.clone())).collect()
    }
}

/// The processor of the run, and a warning where its cache is not told.
pub(super) fn processor(features: &Features) -> (Processor, Option<Warning>) {
    let processor = features.processor();
    let assumed = Warning::CacheAssumed { bytes: processor.llc_bytes };
    (processor, (!features.tell_cache()).then_some(assumed))
}
