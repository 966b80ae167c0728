//! What every file tells beside its samples: what was mapped, which processes came and went, what was lost.

use std::collections::BTreeMap;

use tierloom_linux::perf::{Record, Sample};
use tierloom_model::Warning;
use tierloom_recording::{Change, Mapping, Process};

use crate::attributes::Attribute;
use crate::features::Features;
use crate::mapping_objects::Anonymous;

/// The records that are no samples, on their way into a recording.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) mappings: Vec<Mapping>,
    pub(super) processes: Vec<Process>,
    pub(super) lost: Losses,
    throttled: bool,
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
            Record::Mmap { pid, time_ns, start, bytes, file_offset, executable, path } => {
                self.mappings.push(Mapping { time_ns, pid, start, bytes, file_offset, executable, path });
            }
            Record::Exec { pid, time_ns, name } => self.change(time_ns, pid, Change::Exec { name }),
            Record::Fork { pid, parent, time_ns } => self.change(time_ns, pid, Change::Fork { parent }),
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

    /// Everything in the order of time, and mappings that stand for objects with their names; how many there are.
    pub(super) fn put_in_order(&mut self) -> usize {
        self.mappings.sort_by_key(|mapping| mapping.time_ns);
        self.processes.sort_by_key(|process| process.time_ns);
        let mut anonymous = Anonymous::default();
        self.mappings = std::mem::take(&mut self.mappings).into_iter().map(|mapping| anonymous.name(mapping)).collect();
        anonymous.count()
    }

    /// What a reader of the numbers must know.
    pub(super) fn warning(&self) -> Option<Warning> {
        self.throttled.then_some(Warning::Throttled)
    }

    /// The process that was run, and when: the first exec.
    pub(super) fn first_program(&self) -> Option<(u32, u64)> {
        let exec = self.processes.iter().find(|process| matches!(process.change, Change::Exec { .. }));
        exec.map(|process| (process.pid, process.time_ns))
    }

    /// When this process ended; 0 where nobody says.
    pub(super) fn end_ns(&self, pid: u32) -> u64 {
        let ends = self.processes.iter().filter(|process| process.pid == pid && process.change == Change::Exit);
        ends.map(|process| process.time_ns).max().unwrap_or(0)
    }

    /// The program's path and arguments: the path from its first mapping of code, since analysis compares it.
    pub(super) fn command(&self, features: &Features, pid: u32) -> Vec<String> {
        let is_code = |mapping: &&Mapping| mapping.pid == pid && mapping.executable && mapping.path.starts_with('/');
        let typed = features.program().unwrap_or_default();
        let code = self.mappings.iter().find(is_code).map(|mapping| mapping.path.clone());
        let program = code.or_else(|| typed.first().cloned());
        program.into_iter().chain(typed.iter().skip(1).cloned()).collect()
    }

    /// The builds that ran, of the files that were mapped.
    pub(super) fn binaries(&self, features: &Features) -> BTreeMap<String, String> {
        let known = self.mappings.iter().filter_map(|mapping| features.build_ids.get_key_value(&mapping.path));
        known.map(|(path, build_id)| (path.clone(), build_id.clone())).collect()
    }
}
