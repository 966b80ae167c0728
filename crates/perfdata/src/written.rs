//! A writer of `perf.data` files for tests: the layout of the kernel's documents, and nothing of the
//! reader's code. The laws of the reader are here too.

use proptest::prelude::*;

use crate::attributes::bit;
use crate::file::PerfFile;
use crate::{cpu_clock, memory_samples};
use tierloom_analysis::analyse;
use tierloom_binary::Files;
use tierloom_recording::{Change, register};

const CLOCK_TYPE: u64 =
    bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::ADDRESS | bit::PERIOD | bit::USER_REGISTERS;
const MEMORY_TYPE: u64 = bit::IDENTIFIER
    | bit::IP
    | bit::TID
    | bit::TIME
    | bit::ADDRESS
    | bit::CPU
    | bit::PERIOD
    | bit::WEIGHT_STRUCT
    | bit::DATA_SOURCE;
const ALL_REGISTERS: u64 = 0xff_03ff;
const ID: u64 = 77;
const PID: u32 = 7;
const USER: u16 = 2;

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).unwrap();
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// Text with its zeros up to a multiple of eight bytes.
fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((text.len() / 8 + 1) * 8, 0);
    bytes
}

/// What `sample_id_all` puts behind records of either event.
fn behind(sample_type: u64, time: u64) -> Vec<u8> {
    let cpu = if sample_type & bit::CPU != 0 { &[pair(1, 0)][..] } else { &[] };
    words(&[&[pair(PID, PID), time], cpu, &[ID]].concat())
}

/// Events of a file, with what goes into their records.
struct Written {
    kind: u32,
    sample_type: u64,
    data: Vec<u8>,
}

impl Written {
    fn new(kind: u32, sample_type: u64) -> Self {
        let mut written = Self { kind, sample_type, data: Vec::new() };
        let exec = [words(&[pair(PID, PID)]), padded("app"), behind(sample_type, 10)].concat();
        written.data.extend(record(3, USER | 1 << 13, &exec));
        written
    }

    fn mapping(&mut self, time: u64, start: u64, bytes: u64, executable: bool, path: &str) {
        let protection = if executable { 5 } else { 3 };
        let fields = words(&[pair(PID, PID), start, bytes, 0, 0, 0, 0, pair(protection, 2)]);
        let body = [fields, padded(path), behind(self.sample_type, time)].concat();
        self.data.extend(record(10, USER, &body));
    }

    fn clock_sample(&mut self, time: u64, registers: &[u64; 18]) {
        let head = [ID, 0x1234, pair(PID, PID), time, 0, 1_003_009, 2];
        self.data.extend(record(9, USER, &words(&[&head[..], registers].concat())));
    }

    fn memory_sample(&mut self, time: u64, address: u64, period: u64, latency: u32, source: u64) {
        // The upper half of a packed weight holds other latencies.
        let weight = pair(latency, 0x55);
        let body = [ID, 0x1234, pair(PID, PID + 1), time, address, pair(1, 0), period, weight, source];
        self.data.extend(record(9, USER, &words(&body)));
    }

    /// The file: header, one attribute with one id, data, and a command line as its only feature.
    fn file(&self) -> Vec<u8> {
        const HEADER: u64 = 104;
        const ATTRIBUTE: u64 = 128;
        let ids = HEADER + ATTRIBUTE + 16;
        let data = ids + 8;
        let length = self.data.len() as u64;
        let texts = ["perf", "record", "--", "./app", "-n"];
        let command = texts.map(|text| [words(&[])[..].to_vec(), text_of(text)].concat()).concat();
        let feature = [&5_u32.to_le_bytes()[..], &command].concat();
        let bits = [1_u64 << 11, 0, 0, 0];
        let header = [ATTRIBUTE + 16, HEADER, ATTRIBUTE + 16, data, length, 0, 0];
        let sections = words(&[data + length + 16, feature.len() as u64]);
        [b"PERFILE2".to_vec(), words(&[HEADER]), words(&header), words(&bits)]
            .into_iter()
            .chain([self.attribute(), words(&[ids, 8]), words(&[ID]), self.data.clone(), sections, feature])
            .flatten()
            .collect()
    }

    fn attribute(&self) -> Vec<u8> {
        let frequency = 1 << 10;
        let flags = frequency | 1 << 18;
        let numbers = [pair(self.kind, 128), 0, 997, self.sample_type, 0, flags, 0, 0, 0, 0, ALL_REGISTERS];
        let mut bytes = words(&numbers);
        bytes.resize(128, 0);
        bytes
    }
}

fn text_of(text: &str) -> Vec<u8> {
    let bytes = padded(text);
    [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], &bytes].concat()
}

fn clock_file() -> Vec<u8> {
    let mut written = Written::new(1, CLOCK_TYPE);
    written.mapping(20, 0x40_0000, 0x1000, true, "/no/such/app");
    written.mapping(30, 0x7000_0000_0000, 1 << 20, false, "//anon");
    for time in [50, 40] {
        let mut registers = [0; 18];
        registers[register::IP] = 0x40_0010 + time;
        registers[register::R8] = 888;
        written.clock_sample(time, &registers);
    }
    written.data.extend(record(4, 0, &words(&[pair(PID, 1), pair(PID, 1), 60])));
    written.file()
}

const RAM: u64 = 0x02 | 0x80 << 5;
const CACHE: u64 = 0x02 | 0x08 << 5;
const STORE: u64 = 0x04 | 0x04 << 5;

