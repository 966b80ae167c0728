//! Samples of CPU time with user registers as a recording, to be worked out like our own: of a clock, or of cycles at
//! the processor's clock.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use tierloom_linux::perf;
use tierloom_model::Warning;
use tierloom_recording::{Calibration, Event, InCopy, Recording, Sample};

use crate::attributes::{Attribute, Events, Period};
use crate::equal_time::evened;
use crate::error::Flaw;
use crate::features::{Features, Trace};
use crate::file::PerfFile;
use crate::gathered::{Gathered, processor};
use crate::programs::Processes;

/// What to record instead.
const HINT: &str =
    "perf record -d -e cpu-clock:u --user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15 -- CMD";
/// The same where code cannot be followed.
const HINT_OF_OTHERS: &str = "perf mem record -- CMD, on a machine whose processor samples memory accesses";
const HINT_OF_SPE: &str = "perf inject --itrace=M -i {file} -o injected.data";
/// Clock where the file does not state one: base clocks of servers of 2020 to 2025 are 2 to 3 GHz. Assumed.
const CLOCK_GHZ: f64 = 2.5;

/// The recording of a file; `wanted` is a process of it.
pub(super) fn recording(file: &mut PerfFile<impl Read + Seek>, wanted: Option<&str>) -> Result<Recording, Flaw> {
    let unit = unit(file)?;
    let (mut gathered, mut taken) = (Gathered::default(), Vec::new());
    file.records(|events, event, record| {
        let Some(sample) = gathered.take(event, record).filter(|_| unit.drives(event)) else { return };
        let ns = unit.ns(events, event, &sample);
        match kept(&sample) {
            Some(sample) => taken.push((sample, ns)),
            None => gathered.lost.without_registers += 1,
        }
    })?;
    if taken.is_empty() {
        return Err(no_sample(file));
    }
    let clock = unit.outrun(&mut taken).or_else(|| unit.warning());
    gathered.put_in_order();
    let sampled = sampled(&taken);
    let program = Processes::new(&gathered.processes, &gathered.mappings, &sampled).choose(wanted)?;
    taken.retain(|(sample, _)| program.is_of(sample.pid));
    taken.sort_by_key(|(sample, _)| sample.time_ns);
    let objects = gathered.keep(&program);
    let (pid, count) = (program.pid, taken.len());
    let (first_ns, last_ns) = (taken[0].0.time_ns, taken[count - 1].0.time_ns);
    let start_ns = gathered.start_ns(pid).unwrap_or(first_ns).min(first_ns);
    let end_ns = gathered.end_ns(pid).max(last_ns);
    let cpu_s = taken.iter().map(|(_, ns)| ns).sum::<f64>() * 1e-9;
    let samples = evened(taken);
    let wall_s = end_ns.saturating_sub(start_ns) as f64 * 1e-9;
    let (processor, cache) = processor(&file.features);
    let no_data = (objects == 0).then_some(Warning::NoDataMappings);
    let damaged = file.damaged_at.map(|byte| damaged(byte, wall_s, count));
    let told = [damaged, program.warning.clone(), no_data, gathered.warning(), clock, cache];
    Ok(Recording {
        command: gathered.command(&file.features, pid),
        pid,
        start_ns,
        end_ns,
        cpu_s,
        wall_s,
        period_ns: cpu_s * 1e9 / samples.len() as f64,
        event: Event::CpuClock,
        lost: gathered.lost.count(),
        processor,
        binaries: gathered.binaries(&file.features),
        samples,
        warnings: [Warning::NoAllocations].into_iter().chain(told.into_iter().flatten()).collect(),
        mappings: gathered.mappings,
        processes: gathered.processes,
        calibration: Calibration::UNKNOWN,
        ..Recording::default()
    })
}

/// What a file ends with that was cut.
pub(super) fn damaged(byte: u64, wall_s: f64, samples: usize) -> Warning {
    Warning::Damaged { byte: usize::try_from(byte).unwrap_or(usize::MAX), wall_s, samples }
}

fn sampled(taken: &[(Sample, f64)]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for (sample, _) in taken {
        *counts.entry(sample.pid).or_default() += 1;
    }
    counts
}

/// `None` without registers.
fn kept(sample: &perf::Sample) -> Option<Sample> {
    let &perf::Sample { time_ns, pid, tid, kernel, .. } = sample;
    sample.registers.map(|registers| Sample { time_ns, pid, tid, instructions: 0, registers, kernel, copy: InCopy::No })
}

fn no_sample(file: &PerfFile<impl Read + Seek>) -> Flaw {
    match file.damaged_at {
        Some(byte) => Flaw::damaged(&format!("byte {byte}, before any sample with registers of 64-bit user code,")),
        None => Flaw::new("it holds no sample with registers of 64-bit user code", HINT),
    }
}

/// What the samples count.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Clock,
    Cycles { ghz: f64, stated: bool },
}

impl Unit {
    /// Whether samples of this event are such.
    fn drives(self, event: &Attribute) -> bool {
        match self {
            Unit::Clock => event.clock_period_ns().is_some(),
            Unit::Cycles { .. } => event.counts_cycles() && event.has_registers_of_threads(),
        }
    }

