//! Into which files of code the samples of a recording fell, by instruction or, of memory samples, by address: told by
//! its mappings, without opening one of them.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_binary::Binaries;
use tierloom_binary::debug_info::DebugInfo;
use tierloom_binary::elf::Binary;
use tierloom_model::is_on_disk;
use tierloom_recording::Recording;

use crate::address_space::AddressSpaces;

/// There are none.
pub(crate) struct NoBinaries;

impl Binaries for NoBinaries {
    fn open(&self, _path: &str, _build_id: Option<&str>) -> Binary {
        Binary::default()
    }

    fn debug_info(&self, _module: &Binary) -> DebugInfo {
        DebugInfo::default()
    }
}

/// Samples by the path of the file of code that they fell into, whether its build is known or not.
pub fn samples_by_file(recording: &Recording) -> BTreeMap<String, u64> {
    let code = code_files(recording);
    let mut spaces = AddressSpaces::new(recording, &NoBinaries);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let by_code = recording.samples.iter().map(|sample| (sample.time_ns, sample.pid, sample.ip()));
    let by_data = recording.accesses.iter().map(|access| (access.time_ns, access.pid, access.address));
    for (time_ns, pid, address) in by_code.chain(by_data) {
        spaces.advance(time_ns);
        let Some(path) = spaces.mapping_path(pid, address).filter(|path| code.contains(path)) else { continue };
        match found.get_mut(path) {
            Some(samples) => *samples += 1,
            None => drop(found.insert(path.to_owned(), 1)),
        }
    }
    found
}

/// Files whose build was noted, or that code was mapped of.
fn code_files(recording: &Recording) -> BTreeSet<&str> {
    let noted = recording.binaries.keys().map(String::as_str);
    let mapped = recording.mappings.iter().filter(|mapping| mapping.executable).map(|mapping| mapping.path.as_str());
    noted.chain(mapped.filter(|path| is_on_disk(path))).collect()
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
