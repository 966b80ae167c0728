//! A recording as a file: `NAME.recording`.
//!
//! Eight bytes of magic, then chunks, each with its length and a checksum (`chunk`): the beginning, portions
//! of what was seen, the end (`portion`). They are appended while the program runs, so a file whose writer
//! was stopped is good as far as it goes. Numbers are LEB128 (seven bits a byte, lowest first). Times are
//! differences to the previous record's, registers are differences to the previous sample's, so most
//! numbers are one to three bytes. The reader trusts nothing: every count is held against the bytes
//! that are left before memory is taken for it, every id against the most that there can be.

mod chunk;
mod portion;
mod reader;
mod writer;

use tierloom_model::Warning;

use crate::Recording;
use chunk::Stop;
use portion::Assembly;
pub use portion::{Beginning, MOST_STACKS, Portion, ending};

/// How every recording begins; the version of its format follows, a byte.
const NAME: &[u8; 7] = b"tierrec";
/// The version that is read and written here.
pub const VERSION: u8 = 16;
/// The oldest that is read: it has no windows, the one behind it no touches, the next no residents.
const OLDEST: u8 = 4;
/// What is wrong with a file whose recorder was stopped before its program did anything.
const NOTHING: &str = "it ends before anything was recorded";
/// Records of a kind in a portion: some hundred kilobytes in all, a millisecond's work.
pub const PORTION_RECORDS: usize = 1 << 14;

/// How a file begins.
pub fn magic() -> Vec<u8> {
    [NAME.as_slice(), &[VERSION]].concat()
}

/// Whether a file that begins so is a recording, of whatever version.
pub fn is_recording(start: &[u8]) -> bool {
    start.starts_with(NAME)
}

/// The version of a recording that can be read here.
///
/// # Errors
/// A sentence that says what is wrong with the beginning of the file.
pub fn version(bytes: &[u8]) -> Result<u8, String> {
    behind_magic(bytes).map(|(version, _)| version)
}

/// The version, and what is behind the beginning of a file.
fn behind_magic(bytes: &[u8]) -> Result<(u8, &[u8]), String> {
    match bytes.strip_prefix(NAME).map(<[u8]>::split_first) {
        Some(Some((version @ OLDEST..=VERSION, rest))) => Ok((*version, rest)),
        Some(Some((other, _))) => {
            Err(format!("it is of version {other}, and this tierloom reads versions {OLDEST} to {VERSION}"))
        }
        None if !NAME.starts_with(bytes) => Err("it does not begin like one".to_owned()),
        _ => Err(NOTHING.to_owned()),
    }
}

/// A payload as it stands in the file.
pub fn chunk_of(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 16);
    chunk::append(&mut bytes, payload);
    bytes
}

