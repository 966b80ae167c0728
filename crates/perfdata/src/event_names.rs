//! What the events of a file are called, and which units of the processor count them.

use std::collections::BTreeMap;

use tierloom_linux::perf::Fields;

use crate::text::string;

/// Of `PERF_RECORD_EVENT_UPDATE` (`tools/lib/perf/include/perf/event.h`): it brings a name.
const UPDATE_OF_NAME: u64 = 2;
/// `PERF_TYPE_…` and their events, in the order of their numbers (`include/uapi/linux/perf_event.h`).
const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
const SOFTWARE: [&str; 11] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
];

/// What the file calls its events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EventNames {
    /// By the ids of their records.
    pub(super) by_id: BTreeMap<u64, String>,
    /// Names of the processor's units by kind of event.
    pub(super) units: BTreeMap<u32, String>,
}

impl EventNames {
    /// `HEADER_EVENT_DESC`: how many, the length of an attribute, then attribute, name and ids of each.
    pub(super) fn take_descriptions(&mut self, mut part: Fields<'_>) -> Option<()> {
        let (count, length) = (part.u32()?, part.u32()?);
        for _ in 0..count {
            part.skip(u64::from(length))?;
            let ids = part.u32()?;
            let name = string(&mut part)?;
            for _ in 0..ids {
                self.by_id.insert(part.u64()?, name.clone());
            }
        }
        Some(())
    }

    /// `PERF_RECORD_EVENT_UPDATE`: what is new, the event's id, and here its name.
    pub(super) fn take_update(&mut self, mut body: Fields<'_>) -> Option<()> {
        let (what, id) = (body.u64()?, body.u64()?);
        if what == UPDATE_OF_NAME {
            self.by_id.insert(id, body.text());
        }
        Some(())
    }

    /// `HEADER_PMU_MAPPINGS`: how many, then kind of event and name of each unit.
    pub(super) fn take_units(&mut self, mut part: Fields<'_>) -> Option<()> {
        for _ in 0..part.u32()? {
            let kind = part.u32()?;
            self.units.insert(kind, string(&mut part)?);
        }
        Some(())
    }
}

/// What `perf` calls an event whose file names none.
pub(super) fn generic_name(kind: u32, config: u64) -> String {
    let named = |names: &[&str]| {
        let at = usize::try_from(config & 0xffff_ffff).unwrap_or(usize::MAX);
        names.get(at).map(|name| (*name).to_owned())
    };
    let name = match kind {
        0 => named(&HARDWARE),
        1 => named(&SOFTWARE),
        4 => Some(format!("r{config:x}")),
        _ => None,
    };
    name.unwrap_or_else(|| format!("an event of kind {kind}"))
}
