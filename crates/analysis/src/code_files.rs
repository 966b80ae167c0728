//! Into which files of code the samples of a recording fell: told by its mappings, without opening one of them.

use std::collections::BTreeMap;

use tierloom_binary::Binaries;
use tierloom_binary::debug_info::DebugInfo;
use tierloom_binary::elf::Binary;
use tierloom_recording::Recording;

use crate::address_space::AddressSpaces;

/// There are none.
struct NoBinaries;

impl Binaries for NoBinaries {
    fn open(&self, _path: &str, _build_id: Option<&str>) -> Binary {
        Binary::default()
    }

    fn debug_info(&self, _module: &Binary) -> DebugInfo {
        DebugInfo::default()
    }
}

/// Samples by the path of the file that they fell into.
pub fn samples_by_file(recording: &Recording) -> BTreeMap<String, u64> {
    let mut spaces = AddressSpaces::new(recording, &NoBinaries);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for sample in &recording.samples {
        spaces.advance(sample.time_ns);
        let path = spaces.mapping_path(sample.pid, sample.ip());
        let Some(path) = path.filter(|path| recording.binaries.contains_key(*path)) else { continue };
        match found.get_mut(path) {
            Some(samples) => *samples += 1,
            None => drop(found.insert(path.to_owned(), 1)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tierloom_recording::{Change, InCopy, Mapping, Process, REGISTERS, Sample, register};

    use super::*;

    #[test]
    fn a_sample_belongs_to_the_file_that_was_mapped_there_then() {
        let map = |time_ns, pid, path: &str| Mapping {
            time_ns,
            pid,
            start: 4096,
            bytes: 4096,
            file_offset: 0,
            executable: true,
            path: path.to_owned(),
        };
        let sample = |time_ns, pid, ip: u64| {
            let mut registers = [0; REGISTERS];
            registers[register::IP] = ip;
            Sample { time_ns, pid, tid: pid, instructions: 0, registers, kernel: false, copy: InCopy::No }
        };
        let recording = Recording {
            binaries: ["/a", "/b"].map(|path| (path.to_owned(), "1".to_owned())).into(),
            mappings: vec![map(1, 7, "/a"), map(5, 7, "/b"), map(6, 9, "[vdso]")],
            processes: vec![Process { time_ns: 2, pid: 8, change: Change::Fork { parent: 7 } }],
            samples: vec![
                sample(3, 7, 4100),
                sample(6, 7, 4100),
                sample(6, 8, 4100),
                sample(7, 9, 4100),
                sample(7, 7, 1),
            ],
            ..Recording::default()
        };
        let expected = [("/a".to_owned(), 2), ("/b".to_owned(), 1)];
        assert_eq!(samples_by_file(&recording), expected.into());
    }
}
