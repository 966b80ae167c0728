//! The one parser of the kernel's records, for our own rings and for the files of others.
//!
//! What a record looks like depends on the attributes that its event was opened with: a [`Format`] is made of them,
//! and then turns bytes into [`Record`]s. Nothing in the bytes is trusted: every field is read with a bound check.

use std::fmt::Write;

use linux_perf_event_reader::constants::PERF_RECORD_MISC_MMAP_BUILD_ID;
use linux_perf_event_reader::{
    CommOrExecRecord, CpuMode, EventRecord, ForkOrExitRecord, Mmap2FileId, PerfEventAttr, RawData, RawEventRecord,
    RecordIdParseInfo, RecordParseInfo, RecordType,
};

use super::fields::Fields;
use super::record::{Record, Sample};
use super::sample::SampleLayout;

const HEADER: u64 = 8;
/// Of `struct perf_event_attr`: where `read_format` and `branch_sample_type` are. The library leaves out bits that it
/// does not know, and each of them moves what follows in a sample.
const READ_FORMAT: usize = 32;
const BRANCH_TYPE: usize = 72;
/// Of `PERF_RECORD_MMAP2`: where the length of a build id is, and the most that it can be.
const BUILD_ID_LENGTH: usize = 32;
const MOST_BUILD_ID: u8 = 20;
/// Of `PERF_RECORD_LOST_SAMPLES`: a filter left them out, they are not missed.
const MISC_FILTERED: u16 = 1 << 15;
const PROT_EXEC: u32 = 4;

/// A record ends before its last field, or says what cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record is cut off or damaged")]
pub struct Damaged;

/// What the records of an event carry.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    attributes: PerfEventAttr,
    others: RecordParseInfo,
    samples: SampleLayout,
}

impl Format {
    /// Of the bytes of a `struct perf_event_attr`, as the kernel gets them; `None` where they are too few, or name an
    /// event or a clock that nobody knows.
    pub fn of(attributes: &[u8]) -> Option<Self> {
        let word = |at: usize| attributes.get(at..).and_then(|rest| Fields(rest).u64());
        let (read_format, branch_type) = (word(READ_FORMAT)?, word(BRANCH_TYPE).unwrap_or(0));
        let (attributes, _) = PerfEventAttr::parse::<_, byteorder::LittleEndian>(attributes).ok()?;
        let others = RecordParseInfo::new(&attributes, linux_perf_event_reader::Endianness::LittleEndian);
        let (fields, registers) = (attributes.sample_format, attributes.sample_regs_user);
        Some(Self { attributes, others, samples: SampleLayout { fields, read_format, branch_type, registers } })
    }

    /// What the event was opened with.
    pub fn attributes(&self) -> &PerfEventAttr {
        &self.attributes
    }

    /// Bits of `read_format`, unknown ones among them.
    pub fn read_format(&self) -> u64 {
        self.samples.read_format
    }

    /// Where records of this event say which event they are of.
    pub fn ids(&self) -> &RecordIdParseInfo {
        &self.others.id_parse_info
    }

    /// Hands over the records in `bytes`, back to back as in a ring. A damaged one is left out; where the length of one
    /// is impossible, nothing behind it can be found.
    pub fn records(&self, bytes: &[u8], mut each: impl FnMut(Record)) {
        let mut rest = Fields(bytes);
        while let (Some(kind), Some(misc), Some(length)) = (rest.u32(), rest.u16(), rest.u16()) {
            let Some(body) = u64::from(length).checked_sub(HEADER).and_then(|length| rest.bytes(length)) else { break };
            // Nearly all of them are samples, and a record is large to hand on twice.
            if RecordType(kind) == RecordType::SAMPLE {
                let mut sample = Sample { kernel: is_of_kernel(misc), ..Sample::default() };
                if self.samples.read(body, &mut sample).is_some() {
                    each(Record::Sample(sample));
                }
            } else if let Ok(Some(record)) = self.record(kind, misc, body) {
                each(record);
            }
        }
    }

    /// One record; `None` where it says nothing to us.
    ///
    /// # Errors
    /// The body is too short for what it should hold.
    pub fn record(&self, kind: u32, misc: u16, body: &[u8]) -> Result<Option<Record>, Damaged> {
        match RecordType(kind) {
            RecordType::SAMPLE => {
                let mut sample = Sample { kernel: is_of_kernel(misc), ..Sample::default() };
                self.samples.read(body, &mut sample).ok_or(Damaged)?;
                Ok(Some(Record::Sample(sample)))
            }
            RecordType::MMAP | RecordType::MMAP2 if is_of_kernel(misc) => Ok(None),
            RecordType::MMAP2 if is_impossible_build_id(misc, body) => Err(Damaged),
            RecordType::LOST_SAMPLES if misc & MISC_FILTERED != 0 => Ok(None),
            RecordType::LOST_SAMPLES => Fields(body).u64().map(Record::LostSamples).map(Some).ok_or(Damaged),
            kind => self.other(&RawEventRecord::new(kind, misc, RawData::Single(body), self.others)),
        }
    }

