//! What a file says about the run besides its records: command line, processor, cache, build ids.

use std::collections::BTreeMap;
use std::fmt::Write;

use linux_perf_event_reader::constants::PERF_RECORD_MISC_BUILD_ID_SIZE;
use tierloom_linux::perf::Fields;
use tierloom_recording::Processor;

use crate::event_names::EventNames;
use crate::stream::{Raw, own};
use crate::text::{string, strings};

/// Bits of the header's feature set (`HEADER_*` in `tools/perf/util/header.h`).
mod bit {
    pub(super) const BUILD_ID: u64 = 2;
    pub(super) const ARCHITECTURE: u64 = 6;
    pub(super) const CPU: u64 = 8;
    pub(super) const COMMAND: u64 = 11;
    pub(super) const EVENTS: u64 = 12;
    pub(super) const UNITS: u64 = 16;
    pub(super) const CACHE: u64 = 20;
    pub(super) const ALL: [u64; 7] = [BUILD_ID, ARCHITECTURE, CPU, COMMAND, EVENTS, UNITS, CACHE];
}

/// The features that we use; empty where a file does not have them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// `perf`'s own command line.
    pub(super) command: Vec<String>,
    /// Processor model.
    cpu: String,
    /// Largest cache of the last level, bytes.
    llc_bytes: Option<u64>,
    /// Build ids in hexadecimal by path.
    pub(super) build_ids: BTreeMap<String, String>,
    /// What `uname -m` says there; empty where the file does not.
    pub(super) architecture: String,
    pub(super) names: EventNames,
    /// The processor's own trace that the file holds.
    pub(super) trace: Option<Trace>,
}

/// A trace of the processor's, in a format of its own (`enum auxtrace_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    /// Arm's statistical profiling extension: accesses.
    ArmSpe,
    /// Of branches, or of what we do not know.
    Other,
}

impl Trace {
    fn of(mut body: Fields<'_>) -> Option<Self> {
        const ARM_SPE: u32 = 4;
        Some(if body.u32()? == ARM_SPE { Self::ArmSpe } else { Self::Other })
    }
}

impl Features {
    /// Whether we want to know what the section of this bit says.
    pub(super) fn are_used(bit: u64) -> bool {
        bit::ALL.contains(&bit)
    }

    /// Takes the section of a bit.
    pub(super) fn take(&mut self, bit: u64, part: &[u8]) {
        let mut part = Fields(part);
        match bit {
            bit::COMMAND => self.command = strings(&mut part).unwrap_or_default(),
            bit::CPU => self.cpu = string(&mut part).unwrap_or_default(),
            bit::CACHE => self.llc_bytes = last_level(&mut part),
            bit::BUILD_ID => self.build_ids = build_ids(part),
            bit::ARCHITECTURE => self.architecture = string(&mut part).unwrap_or_default(),
            bit::EVENTS => drop(self.names.take_descriptions(part)),
            bit::UNITS => drop(self.names.take_units(part)),
            _ => {}
        }
    }

    /// Takes a record of a file without sections, where it says any of this.
    pub(super) fn take_record(&mut self, raw: &Raw<'_>) {
        let mut fields = Fields(raw.body);
        match raw.kind {
            own::FEATURE => {
                fields.u64().into_iter().for_each(|bit| self.take(bit, fields.0));
            }
            own::BUILD_ID => self.build_ids.extend(build_id(raw.misc, fields)),
            own::EVENT_UPDATE => drop(self.names.take_update(fields)),
            own::AUXTRACE_INFO => self.trace = Trace::of(fields),
            _ => {}
        }
    }

    /// The processor of the run, as far as the file says.
    pub(super) fn processor(&self) -> Processor {
        Processor::new(Some(self.cpu.clone()), self.llc_bytes)
    }

    /// Whether the file says how large the last level was.
    pub(super) fn tell_cache(&self) -> bool {
        self.llc_bytes.is_some()
    }

    /// The program that `perf` ran: what stands behind `--`, where there is one.
    pub(super) fn program(&self) -> Option<&[String]> {
        let at = self.command.iter().position(|word| word == "--")?;
        Some(&self.command[at + 1..]).filter(|words| !words.is_empty())
    }
}

/// Version and count, then level, line size, sets, ways, type, size (`32768K`) and sharers of each cache.
fn last_level(part: &mut Fields<'_>) -> Option<u64> {
    let (_version, count) = (part.u32()?, part.u32()?);
    let mut last: Option<(u32, u64)> = None;
    for _ in 0..count {
        let level = part.u32()?;
        part.skip(12)?;
        let (kind, size, _sharers) = (string(part)?, string(part)?, string(part)?);
        let bytes = tierloom_model::units::parse_bytes(&size.replace('K', "KiB").replace('M', "MiB")).ok();
        if let Some(bytes) = bytes.filter(|_| kind != "Instruction") {
            last = last.max(Some((level, bytes)));
        }
    }
    last.map(|(_, bytes)| bytes)
}

/// Records of their own, back to back.
fn build_ids(mut part: Fields<'_>) -> BTreeMap<String, String> {
    let mut entry = || {
        let (_kind, misc, size) = (part.u32()?, part.u16()?, part.u16()?);
        build_id(misc, Fields(part.bytes(u64::from(size).checked_sub(8)?)?))
    };
    std::iter::from_fn(&mut entry).collect()
}

/// `struct build_id_event` behind its header: process, 20 bytes and their length, path. The path and the build id.
fn build_id(misc: u16, mut body: Fields<'_>) -> Option<(String, String)> {
    body.skip(4)?;
    let id = body.bytes(24)?;
    let sized = misc & PERF_RECORD_MISC_BUILD_ID_SIZE != 0;
    let length = if sized { usize::from(id[20]).min(20) } else { 20 };
    let text = id[..length].iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").ok();
        text
    });
    Some((body.text(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> Vec<u8> {
        let length = u32::try_from(words.len() + 1).unwrap();
        [&length.to_le_bytes()[..], words.as_bytes(), &[0]].concat()
    }

    #[test]
    fn the_largest_data_cache_of_the_last_level_counts() {
        let cache = |level: u32, kind: &str, size: &str| {
            let numbers = [level, 64, 1, 1].map(u32::to_le_bytes).concat();
            [numbers, text(kind), text(size), text("0-1")].concat()
        };
        let caches = [cache(1, "Data", "48K"), cache(3, "Unified", "32768K"), cache(2, "Unified", "1M")].concat();
        let part = [&1_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), &caches].concat();
        assert_eq!(last_level(&mut Fields(&part)), Some(32 << 20));
        assert_eq!(last_level(&mut Fields(&part[..30])), None);
    }

    #[test]
    fn the_program_stands_behind_two_dashes() {
        let command = ["perf", "record", "--", "./app", "-n"].map(str::to_owned).to_vec();
        let features = Features { command, cpu: "Intel Xeon @ 2.10GHz".to_owned(), ..Features::default() };
        assert_eq!(features.program().unwrap(), ["./app", "-n"]);
        assert_eq!(features.processor().stated_ghz(), Some(2.1));
        assert_eq!(Features::default().program(), None);
    }
}
