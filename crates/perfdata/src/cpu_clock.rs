//! CPU-clock samples with user registers as a recording, to be worked out like our own.

use std::collections::BTreeMap;

use crate::Flaw;
use crate::file::PerfFile;
use crate::mapping_objects::Anonymous;
use crate::records::{Record, records};
use tierloom_model::Warning;
use tierloom_recording::{Calibration, Change, Event, Mapping, Process, Recording, Sample};

/// What to record instead.
const HINT: &str =
    "perf record -d -e cpu-clock:u --user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15 -- CMD";

/// The recording of a file.
pub(super) fn recording(file: &PerfFile<'_>) -> Result<Recording, Flaw> {
    let period_ns = period_ns(file)?;
    let mut gathered = Gathered::default();
    for record in records(&file.attributes, file.data)? {
        gathered.take(record);
    }
    if gathered.samples.is_empty() {
        return Err(Flaw::new("it holds no sample with registers of 64-bit user code", HINT));
    }
    Ok(gathered.finish(file, period_ns))
}

/// CPU time a sample stands for; all events must be clocks with all registers.
fn period_ns(file: &PerfFile<'_>) -> Result<f64, Flaw> {
    let clocks = file.attributes.iter().map(crate::attributes::Attribute::clock_period_ns);
    let Some(period_ns) = clocks.collect::<Option<Vec<f64>>>().and_then(|all| all.first().copied()) else {
        return Err(Flaw::new("its samples are of another event than cpu-clock", HINT));
    };
    let timed = crate::attributes::bit::TID | crate::attributes::bit::TIME;
    if !file.attributes.iter().all(|attribute| attribute.has_all_registers() && attribute.has(timed)) {
        return Err(Flaw::new("its samples lack registers of user space, threads or times", HINT));
    }
    Ok(period_ns)
}

/// The records, on their way into a recording.
#[derive(Debug, Default)]
struct Gathered {
    samples: Vec<Sample>,
    mappings: Vec<Mapping>,
    processes: Vec<Process>,
    lost: u64,
    without_registers: u64,
}

impl Gathered {
    fn take(&mut self, record: Record) {
        match record {
            Record::Sample(raw) => match raw.registers {
                Some(registers) => self.samples.push(Sample {
                    time_ns: raw.time_ns,
                    pid: raw.pid,
                    tid: raw.tid,
                    instructions: 0,
                    registers,
                    kernel: raw.kernel,
                }),
                None => self.without_registers += 1,
            },
            Record::Mapping(mapping) => self.mappings.push(mapping),
            Record::Process(process) => self.processes.push(process),
            Record::Lost(count) => self.lost += count,
        }
    }

    fn finish(mut self, file: &PerfFile<'_>, period_ns: f64) -> Recording {
        self.samples.sort_by_key(|sample| sample.time_ns);
        self.mappings.sort_by_key(|mapping| mapping.time_ns);
        self.processes.sort_by_key(|process| process.time_ns);
        let mut anonymous = Anonymous::default();
        let mappings: Vec<Mapping> = self.mappings.into_iter().map(|mapping| anonymous.name(mapping)).collect();
        let (pid, start_ns) = first_program(&self.processes, &self.samples);
        let end_ns = end_ns(&self.processes, pid).max(self.samples.last().map_or(0, |sample| sample.time_ns));
        let lost = self.lost + self.without_registers;
        let mut warnings = vec![Warning::NoAllocations];
        if anonymous.count() == 0 {
            warnings.push(Warning::NoDataMappings);
        }
        Recording {
            command: command(file, &mappings, pid),
            pid,
            start_ns,
            end_ns: end_ns.max(start_ns),
            exit: None,
            cpu_s: self.samples.len() as f64 * period_ns * 1e-9,
            system_s: 0.0,
            wall_s: end_ns.saturating_sub(start_ns) as f64 * 1e-9,
            period_ns,
            event: Event::CpuClock,
            lost,
            processor: file.features.processor(),
            binaries: binaries_of(&mappings, &file.features.build_ids),
            samples: self.samples,
            accesses: Vec::new(),
            faults: Vec::new(),
            mappings,
            processes: self.processes,
            allocations: Vec::new(),
            stacks: Vec::new(),
            lost_allocations: 0,
            calibration: Calibration::UNKNOWN,
            warnings,
        }
    }
}

/// The process that was run, and when: the first exec, else the first sample's.
pub(super) fn first_program(processes: &[Process], samples: &[Sample]) -> (u32, u64) {
    let exec = processes.iter().find(|process| matches!(process.change, Change::Exec { .. }));
    let sample = samples.first().map(|sample| (sample.pid, sample.time_ns));
    exec.map(|process| (process.pid, process.time_ns)).or(sample).unwrap_or_default()
}

fn end_ns(processes: &[Process], pid: u32) -> u64 {
    let ends = processes.iter().filter(|process| process.pid == pid && process.change == Change::Exit);
    ends.map(|process| process.time_ns).max().unwrap_or(0)
}

/// The program's path and arguments: the path from its first mapping of code, since analysis compares it.
pub(super) fn command(file: &PerfFile<'_>, mappings: &[Mapping], pid: u32) -> Vec<String> {
    let code =
        mappings.iter().find(|mapping| mapping.pid == pid && mapping.executable && mapping.path.starts_with('/'));
    let typed = file.features.program().unwrap_or_default();
    let program = code.map(|mapping| mapping.path.clone()).or_else(|| typed.first().cloned());
    program.into_iter().chain(typed.iter().skip(1).cloned()).collect()
}

/// The builds that ran, of the files that were mapped.
pub(super) fn binaries_of(mappings: &[Mapping], build_ids: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let known = mappings.iter().filter_map(|mapping| build_ids.get_key_value(&mapping.path));
    known.map(|(path, build_id)| (path.clone(), build_id.clone())).collect()
}