    fn other(&self, raw: &RawEventRecord<'_>) -> Result<Option<Record>, Damaged> {
        Ok(match raw.parse().map_err(|_| Damaged)? {
            EventRecord::Comm(comm) => exec(&comm, self.time_ns(raw)?),
            EventRecord::Fork(change) => Some(fork(&change)),
            EventRecord::Exit(change) => exit(&change),
            EventRecord::Lost(lost) => Some(Record::LostRecords(lost.count)),
            EventRecord::Throttle(_) => Some(Record::Throttled),
            EventRecord::Mmap(map) => {
                let (file_offset, executable) = (map.page_offset, map.is_executable);
                let (pid, tid, closed) = (map.pid, map.tid, false);
                let range = Range { pid, tid, start: map.address, bytes: map.length, file_offset, executable, closed };
                mapping(range, map.path, String::new(), self.time_ns(raw)?)
            }
            EventRecord::Mmap2(map) => {
                let (file_offset, executable) = (map.page_offset, map.protection & PROT_EXEC != 0);
                let (pid, tid, closed) = (map.pid, map.tid, map.protection == 0);
                let range = Range { pid, tid, start: map.address, bytes: map.length, file_offset, executable, closed };
                mapping(range, map.path, build_id(&map.file_id), self.time_ns(raw)?)
            }
            _ => None,
        })
    }

    /// Time of a record that is no sample; 0 where the event does not put one there.
    fn time_ns(&self, raw: &RawEventRecord<'_>) -> Result<u64, Damaged> {
        match self.others.nonsample_record_time_offset_from_end {
            Some(_) => raw.timestamp().ok_or(Damaged),
            None => Ok(0),
        }
    }
}

fn is_of_kernel(misc: u16) -> bool {
    CpuMode::from_misc(misc) == CpuMode::Kernel
}

/// The library panics at these.
fn is_impossible_build_id(misc: u16, body: &[u8]) -> bool {
    misc & PERF_RECORD_MISC_MMAP_BUILD_ID != 0
        && body.get(BUILD_ID_LENGTH).is_some_and(|length| *length > MOST_BUILD_ID)
}

/// Where something was mapped.
#[derive(Clone, Copy)]
struct Range {
    pid: i32,
    tid: i32,
    start: u64,
    bytes: u64,
    file_offset: u64,
    executable: bool,
    closed: bool,
}

/// `None` for a range beyond the end of all addresses.
fn mapping(range: Range, path: RawData<'_>, build_id: String, time_ns: u64) -> Option<Record> {
    let Range { pid, tid, start, bytes, file_offset, executable, closed } = range;
    start.checked_add(bytes)?;
    let (pid, tid, path) = (pid.cast_unsigned(), tid.cast_unsigned(), text(path));
    Some(Record::Mmap { pid, tid, time_ns, start, bytes, file_offset, executable, closed, path, build_id })
}

/// In hexadecimal; empty where the record names the file by its inode (`--buildid-mmap` writes the other).
fn build_id(file: &Mmap2FileId) -> String {
    let Mmap2FileId::BuildId(bytes) = file else { return String::new() };
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").ok();
        text
    })
}

fn exec(comm: &CommOrExecRecord<'_>, time_ns: u64) -> Option<Record> {
    let pid = comm.pid.cast_unsigned();
    comm.is_execve.then(|| Record::Exec { pid, time_ns, name: text(comm.name) })
}

/// Of a process, or of a thread of one.
fn fork(change: &ForkOrExitRecord) -> Record {
    let (pid, parent, time_ns) = (change.pid.cast_unsigned(), change.ppid.cast_unsigned(), change.timestamp);
    if pid != parent {
        return Record::Fork { pid, parent, time_ns };
    }
    Record::Thread { pid, tid: change.tid.cast_unsigned(), parent_tid: change.ptid.cast_unsigned(), time_ns }
}

/// Ends of processes.
fn exit(change: &ForkOrExitRecord) -> Option<Record> {
    (change.pid == change.tid).then_some(Record::Exit { pid: change.pid.cast_unsigned(), time_ns: change.timestamp })
}