    /// CPU time that a sample stands for, ns.
    fn ns(self, events: &Events, event: &Attribute, sample: &perf::Sample) -> f64 {
        match (self, events.period(event, sample.period)) {
            (Unit::Clock, _) => event.clock_period_ns().unwrap_or(0.0),
            (Unit::Cycles { ghz, .. }, Period::Said(cycles) | Period::Operations(cycles)) => cycles as f64 / ghz,
            (Unit::Cycles { .. }, Period::Unknown) => 0.0,
        }
    }

    fn warning(self) -> Option<Warning> {
        match self {
            Unit::Clock => None,
            Unit::Cycles { ghz, stated } => Some(Warning::CyclesAsTime { ghz, stated }),
        }
    }

    /// Where samples prove a faster clock (no thread has more CPU time than time goes by), their times become those of
    /// that clock, and the warning says so.
    fn outrun(self, taken: &mut [(Sample, f64)]) -> Option<Warning> {
        let (Unit::Cycles { ghz, .. }, busiest) = (self, busiest(taken)) else { return None };
        if busiest <= 1.0 {
            return None;
        }
        for (_, ns) in taken {
            *ns /= busiest;
        }
        Some(Warning::CyclesFaster { ghz: ghz * busiest, expected_ghz: ghz })
    }
}

/// The largest part of its time, from its first sample to its last, that a thread's samples come to. Each stands for what
/// ran before it, so the first is not counted; of fewer than these, the last one's skid is more than a hundredth.
fn busiest(taken: &[(Sample, f64)]) -> f64 {
    const LEAST_SAMPLES: usize = 100;
    let mut threads: BTreeMap<(u32, u32), Vec<(u64, f64)>> = BTreeMap::new();
    for (sample, ns) in taken {
        threads.entry((sample.pid, sample.tid)).or_default().push((sample.time_ns, *ns));
    }
    let parts = threads.into_values().filter(|samples| samples.len() >= LEAST_SAMPLES).map(|mut samples| {
        samples.sort_by_key(|(time_ns, _)| *time_ns);
        let whole = samples[samples.len() - 1].0 - samples[0].0;
        let ran: f64 = samples[1..].iter().map(|(_, ns)| ns).sum();
        if whole > 0 { ran / whole as f64 } else { 0.0 }
    });
    parts.fold(0.0, f64::max)
}

/// A clock with all registers, or else cycles with them.
fn unit(file: &PerfFile<impl Read + Seek>) -> Result<Unit, Flaw> {
    refuse_others(file)?;
    let has_clock = file.events.iter().any(|event| event.clock_period_ns().is_some());
    let mut timed = file.events.iter().filter(|event| event.clock_period_ns().is_some() || event.counts_cycles());
    match timed.next() {
        None => Err(unusable(file)),
        Some(first) if !std::iter::once(first).chain(timed).any(Attribute::has_registers_of_threads) => {
            Err(without_registers(&file.events))
        }
        Some(_) if has_clock => Ok(Unit::Clock),
        Some(_) => Ok(cycles(&file.features)),
    }
}

fn cycles(features: &Features) -> Unit {
    let stated = features.processor().stated_ghz();
    Unit::Cycles { ghz: stated.unwrap_or(CLOCK_GHZ), stated: stated.is_some() }
}

fn without_registers(events: &Events) -> Flaw {
    let says_none = events.iter().any(Attribute::says_sources).then_some("say neither load nor store, and ");
    let names = events.names();
    let lack = says_none.unwrap_or_default();
    Flaw::new(format!("its samples ({names}) {lack}lack registers of user space, threads or times"), HINT)
}

fn unusable(file: &PerfFile<impl Read + Seek>) -> Flaw {
    let (events, names) = (&file.events, file.events.names());
    let may_be_memory = events.iter().any(Attribute::says_sources);
    if let Some(byte) = file.damaged_at.filter(|_| may_be_memory) {
        return Flaw::damaged(&format!("byte {byte}, before any sample of a load or store,"));
    }
    if may_be_memory {
        let problem = format!("its samples are of {names}, and the data source of none says load or store");
        return Flaw::new(problem, HINT_OF_OTHERS);
    }
    Flaw::new(format!("its samples are of {names}, which is neither cpu-clock nor cycles nor memory accesses"), HINT)
}

/// A file of another architecture, or with another's registers, has no code that we follow; nor has a trace samples.
fn refuse_others(file: &PerfFile<impl Read + Seek>) -> Result<(), Flaw> {
    let features = &file.features;
    match features.trace {
        Some(Trace::ArmSpe) => {
            let problem = "it holds a trace of Arm's sampling extension (SPE), and no samples made of it";
            return Err(Flaw::new(problem, HINT_OF_SPE));
        }
        Some(Trace::Other) => {
            return Err(Flaw::new("it holds the processor's own trace of its branches, and no samples", HINT));
        }
        None => {}
    }
    let said = Some(features.architecture.as_str()).filter(|name| !name.is_empty());
    let foreign =
        said.map_or_else(|| file.events.iter().any(Attribute::has_registers_of_others), |name| name != "x86_64");
    if foreign {
        let architecture = said.unwrap_or("another architecture than x86-64");
        let problem = format!("its samples are of code of {architecture}, and only that of x86-64 is followed");
        return Err(Flaw::new(problem, hint_of(architecture)));
    }
    Ok(())
}

/// What can be recorded there.
fn hint_of(architecture: &str) -> &'static str {
    if architecture == "aarch64" {
        "perf mem record -- CMD, and then: perf inject --itrace=M -i perf.data -o injected.data"
    } else {
        HINT_OF_OTHERS
    }
}
