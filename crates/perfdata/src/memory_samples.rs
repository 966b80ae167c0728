//! Memory samples (PEBS, IBS, SPE by `perf mem record`) as a recording: each names a data address, where the
//! data came from, and how many cycles it took.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use tierloom_linux::perf::Sample;
use tierloom_model::Warning;
use tierloom_recording::{Calibration, Event, MemoryAccess, Recording};

use crate::attributes::{Attribute, Events, Period};
use crate::cpu_time::damaged;
use crate::data_source::decoded;
use crate::error::Flaw;
use crate::file::PerfFile;
use crate::gathered::{Gathered, processor};
use crate::programs::Processes;

/// The recording of a file of memory samples; `None` where no sample of it says load or store. `wanted` is a process.
pub(super) fn recording(
    file: &mut PerfFile<impl Read + Seek>,
    wanted: Option<&str>,
) -> Result<Option<Recording>, Flaw> {
    let (mut gathered, mut accesses, mut used) = (Gathered::default(), Vec::new(), Used::default());
    file.records(|events, event, record| {
        let sample = gathered.take(event, record).filter(|sample| event.says_sources() && sample.address != 0);
        let period = sample.as_ref().map(|sample| events.period(event, sample.period));
        let taken = sample.zip(period).and_then(|(sample, period)| access(&sample, period));
        taken.iter().zip(period).for_each(|(_, period)| used.add(event, period));
        accesses.extend(taken);
    })?;
    if accesses.is_empty() {
        return Ok(None);
    }
    gathered.put_in_order();
    let sampled = sampled(&accesses);
    let program = Processes::new(&gathered.processes, &gathered.mappings, &sampled).choose(wanted)?;
    accesses.retain(|access| program.is_of(access.pid));
    accesses.sort_by_key(|access| access.time_ns);
    gathered.keep(&program);
    let (pid, count) = (program.pid, accesses.len());
    let (first_ns, last_ns) = (accesses[0].time_ns, accesses[count - 1].time_ns);
    let start_ns = gathered.start_ns(pid).unwrap_or(first_ns).min(first_ns);
    let end_ns = gathered.end_ns(pid).max(last_ns);
    let wall_s = end_ns.saturating_sub(start_ns) as f64 * 1e-9;
    let (processor, cache) = processor(&file.features);
    let damaged = file.damaged_at.map(|byte| damaged(byte, wall_s, count));
    let told = [damaged, program.warning.clone(), gathered.warning(), cache];
    let told = told.into_iter().flatten().chain(used.warnings(&file.events));
    Ok(Some(Recording {
        command: gathered.command(&file.features, pid),
        pid,
        start_ns,
        end_ns,
        cpu_s: wall_s * f64::from(threads_of(&accesses)),
        wall_s,
        event: Event::MemoryAccess,
        lost: gathered.lost.count(),
        binaries: gathered.binaries(&file.features),
        processor,
        accesses,
        warnings: [Warning::NoAllocations].into_iter().chain(told).collect(),
        mappings: gathered.mappings,
        processes: gathered.processes,
        calibration: Calibration::UNKNOWN,
        ..Recording::default()
    }))
}

/// `None` of what is no access.
fn access(sample: &Sample, period: Period) -> Option<MemoryAccess> {
    let (store, source) = decoded(sample.source)?;
    let (&Sample { time_ns, pid, tid, address, weight: cycles, .. }, period) = (sample, known(period));
    Some(MemoryAccess { time_ns, pid, tid, address, store, source, cycles, period })
}

/// 0 where nobody says.
fn known(period: Period) -> u64 {
    match period {
        Period::Said(count) | Period::Operations(count) => count,
        Period::Unknown => 0,
    }
}

/// The events that gave samples, by their places, and how their samples count.
#[derive(Debug, Default)]
struct Used {
    events: BTreeSet<usize>,
    /// Those whose samples do not say what they stand for, and what the file says in their place.
    without_period: BTreeMap<usize, Option<u64>>,
}

impl Used {
    fn add(&mut self, event: &Attribute, period: Period) {
        self.events.insert(event.place);
        match period {
            Period::Said(_) => {}
            Period::Operations(count) => drop(self.without_period.insert(event.place, Some(count))),
            Period::Unknown => drop(self.without_period.insert(event.place, None)),
        }
    }

    /// What the samples of these events do not tell.
    fn warnings(&self, events: &Events) -> Vec<Warning> {
        let used = events.iter().filter(|event| self.events.contains(&event.place));
        used.flat_map(|event| self.warnings_of(event)).collect()
    }

    fn warnings_of(&self, event: &Attribute) -> Vec<Warning> {
        let name = || event.name.clone();
        let threshold = event.latency_threshold().map(|cycles| Warning::LatencyThreshold { event: name(), cycles });
        let by_cycles = event.samples_by_cycles().then(|| Warning::PeriodInCycles { event: name() });
        let period = self.without_period.get(&event.place).map(|said| match said {
            Some(operations) => Warning::PeriodOfOperations { event: name(), operations: *operations },
            None => Warning::PeriodUnknown { event: name() },
        });
        [threshold, by_cycles, period].into_iter().flatten().collect()
    }
}

fn sampled(accesses: &[MemoryAccess]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for access in accesses {
        *counts.entry(access.pid).or_default() += 1;
    }
    counts
}

/// Threads with at least a hundredth of the samples.
fn threads_of(samples: &[MemoryAccess]) -> u32 {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for sample in samples {
        *counts.entry(sample.tid).or_default() += 1;
    }
    let busy = counts.values().filter(|count| **count * 100 >= samples.len()).count();
    u32::try_from(busy).unwrap_or(u32::MAX).max(1)
}
