//! A recording as a file: `NAME.recording`.
//!
//! Eight bytes of magic, then numbers as LEB128 (seven bits a byte, lowest first). Times are
//! differences to the previous record's, registers are differences to the previous sample's, so most
//! numbers are one to three bytes. The reader trusts nothing: every count is held against the bytes
//! that are left before memory is taken for it, every id against the table that it points into.

mod reader;
mod writer;

use std::fs;
use std::path::Path;

use super::{Exit, Recording};
use crate::error::SamplerError;
use reader::Reader;
use writer::{Writer, event_code, zigzag};

/// The last byte is the version of the format.
const MAGIC: &[u8; 8] = b"tierrec\x03";

impl Recording {
    /// Writes the recording to a file that [`Recording::load`] reads back unchanged.
    ///
    /// # Errors
    /// [`SamplerError::File`].
    pub fn save(&self, path: &Path) -> Result<(), SamplerError> {
        fs::write(path, self.to_bytes()).map_err(|source| SamplerError::File { path: path.to_owned(), source })
    }

    /// Reads a file that [`Recording::save`] wrote.
    ///
    /// # Errors
    /// [`SamplerError::File`], [`SamplerError::NotARecording`].
    pub fn load(path: &Path) -> Result<Self, SamplerError> {
        let bytes = fs::read(path).map_err(|source| SamplerError::File { path: path.to_owned(), source })?;
        let wrong = |problem| SamplerError::NotARecording { path: path.to_owned(), problem };
        Self::from_bytes(&bytes).map_err(wrong)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.list(&self.command, |out, word| out.text(word));
        out.numbers(&[u64::from(self.pid), self.start_ns, self.end_ns]);
        match self.exit {
            Exit::Code(code) => out.numbers(&[0, zigzag(i64::from(code))]),
            Exit::Signal(signal) => out.numbers(&[1, zigzag(i64::from(signal))]),
        }
        out.floats(&[self.cpu_s, self.system_s, self.wall_s, self.period_ns, self.calibration.purity]);
        out.number(event_code(self.event));
        out.numbers(&[self.lost, self.lost_allocations]);
        out.numbers(&[u64::from(self.calibration.offset), u64::from(self.calibration.samples)]);
        out.list(&self.warnings, |out, text| out.text(text));
        out.list(&self.stacks, |out, frames| out.list(frames, |out, frame| out.number(*frame)));
        out.samples(&self.samples);
        out.mappings(&self.mappings);
        out.processes(&self.processes);
        out.allocations(&self.allocations);
        out.faults(&self.faults);
        out.0
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// A sentence that says what is wrong and where.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin like one")?;
        let mut reader = Reader { rest, length: bytes.len() };
        let recording = reader.recording();
        let at = bytes.len() - reader.rest.len();
        let recording = recording.ok_or_else(|| format!("it is cut off or damaged at byte {at}"))?;
        if reader.rest.is_empty() { Ok(recording) } else { Err(format!("there is more behind its end at byte {at}")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recording::{
        Allocation, AllocationEvent, Calibration, Change, Event, Fault, Mapping, Process, Sample, Source,
    };

    fn allocation(kind: u8, word: u64, small: u32) -> Allocation {
        let source = [Source::Heap, Source::Anonymous, Source::File, Source::Reserved][usize::from(kind % 4)];
        let event = match kind {
            0..=3 => AllocationEvent::Alloc { address: word, bytes: !word, stack: small % 2, source },
            4 => AllocationEvent::Free { address: word },
            5 => {
                AllocationEvent::Protect { address: word, bytes: u64::from(small), accessible: small.is_multiple_of(2) }
            }
            _ => AllocationEvent::Unmap { address: word, bytes: u64::from(small) },
        };
        Allocation { time_ns: word ^ 5, pid: small, tid: !small, event }
    }

    fn sample(word: u64, small: u32) -> Sample {
        let registers = std::array::from_fn(|at| word.rotate_left(u32::try_from(at).unwrap_or(0)));
        Sample {
            time_ns: word,
            pid: small,
            tid: !small,
            instructions: word >> 3,
            registers,
            kernel: small.is_multiple_of(2),
        }
    }

    prop_compose! {
        fn recordings()(
            words in prop::collection::vec(any::<u64>(), 0..20),
            smalls in prop::collection::vec(any::<u32>(), 20),
            text in ".{0,12}",
            float in 0.0..1e18,
            status: i32,
            kind in 0_u8..5,
        ) -> Recording {
            let pairs = || words.iter().copied().zip(smalls.iter().copied());
            let change = |small: u32| match small % 3 {
                0 => Change::Fork { parent: small },
                1 => Change::Exec { name: text.clone() },
                _ => Change::Exit,
            };
            Recording {
                command: vec![text.clone(), String::new()],
                pid: smalls[0],
                start_ns: u64::from(smalls[1]),
                end_ns: u64::MAX,
                exit: if kind == 0 { Exit::Code(status) } else { Exit::Signal(status) },
                cpu_s: float,
                system_s: 0.5,
                wall_s: float / 3.0,
                period_ns: 1_003_009.0,
                event: [Event::CpuClock, Event::Ptrace, Event::None][usize::from(kind % 3)],
                lost: u64::from(smalls[2]),
                samples: pairs().map(|(word, small)| sample(word, small)).collect(),
                faults: pairs().map(|(word, small)| Fault { time_ns: word, pid: small, address: !word }).collect(),
                mappings: pairs().map(|(word, small)| Mapping {
                    time_ns: word, pid: small, start: !word, bytes: word >> 1, file_offset: word,
                    executable: small.is_multiple_of(2), path: text.clone(),
                }).collect(),
                processes: pairs().map(|(word, small)| Process { time_ns: word, pid: small, change: change(small) }).collect(),
                allocations: pairs().map(|(word, small)| allocation(kind, word, small)).collect(),
                stacks: vec![words.clone(), Vec::new()],
                lost_allocations: u64::from(smalls[3]),
                calibration: Calibration { offset: smalls[4], purity: 0.5, samples: smalls[5] },
                warnings: vec![text.clone()],
            }
        }
    }

    proptest! {
        #[test]
        fn every_recording_reads_back(recording in recordings()) {
            prop_assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
        }

        #[test]
        fn a_cut_file_is_refused(recording in recordings(), cut: prop::sample::Index) {
            let bytes = recording.to_bytes();
            prop_assert!(Recording::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn a_damaged_file_is_survived(recording in recordings(), at: prop::sample::Index, byte: u8) {
            let mut bytes = recording.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(read) = Recording::from_bytes(&bytes) {
                prop_assert_eq!(Recording::from_bytes(&read.to_bytes()), Ok(read));
            }
        }

        #[test]
        fn any_bytes_are_survived(noise in prop::collection::vec(any::<u8>(), 0..400)) {
            let bytes = [&MAGIC[..], &noise].concat();
            prop_assert!(Recording::from_bytes(&bytes).is_err() || noise.len() > 40);
        }
    }

    #[test]
    fn a_file_that_is_none_says_so() {
        let error = Recording::load(Path::new("/etc/passwd")).unwrap_err().to_string();
        assert!(error.contains("/etc/passwd") && error.contains("hint:"), "{error}");
        let error = Recording::load(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
    }
}
