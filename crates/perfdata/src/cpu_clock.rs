//! CPU-clock samples with user registers as a recording, to be worked out like our own.

use std::io::{Read, Seek};

use tierloom_linux::perf;
use tierloom_model::Warning;
use tierloom_recording::{Calibration, Event, InCopy, Recording, Sample};

use crate::attributes::{Attribute, Events};
use crate::error::Flaw;
use crate::file::PerfFile;
use crate::gathered::Gathered;

/// What to record instead.
const HINT: &str =
    "perf record -d -e cpu-clock:u --user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15 -- CMD";

/// The recording of a file.
pub(super) fn recording(mut file: PerfFile<impl Read + Seek>) -> Result<Recording, Flaw> {
    let period_ns = period_ns(&file.events)?;
    let (mut gathered, mut samples) = (Gathered::default(), Vec::new());
    file.records(|event, record| match gathered.take(event, record).map(kept) {
        Some(Some(sample)) => samples.push(sample),
        Some(None) => gathered.lost.without_registers += 1,
        None => {}
    })?;
    if samples.is_empty() {
        return Err(Flaw::new("it holds no sample with registers of 64-bit user code", HINT));
    }
    samples.sort_by_key(|sample| sample.time_ns);
    let objects = gathered.put_in_order();
    let (pid, start_ns) = gathered.first_program().unwrap_or((samples[0].pid, samples[0].time_ns));
    let end_ns = gathered.end_ns(pid).max(samples[samples.len() - 1].time_ns).max(start_ns);
    let no_data = (objects == 0).then_some(Warning::NoDataMappings);
    Ok(Recording {
        command: gathered.command(&file.features, pid),
        pid,
        start_ns,
        end_ns,
        cpu_s: samples.len() as f64 * period_ns * 1e-9,
        wall_s: end_ns.saturating_sub(start_ns) as f64 * 1e-9,
        period_ns,
        event: Event::CpuClock,
        lost: gathered.lost.count(),
        processor: file.features.processor(),
        binaries: gathered.binaries(&file.features),
        samples,
        warnings: [Warning::NoAllocations].into_iter().chain(no_data).chain(gathered.warning()).collect(),
        mappings: gathered.mappings,
        processes: gathered.processes,
        calibration: Calibration::UNKNOWN,
        ..Recording::default()
    })
}

/// `None` without registers.
fn kept(sample: perf::Sample) -> Option<Sample> {
    let perf::Sample { time_ns, pid, tid, kernel, .. } = sample;
    sample.registers.map(|registers| Sample { time_ns, pid, tid, instructions: 0, registers, kernel, copy: InCopy::No })
}

/// CPU time a sample stands for; all events must be clocks with all registers.
fn period_ns(events: &Events) -> Result<f64, Flaw> {
    let Some(period_ns) = events.clock_period_ns() else {
        return Err(Flaw::new("its samples are of another event than cpu-clock", HINT));
    };
    if !events.all(Attribute::has_registers_of_threads) {
        return Err(Flaw::new("its samples lack registers of user space, threads or times", HINT));
    }
    Ok(period_ns)
}
