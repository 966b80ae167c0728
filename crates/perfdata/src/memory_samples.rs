//! Memory samples (PEBS, IBS, SPE by `perf mem record`) as a recording: each names a data address, where the
//! data came from, and for loads how many cycles they took.
//!
//! Never tried on a file from real PEBS or IBS hardware: written after the kernel's headers
//! (`union perf_mem_data_src`) and tested with files that our own tests wrote.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use tierloom_linux::perf::Sample;
use tierloom_model::Warning;
use tierloom_recording::{Calibration, Event, MemoryAccess, Recording};

use crate::error::Flaw;
use crate::file::PerfFile;
use crate::gathered::Gathered;

const HINT: &str = "perf mem record -- CMD on a machine whose processor samples memory accesses (PEBS, IBS, SPE)";

/// Fields of `union perf_mem_data_src` (`include/uapi/linux/perf_event.h`).
mod source {
    pub(super) const OP_LOAD: u64 = 0x02;
    pub(super) const OP_STORE: u64 = 0x04;
    pub(super) const LEVEL_SHIFT: u32 = 5;
    /// Local and remote RAM in the older field of levels.
    pub(super) const LEVEL_RAM: u64 = 0x80 | 0x100 | 0x200;
    pub(super) const LEVEL_MISS: u64 = 0x04;
    pub(super) const NUMBER_SHIFT: u32 = 33;
    /// CXL, RAM and persistent memory in the newer field.
    pub(super) const NUMBER_MEMORY: [u64; 3] = [0x09, 0x0d, 0x0e];
    pub(super) const NUMBER_NONE: u64 = 0x0f;
}

/// Where a sample's data came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DataSource {
    store: bool,
    /// It came from memory, or a store missed.
    memory: bool,
}

impl DataSource {
    /// Decodes the word; one without an operation is a load, as events that only sample loads leave it.
    fn of(word: u64) -> Self {
        let store = word & source::OP_STORE != 0 && word & source::OP_LOAD == 0;
        let levels = (word >> source::LEVEL_SHIFT) & 0x3fff;
        let number = (word >> source::NUMBER_SHIFT) & 0xf;
        let numbered = number != 0 && number != source::NUMBER_NONE;
        let from_memory =
            if numbered { source::NUMBER_MEMORY.contains(&number) } else { levels & source::LEVEL_RAM != 0 };
        Self { store, memory: from_memory || (store && levels & source::LEVEL_MISS != 0) }
    }
}

/// The recording of a file of memory samples.
pub(super) fn recording(mut file: PerfFile<impl Read + Seek>) -> Result<Recording, Flaw> {
    let (mut gathered, mut accesses) = (Gathered::default(), Vec::new());
    file.records(|event, record| {
        let sample = gathered.take(event, record).filter(|sample| event.samples_memory() && sample.address != 0);
        accesses.extend(sample.as_ref().map(access));
    })?;
    if accesses.is_empty() {
        return Err(Flaw::new("it holds no sample of a data address", HINT));
    }
    accesses.sort_by_key(|access| access.time_ns);
    gathered.put_in_order();
    let (first, last) = (accesses[0].time_ns, accesses[accesses.len() - 1].time_ns);
    let (pid, start_ns) = gathered.first_program().unwrap_or((accesses[0].pid, first));
    let start_ns = start_ns.min(first);
    let wall_s = last.saturating_sub(start_ns) as f64 * 1e-9;
    Ok(Recording {
        command: gathered.command(&file.features, pid),
        pid,
        start_ns,
        end_ns: last,
        cpu_s: wall_s * f64::from(threads_of(&accesses)),
        wall_s,
        event: Event::MemoryAccess,
        lost: gathered.lost.count(),
        binaries: gathered.binaries(&file.features),
        processor: file.features.processor(),
        accesses,
        warnings: [Warning::NoAllocations].into_iter().chain(gathered.warning()).collect(),
        mappings: gathered.mappings,
        processes: gathered.processes,
        calibration: Calibration::UNKNOWN,
        ..Recording::default()
    })
}

fn access(sample: &Sample) -> MemoryAccess {
    let from = DataSource::of(sample.source);
    MemoryAccess {
        time_ns: sample.time_ns,
        pid: sample.pid,
        tid: sample.tid,
        address: sample.address,
        store: from.store,
        memory: from.memory,
        cycles: sample.weight,
        period: sample.period,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_decoded_as_the_kernels_header_lays_them_out() {
        let old = |op: u64, level: u64| DataSource::of(op | level << source::LEVEL_SHIFT);
        let new = |op: u64, number: u64| DataSource::of(op | number << source::NUMBER_SHIFT);
        assert_eq!(old(source::OP_LOAD, 0x80 | 0x02), DataSource { store: false, memory: true });
        assert_eq!(old(source::OP_LOAD, 0x08 | 0x02), DataSource { store: false, memory: false });
        assert_eq!(old(source::OP_STORE, 0x08 | 0x04), DataSource { store: true, memory: true });
        assert_eq!(new(source::OP_LOAD, 0x09), DataSource { store: false, memory: true });
        assert_eq!(new(source::OP_LOAD, 0x03), DataSource { store: false, memory: false });
        assert_eq!(new(source::OP_LOAD, 0x0f), DataSource { store: false, memory: false });
    }
}