fn text(bytes: RawData<'_>) -> String {
    String::from_utf8_lossy(&bytes.as_slice()).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::perf::{REGISTERS, STACK_WORDS};

    const MMAP2: u32 = 10;
    const SAMPLE: u32 = 9;
    const USER: u16 = 2;
    /// IP, thread, time, CPU, registers of user space.
    const CLOCK: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 12;
    const READ: u64 = 1 << 4;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | (u64::from(high) << 32)
    }

    fn format(sample_type: u64, read_format: u64) -> Format {
        let sample_id_all = 1 << 18;
        let numbers = [pair(1, 112), 0, 1000, sample_type, read_format, sample_id_all, 0, 0, 0, 0, 0xff_03ff, 0, 0, 0];
        Format::of(&words(&numbers)).unwrap()
    }

    fn framed(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(8 + body.len()).unwrap();
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &length.to_le_bytes(), body].concat()
    }

    fn parsed(format: &Format, bytes: &[u8]) -> Vec<Record> {
        let mut records = Vec::new();
        format.records(bytes, |record| records.push(record));
        records
    }

    fn clock(kind: u32, misc: u16, body: &[u8]) -> Vec<Record> {
        parsed(&format(CLOCK, 0), &framed(kind, misc, body))
    }

    /// A sample with what was counted, and so many registers of this ABI.
    fn sample(format: &Format, counted: &[u64], abi: u64) -> Sample {
        let registers: Vec<u64> = (100..118).collect();
        let registers = if abi == 0 { &[] } else { &registers[..] };
        let body = words(&[&[42, pair(7, 8), 99, pair(3, 0)][..], counted, &[abi], registers].concat());
        let records = parsed(format, &framed(SAMPLE, USER, &body));
        let [Record::Sample(sample)] = &records[..] else { panic!("{records:?}") };
        assert_eq!((sample.pid, sample.tid, sample.time_ns, sample.cpu, sample.kernel), (7, 8, 99, 3, false));
        sample.clone()
    }

    #[test]
    fn a_sample_with_and_without_counters() {
        let expected: [u64; REGISTERS] = std::array::from_fn(|register| 100 + register as u64);
        for (read_format, counted, instructions) in [
            (None, &[][..], 0),
            (Some(0), &[1000][..], 0),
            (Some(ID | LOST), &[1000, 1, 2][..], 0),
            (Some(GROUP), &[2, 1000, 5555][..], 5555),
            (Some(GROUP), &[1, 1000][..], 0),
            (Some(GROUP | ID | 0b11), &[2, 60, 50, 1000, 1, 5555, 2][..], 5555),
        ] {
            let sample_type = CLOCK | read_format.map_or(0, |_| READ);
            let sample = sample(&format(sample_type, read_format.unwrap_or(0)), counted, 2);
            assert_eq!((sample.instructions, sample.registers), (instructions, Some(expected)));
        }
    }

    #[test]
    fn registers_of_32_bit_code_and_of_none_are_not_taken_for_ours() {
        for abi in [0, 1] {
            assert_eq!(sample(&format(CLOCK, 0), &[], abi).registers, None);
        }
    }

    #[test]
    fn what_stands_between_is_passed_over() {
        const CHAIN_RAW_BRANCHES_STACK: u64 = 1 << 5 | 1 << 10 | 1 << 11 | 1 << 13;
        let format = format(CLOCK | CHAIN_RAW_BRANCHES_STACK, 0);
        let head = words(&[42, pair(7, 8), 99, pair(3, 0), 2, 1, 2]);
        let raw = [&4_u32.to_le_bytes()[..], &[0; 4]].concat();
        let tail = words(&[&[1, 1, 2, 3, 2][..], &[7; REGISTERS], &[16, 0, 0, 16]].concat());
        let records = parsed(&format, &framed(SAMPLE, 1, &[head, raw, tail].concat()));
        let [Record::Sample(sample)] = &records[..] else { panic!("{records:?}") };
        assert_eq!((sample.registers, sample.kernel), (Some([7; REGISTERS]), true));
    }

    #[test]
    fn the_top_of_the_stack_is_kept_where_all_of_it_was_copied() {
        let stack: [u64; STACK_WORDS] = std::array::from_fn(|at| 1000 + at as u64);
        let bytes = 8 * STACK_WORDS as u64;
        for (copied, kept) in [(bytes, Some(Box::new(stack))), (bytes - 8, None), (0, None)] {
            let head = [&[42, pair(7, 8), 99, pair(3, 0), 2][..], &[7; REGISTERS]].concat();
            let body = words(&[&head[..], &[bytes], &stack, &[copied]].concat());
            let records = parsed(&format(CLOCK | 1 << 13, 0), &framed(SAMPLE, USER, &body));
            let [Record::Sample(sample)] = &records[..] else { panic!("{records:?}") };
            assert_eq!((sample.registers, &sample.stack), (Some([7; REGISTERS]), &kept));
        }
    }

    #[test]
    fn an_access_has_its_address_latency_and_source() {
        let fields = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 8 | 1 << 15;
        let body = words(&[pair(7, 8), 99, 0x7000_1000, 1000, pair(300, 55), 0x1234]);
        for (weight, cycles) in [(1 << 14, pair(300, 55)), (1 << 24, 300)] {
            let records = parsed(&format(fields | weight, 0), &framed(SAMPLE, USER, &body));
            let [Record::Sample(sample)] = &records[..] else { panic!("{records:?}") };
            assert_eq!((sample.address, sample.period), (0x7000_1000, 1000));
            assert_eq!((sample.weight, sample.source), (cycles, 0x1234));
        }
    }

    #[test]
    fn a_mapping_has_its_path_and_time() {
        let mut body = words(&[pair(7, 8), 0x1000, 0x2000, 0x3000, 0, 0, 0, pair(5, 2)]);
        body.extend(b"/bin/true\0\0\0\0\0\0\0");
        body.extend(words(&[pair(7, 8), 77, 0]));
        let mut expected = Record::Mmap {
            pid: 7,
            tid: 8,
            time_ns: 77,
            start: 0x1000,
            bytes: 0x2000,
            file_offset: 0x3000,
            executable: true,
            closed: false,
            path: "/bin/true".to_owned(),
            build_id: String::new(),
        };
        assert_eq!(clock(MMAP2, USER, &body), std::slice::from_ref(&expected));
        assert_eq!(clock(MMAP2, 1, &body), [], "the kernel's own");
        (body[32], body[36], body[55]) = (20, 0xab, 0x0c);
        if let Record::Mmap { build_id, .. } = &mut expected {
            *build_id = format!("ab{}0c", "00".repeat(18));
        }
        assert_eq!(clock(MMAP2, USER | PERF_RECORD_MISC_MMAP_BUILD_ID, &body), [expected]);
        body[32] = 21;
        assert_eq!(clock(MMAP2, USER | PERF_RECORD_MISC_MMAP_BUILD_ID, &body), [], "no build id is so long");
    }

    #[test]
    fn threads_are_not_processes() {
        let fork = |pid, parent| clock(7, 0, &words(&[pair(pid, parent), pair(9, 9), 5, 0, 0, 0]));
        assert_eq!(fork(7, 7), [Record::Thread { pid: 7, tid: 9, parent_tid: 9, time_ns: 5 }]);
        assert_eq!(fork(8, 7), [Record::Fork { pid: 8, parent: 7, time_ns: 5 }]);
        let exit = |tid| clock(4, 0, &words(&[pair(8, 7), pair(tid, 7), 6, 0, 0, 0]));
        assert_eq!(exit(9), []);
        assert_eq!(exit(8), [Record::Exit { pid: 8, time_ns: 6 }]);
    }

    #[test]
    fn what_was_lost_is_told_by_its_kind() {
        let behind = [pair(7, 8), 77, 0];
        let lost = words(&[&[0, 12][..], &behind].concat());
        let samples = words(&[&[5][..], &behind].concat());
        assert_eq!(clock(2, 0, &lost), [Record::LostRecords(12)]);
        assert_eq!(clock(13, 0, &samples), [Record::LostSamples(5)]);
        assert_eq!(clock(13, MISC_FILTERED, &samples), []);
        assert_eq!(clock(5, 0, &words(&[1, 2, 3])), [Record::Throttled]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600), fields: u64, read_format: u64) {
            parsed(&format(fields, read_format), &bytes);
        }

        #[test]
        fn any_attributes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Format::of(&bytes);
        }

        #[test]
        fn any_body_of_a_known_kind_is_survived(
            kind in 0_u32..30, misc: u16, body in prop::collection::vec(any::<u8>(), 0..300), fields: u64
        ) {
            let bytes = [framed(kind, misc, &body), framed(5, 0, &[0; 24])].concat();
            let records = parsed(&format(fields, 0), &bytes);
            prop_assert_eq!(records.last(), Some(&Record::Throttled));
        }
    }
}
