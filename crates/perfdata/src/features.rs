//! What a file says about the run besides its records: command line, processor, cache, build ids.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::cursor::{Fields, section};
use tierloom_recording::Processor;

/// Bits of the header's feature set (`HEADER_*` in `tools/perf/util/header.h`).
mod bit {
    pub(super) const BUILD_ID: usize = 2;
    pub(super) const CPU: usize = 8;
    pub(super) const COMMAND: usize = 11;
    pub(super) const CACHE: usize = 20;
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
}

impl Features {
    /// Reads the table of sections behind the data: one entry for each bit that is set, in their order.
    /// What cannot be read is left empty: features help, records count.
    pub(super) fn read(bytes: &[u8], table: u64, bits: &[u8]) -> Self {
        let set = (0..bits.len() * 8).filter(|bit| bits[bit / 8] & (1 << (bit % 8)) != 0);
        let mut found = Self::default();
        for (place, bit) in set.enumerate() {
            let Some(part) = part_at(bytes, table, place as u64) else { break };
            found.take(bit, Fields(part));
        }
        found
    }

    fn take(&mut self, bit: usize, mut part: Fields<'_>) {
        match bit {
            bit::COMMAND => self.command = strings(&mut part).unwrap_or_default(),
            bit::CPU => self.cpu = string(&mut part).unwrap_or_default(),
            bit::CACHE => self.llc_bytes = last_level(&mut part),
            bit::BUILD_ID => self.build_ids = build_ids(part),
            _ => {}
        }
    }

    /// The processor of the run, as far as the file says.
    pub(super) fn processor(&self) -> Processor {
        Processor::new(Some(self.cpu.clone()), self.llc_bytes)
    }

    /// The program that `perf` ran: what stands behind `--`, where there is one.
    pub(super) fn program(&self) -> Option<&[String]> {
        let at = self.command.iter().position(|word| word == "--")?;
        Some(&self.command[at + 1..]).filter(|words| !words.is_empty())
    }
}

fn part_at(bytes: &[u8], table: u64, place: u64) -> Option<&[u8]> {
    let mut entry = Fields(section(bytes, table.checked_add(place * 16)?, 16)?);
    section(bytes, entry.u64()?, entry.u64()?)
}

/// `struct perf_header_string`: length with padding, then the text.
fn string(part: &mut Fields<'_>) -> Option<String> {
    let length = part.u32()?;
    Some(Fields(part.bytes(u64::from(length))?).text())
}

fn strings(part: &mut Fields<'_>) -> Option<Vec<String>> {
    let count = part.u32()?;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(string(part)?);
    }
    Some(all)
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

/// `struct build_id_event` records: header, pid, 20 bytes and their length, path.
fn build_ids(mut part: Fields<'_>) -> BTreeMap<String, String> {
    /// Bit of `misc`: the length of the build id follows it.
    const SIZED: u16 = 1 << 15;
    let mut found = BTreeMap::new();
    let mut entry = || {
        let (_kind, misc, size) = (part.u32()?, part.u16()?, part.u16()?);
        let mut body = Fields(part.bytes(u64::from(size).checked_sub(8)?)?);
        body.skip(4)?;
        let id = body.bytes(24)?;
        let length = if misc & SIZED != 0 { usize::from(id[20]).min(20) } else { 20 };
        let text = id[..length].iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").ok();
            text
        });
        Some((body.text(), text))
    };
    while let Some((path, id)) = entry() {
        found.insert(path, id);
    }
    found
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