impl Recording {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = magic();
        chunk::append(&mut out, &self.beginning().payload());
        for at in (0..self.longest()).step_by(PORTION_RECORDS) {
            chunk::append(&mut out, &self.portion(at).payload());
        }
        chunk::append(&mut out, &ending(self));
        out
    }

    fn beginning(&self) -> Beginning<'_> {
        Beginning {
            command: &self.command,
            pid: self.pid,
            start_ns: self.start_ns,
            event: self.event,
            calibration: self.calibration,
            sample_cost_ns: self.sample_cost_ns,
            longest_interval_ns: self.longest_interval_ns,
            processor: &self.processor,
            unrecorded: &self.unrecorded,
        }
    }

    /// Records of the kind that there are most of.
    fn longest(&self) -> usize {
        let Self {
            binaries,
            samples,
            accesses,
            windows,
            lookaheads,
            faults,
            mappings,
            processes,
            allocations,
            stacks,
            ..
        } = self;
        let seen = [samples.len(), accesses.len(), faults.len(), mappings.len(), processes.len()];
        let others = [windows.len(), lookaheads.len(), binaries.len(), allocations.len(), stacks.len()];
        let looks = [self.residents.len(), self.clocks.len(), self.stack_tops.len()];
        let lengths = seen.into_iter().chain(others).chain(looks);
        lengths.into_iter().max().unwrap_or(0)
    }

    fn portion(&self, at: usize) -> Portion<'_> {
        let stacks = (0..).zip(&self.stacks).map(|(id, frames)| (id, frames.as_slice()));
        let binaries = self.binaries.iter().map(|(path, build_id)| (path.as_str(), build_id.as_str()));
        Portion {
            until_ns: self.end_ns,
            cpu_s: self.cpu_s,
            system_s: self.system_s,
            period_ns: self.period_ns,
            lost: self.lost,
            lost_allocations: self.lost_allocations,
            stacks: stacks.skip(at).take(PORTION_RECORDS).collect(),
            binaries: binaries.skip(at).take(PORTION_RECORDS).collect(),
            samples: next(&self.samples, at),
            stack_tops: next(&self.stack_tops, at),
            accesses: next(&self.accesses, at),
            windows: next(&self.windows, at),
            lookaheads: next(&self.lookaheads, at),
            faults: next(&self.faults, at),
            residents: next(&self.residents, at),
            clocks: next(&self.clocks, at),
            mappings: next(&self.mappings, at),
            processes: next(&self.processes, at),
            allocations: next(&self.allocations, at),
        }
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// A sentence that says what is wrong and where.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (_, rest) = behind_magic(bytes)?;
        let (payload, mut rest) = chunk::first(rest).map_err(|_| NOTHING)?;
        let mut assembly = Assembly::of(payload).ok_or("its beginning makes no sense")?;
        let stop = loop {
            match chunk::first(rest) {
                Err(stop) => break stop,
                Ok((payload, behind)) if assembly.take(payload).is_some() => rest = behind,
                Ok(_) => break Stop::Damaged,
            }
        };
        let Assembly { mut recording, is_complete } = assembly;
        recording.put_in_order();
        match stop {
            Stop::End if is_complete => return Ok(recording),
            _ if is_complete => {
                return Err(format!("there is more behind its end at byte {}", bytes.len() - rest.len()));
            }
            _ if recording.end_ns == recording.start_ns => return Err(NOTHING.to_owned()),
            Stop::Damaged => recording.warnings.push(damaged(&recording, bytes.len() - rest.len())),
            Stop::End | Stop::Cut => recording.warnings.push(stopped(&recording)),
        }
        // Children that were not waited for yet are in the samples alone.
        recording.cpu_s = recording.cpu_s.max(recording.samples.len() as f64 * recording.period_ns * 1e-9);
        Ok(recording)
    }
}

/// Up to a portion of records from there on.
pub fn next<T>(records: &[T], at: usize) -> &[T] {
    let rest = records.get(at..).unwrap_or_default();
    &rest[..rest.len().min(PORTION_RECORDS)]
}

fn stopped(recording: &Recording) -> Warning {
    Warning::Stopped { wall_s: recording.wall_s, samples: recording.samples.len() }
}