fn memory_file() -> Vec<u8> {
    let mut written = Written::new(4, MEMORY_TYPE);
    written.mapping(20, 0x7000_0000_0000, 1 << 20, false, "//anon");
    written.mapping(30, 0x7100_0000_0000, 4 << 20, false, "//anon");
    written.memory_sample(40, 0x7000_0000_0100, 1000, 300, RAM);
    written.memory_sample(50, 0x7100_0000_0100, 1000, 90, RAM);
    written.memory_sample(60, 0x7100_0000_0200, 1000, 10, CACHE);
    written.memory_sample(70, 0x7100_0000_0300, 500, 0, STORE);
    written.memory_sample(1_000_000_010, 0x10, 1000, 100, RAM);
    written.file()
}

#[test]
fn clock_samples_become_a_recording() {
    let bytes = clock_file();
    let file = PerfFile::parse(&bytes).unwrap();
    let recording = cpu_clock::recording(&file).unwrap();
    assert_eq!(recording.command, ["/no/such/app", "-n"]);
    assert_eq!((recording.pid, recording.start_ns, recording.end_ns), (PID, 10, 60));
    let seen: Vec<_> = recording.samples.iter().map(|s| (s.time_ns, s.ip(), s.registers[register::R8])).collect();
    assert_eq!(seen, [(40, 0x40_0010 + 40, 888), (50, 0x40_0010 + 50, 888)], "in time order");
    assert!((recording.period_ns - 1_003_009.0).abs() < 1.0, "997 a second");
    assert_eq!(recording.mappings[1].path, "[anon:1 1MiB]");
    assert!(matches!(&recording.processes[0].change, Change::Exec { name } if name == "app"));
    assert_eq!(recording.warnings[0], tierloom_model::Warning::NoAllocations);
}

#[test]
fn memory_samples_become_a_profile() {
    let bytes = memory_file();
    let file = PerfFile::parse(&bytes).unwrap();
    let (profile, rows) = analyse(&memory_samples::recording(&file).unwrap(), &Files);
    let shares: Vec<(&str, f64)> = profile.objects.iter().map(|o| (o.name.as_str(), o.stall.unwrap().share)).collect();
    assert_eq!(shares, [("[anon:1 1MiB]", 0.6), ("[anon:2 4MiB]", 0.2)], "300 and 90 + 10 of 500 cycles");
    assert!((profile.unattributed[0].stall.share - 0.2).abs() < 1e-12);
    let second = &profile.phases[0].accesses[1];
    assert_eq!((second.reads, second.writes), (2000.0, 500.0));
    assert!((second.dram_read_bytes - 64.0 * 1500.0).abs() < 1e-9, "a load from memory, and a store that missed");
    assert!((second.dram_write_bytes - 64.0 * 500.0).abs() < 1e-9);
    assert_eq!(rows.iter().map(|row| (row.object, row.offset)).collect::<Vec<_>>()[..2], [(0, 0x100), (1, 0x100)]);
    assert_eq!(rows[4].object, -1);
    assert!((profile.program.wall_s - 1.0).abs() < 1e-9);
    let again = tierloom_model::Profile::from_json(&profile.to_json(), "profile.json").unwrap();
    assert_eq!(again.objects.len(), 2, "the noun's own check accepts it");
}

#[test]
fn what_cannot_be_used_is_refused_with_what_to_record() {
    let refused = |bytes: &[u8]| PerfFile::parse(bytes).and_then(|file| cpu_clock::recording(&file)).unwrap_err();
    assert!(refused(b"ELF").problem.contains("does not begin"));
    assert!(refused(b"2ELIFREP").problem.contains("byte order"));
    assert!(refused(&[&b"PERFILE2"[..], &words(&[16])].concat()).problem.contains("stream"));
    let cycles = Written { kind: 0, ..Written::new(1, CLOCK_TYPE) }.file();
    assert!(refused(&cycles).hint.contains("--user-regs"));
    let bare = Written::new(1, CLOCK_TYPE & !bit::USER_REGISTERS).file();
    assert!(refused(&bare).problem.contains("lack registers"));
    assert!(refused(&Written::new(1, CLOCK_TYPE).file()).problem.contains("no sample"));
    let mut packed = Written::new(1, CLOCK_TYPE);
    packed.data.extend(record(81, 0, &[0; 8]));
    assert!(refused(&packed.file()).hint.contains("without -z"));
}

proptest! {
    #[test]
    fn a_cut_file_is_survived(cut: prop::sample::Index, clocked: bool) {
        let bytes = if clocked { clock_file() } else { memory_file() };
        try_everything(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn a_damaged_file_is_survived(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), clocked: bool) {
        let mut bytes = if clocked { clock_file() } else { memory_file() };
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        try_everything(&bytes);
    }

    #[test]
    fn any_records_are_survived(noise in prop::collection::vec(any::<u8>(), 0..400), kind in 0_u32..90, sample_type: u64) {
        let mut written = Written::new(4, sample_type);
        written.data.extend(record(kind, 0, &noise));
        written.data.extend(&noise);
        try_everything(&written.file());
    }
}

/// Both readers, whatever the file says it is.
fn try_everything(bytes: &[u8]) {
    if let Ok(file) = PerfFile::parse(bytes) {
        let _ = cpu_clock::recording(&file);
        let _ = memory_samples::recording(&file);
    }
}