fn damaged(recording: &Recording, byte: usize) -> Warning {
    Warning::Damaged { byte, wall_s: recording.wall_s, samples: recording.samples.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Allocation, AllocationEvent, BlockCount, BranchCount, Calibration, Change, Clock, DataSource, Event, Exit,
        Fault, InCopy, Lookahead, Mapping, MemoryAccess, NearMemory, Outcome, Process, Processor, Resident, Sample,
        Source, StackTop, Stretch, Touch, UnrecordedRun, WarmUp, Which, Window,
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
        Allocation { time_ns: word, pid: small, tid: !small, event }
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
            copy: [InCopy::No, InCopy::Own, InCopy::Added][usize::try_from(small % 3).unwrap_or(0)],
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
            let mut words = words;
            words.sort_unstable();
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
                exit: [None, Some(Exit::Code(status)), Some(Exit::Signal(status))][usize::from(kind % 3)],
                cpu_s: float,
                system_s: 0.5,
                wall_s: float / 3.0,
                period_ns: 1_003_009.0,
                event: [Event::CpuClock, Event::Ptrace, Event::None, Event::MemoryAccess][usize::from(kind % 4)],
                processor: Processor { name: text.clone(), llc_bytes: words.len() as u64, host: text.clone(), highest_khz: words.first().copied().filter(|khz| *khz > 0),
                    memory: [None, Some(NearMemory { idle_ns: 100.0, demand_lines: 12.0, stream_lines: 24.0 })][usize::from(kind % 2)],
                },
                binaries: pairs().map(|(word, small)| (format!("{text}{small}"), word.to_string())).collect(),
                unrecorded: smalls.iter().take(words.len()).map(|small| UnrecordedRun {
                    wall_s: f64::from(*small) * 1e-3, exit_code: small.to_le_bytes()[0],
                }).collect(),
                lost: u64::from(smalls[2]),
                samples: pairs().map(|(word, small)| sample(word, small)).collect(),
                stack_tops: pairs().map(|(word, small)| StackTop {
                    time_ns: word, tid: small, words: std::array::from_fn(|at| word ^ at as u64),
                }).collect(),
                accesses: pairs().map(|(word, small)| MemoryAccess {
                    time_ns: word, pid: small, tid: !small, address: word, store: small.is_multiple_of(2),
                    source: DataSource {
                        memory: small.is_multiple_of(3), remote: small.is_multiple_of(5), shared: small.is_multiple_of(7),
                    },
                    cycles: word, period: !word,
                }).collect(),
                windows: pairs().map(|(word, small)| Window {
                    time_ns: word, pid: small, tid: !small, address: !word, stands_for_ns: word, duration_ns: word >> 7, warm_up: [WarmUp::Counted, WarmUp::LeftOut, WarmUp::Longer(word >> 9)][usize::from(kind % 3)],
                    outcome: [Outcome::Whole, Outcome::Cut, Outcome::NoCopy, Outcome::InCall][usize::from(kind % 4)],
                    counts: words.iter().map(|start| BlockCount { start: *start, bytes: u64::from(small), executions: word }).collect(),
                    stack_pointer: !word,
                    touches: words.iter().map(|at| Touch {
                        instruction: *at, executions: word, addresses: words.clone(),
                        operand: [Which::Named, Which::Source, Which::Destination, Which::Rounds][usize::from(kind % 4)],
                    }).collect(),
                }).collect(),
                lookaheads: pairs().map(|(word, small)| Lookahead {
                    time_ns: word, pid: small, tid: !small, address: !word, stack_pointer: word >> 3, instructions: word >> 5,
                    counts: words.iter().map(|at| BlockCount { start: *at, bytes: 3, executions: word }).collect(),
                    branches: words.iter().map(|at| BranchCount { address: *at, taken: word, passed: !word }).collect(),
                    touches: words.iter().map(|at| Touch {
                        instruction: *at, executions: word, addresses: words.clone(), operand: Which::Named,
                    }).collect(),
                }).collect(),
                faults: pairs().map(|(word, small)| Fault {
                    time_ns: word, pid: small, instruction: word >> 3, address: !word,
                }).collect(),
                clocks: pairs().map(|(word, small)| Clock {
                    time_ns: word, user_ns: !word, system_ns: word >> 3, queued_ns: u64::from(small), held_ns: word >> 5,
                }).collect(),
                residents: pairs().map(|(word, small)| Resident {
                    time_ns: word, pid: small,
                    stretches: words.iter().map(|at| Stretch { start: *at, bytes: word, present_bytes: !word }).collect(),
                }).collect(),
                mappings: pairs().map(|(word, small)| Mapping {
                    time_ns: word, pid: small, start: !word, bytes: word >> 1, file_offset: word,
                    executable: small.is_multiple_of(2), path: text.clone(),
                }).collect(),
                processes: pairs().map(|(word, small)| Process { time_ns: word, pid: small, change: change(small) }).collect(),
                allocations: pairs().map(|(word, small)| allocation(kind, word, small)).collect(),
                stacks: vec![words.clone(), Vec::new()],
                lost_allocations: u64::from(smalls[3]),
                calibration: Calibration { offset: smalls[4], purity: 0.5, samples: smalls[5] },
                sample_cost_ns: f64::from(smalls[5]),
                longest_interval_ns: 0.5 * f64::from(smalls[5]),
                warnings: vec![Warning::Told { text: text.clone() }, Warning::LostAllocations { lost: u64::from(smalls[6]) }],
            }
        }
    }

    proptest! {
        #[test]
        fn every_recording_reads_back(recording in recordings()) {
            prop_assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
        }

        #[test]
        fn a_cut_file_is_good_up_to_the_cut(recording in recordings(), cut: prop::sample::Index) {
            let bytes = recording.to_bytes();
            let Ok(read) = Recording::from_bytes(&bytes[..cut.index(bytes.len())]) else { return Ok(()) };
            prop_assert_eq!((&read.command, read.pid, read.exit), (&recording.command, recording.pid, None));
            prop_assert!(read.samples.is_empty() || read.samples == recording.samples);
            prop_assert!(read.allocations.is_empty() || read.allocations == recording.allocations);
            let stopped = matches!(read.warnings[0], Warning::Stopped { .. });
            prop_assert!(stopped);
        }

        #[test]
        fn a_damaged_file_is_survived_and_never_silently_another(
            recording in recordings(), at: prop::sample::Index, bit in 0_u8..8
        ) {
            let mut bytes = recording.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            if let Ok(read) = Recording::from_bytes(&bytes) {
                let told = matches!(read.warnings[0], Warning::Damaged { .. } | Warning::Stopped { .. });
                prop_assert!(told);
            }
        }

        #[test]
        fn a_file_of_another_version_says_which(recording in recordings(), version: u8) {
            let mut bytes = recording.to_bytes();
            bytes[NAME.len()] = version;
            let told = Recording::from_bytes(&bytes).err();
            let expected = format!("it is of version {version}, and this tierloom reads versions {OLDEST} to {VERSION}");
            prop_assert_eq!(told, (!(OLDEST..=VERSION).contains(&version)).then_some(expected));
            prop_assert_eq!(super::version(&bytes).ok(), (OLDEST..=VERSION).contains(&version).then_some(version));
        }

        #[test]
        fn any_bytes_are_survived(noise in prop::collection::vec(any::<u8>(), 0..400)) {
            let bytes = [magic(), noise].concat();
            prop_assert!(Recording::from_bytes(&bytes).is_err());
        }

        #[test]
        fn any_payload_is_survived(noise in prop::collection::vec(any::<u8>(), 0..400), recording in recordings()) {
            let chunks = [chunk_of(&recording.beginning().payload()), chunk_of(&[&[1], &noise[..]].concat())].concat();
            if let Ok(read) = Recording::from_bytes(&[magic(), chunks].concat()) {
                prop_assert_eq!(Recording::from_bytes(&read.to_bytes()), Ok(read));
            }
        }
    }

    #[test]
    fn a_long_recording_has_several_portions_and_reads_back() {
        let fault = |time_ns| Fault { time_ns, pid: 1, instruction: 7, address: time_ns << 12 };
        let long = Recording {
            faults: (0..3 * PORTION_RECORDS as u64).map(fault).collect(),
            samples: vec![sample(7, 1); 5],
            end_ns: 9,
            ..Recording::default()
        };
        let bytes = long.to_bytes();
        assert_eq!(Recording::from_bytes(&bytes).as_ref(), Ok(&long));
        let cut = Recording::from_bytes(&bytes[..bytes.len() * 2 / 3]).unwrap();
        assert_eq!((cut.samples.len(), cut.faults.len() % PORTION_RECORDS), (5, 0));
        assert!(!cut.faults.is_empty() && cut.faults.len() < long.faults.len());
    }
}
