//! A writer of `perf.data` files for tests: the layout of the kernel's documents, and nothing of the
//! reader's code. The laws of the reader are here too.

use std::io::Cursor;

use linux_perf_event_reader::constants as perf;
use proptest::prelude::*;

use crate::error::Flaw;
use crate::file::PerfFile;
use crate::{cpu_time, memory_samples};
use tierloom_analysis::analyse;
use tierloom_binary::Files;
use tierloom_model::Warning;
use tierloom_recording::{Change, Recording, register};

pub(super) const COMMON: u64 = perf::PERF_SAMPLE_IDENTIFIER
    | perf::PERF_SAMPLE_IP
    | perf::PERF_SAMPLE_TID
    | perf::PERF_SAMPLE_TIME
    | perf::PERF_SAMPLE_ADDR
    | perf::PERF_SAMPLE_PERIOD;
pub(super) const CLOCK_TYPE: u64 = COMMON | perf::PERF_SAMPLE_REGS_USER;
pub(super) const MEMORY_TYPE: u64 =
    COMMON | perf::PERF_SAMPLE_CPU | perf::PERF_SAMPLE_WEIGHT_STRUCT | perf::PERF_SAMPLE_DATA_SRC;
const ALL_REGISTERS: u64 = 0xff_03ff;
pub(super) const ID: u64 = 77;
pub(super) const PID: u32 = 7;
pub(super) const USER: u16 = 2;
/// Bit of the command line among the features.
const COMMAND: u64 = 11;

pub(super) fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

pub(super) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(super) fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).unwrap();
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// Text with its zeros up to a multiple of eight bytes.
pub(super) fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((text.len() / 8 + 1) * 8, 0);
    bytes
}

/// What `sample_id_all` puts behind records of either event.
pub(super) fn behind(sample_type: u64, time: u64) -> Vec<u8> {
    let cpu = if sample_type & perf::PERF_SAMPLE_CPU != 0 { &[pair(1, 0)][..] } else { &[] };
    words(&[&[pair(PID, PID), time], cpu, &[ID]].concat())
}

/// Events of a file, with what goes into their records.
pub(super) struct Written {
    pub(super) kind: u32,
    pub(super) config: u64,
    pub(super) config1: u64,
    /// Period, instead of 997 a second.
    pub(super) period: Option<u64>,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) data: Vec<u8>,
    /// Sections behind the data, by their bits, in order.
    pub(super) features: Vec<(u64, Vec<u8>)>,
}

impl Written {
    pub(super) fn new(kind: u32, sample_type: u64) -> Self {
        let mut written = Self {
            kind,
            config: 0,
            config1: 0,
            period: None,
            sample_type,
            read_format: 0,
            data: Vec::new(),
            features: Vec::new(),
        };
        let exec = [words(&[pair(PID, PID)]), padded("app"), behind(sample_type, 10)].concat();
        written.data.extend(record(3, USER | 1 << 13, &exec));
        written
    }

    pub(super) fn mapping(&mut self, time: u64, start: u64, bytes: u64, executable: bool, path: &str) {
        let protection = if executable { 5 } else { 3 };
        let fields = words(&[pair(PID, PID), start, bytes, 0, 0, 0, 0, pair(protection, 2)]);
        let body = [fields, padded(path), behind(self.sample_type, time)].concat();
        self.data.extend(record(10, USER, &body));
    }

    pub(super) fn clock_sample(&mut self, time: u64, registers: &[u64; 18]) {
        let head = [ID, 0x1234, pair(PID, PID), time, 0, 1_003_009, 2];
        self.data.extend(record(9, USER, &words(&[&head[..], registers].concat())));
    }

    pub(super) fn memory_sample(&mut self, time: u64, address: u64, period: u64, latency: u32, source: u64) {
        // The upper half of a packed weight holds other latencies.
        let weight = pair(latency, 0x55);
        let body = [ID, 0x1234, pair(PID, PID + 1), time, address, pair(1, 0), period, weight, source];
        self.data.extend(record(9, USER, &words(&body)));
    }

    pub(super) fn file(&self) -> Vec<u8> {
        file_of(&[self], &self.data)
    }

    fn attribute(&self) -> Vec<u8> {
        let frequency = if self.period.is_some() { 0 } else { 1 << 10 };
        let (flags, period) = (frequency | 1 << 18, self.period.unwrap_or(997));
        let head = [pair(self.kind, 128), self.config, period, self.sample_type, self.read_format, flags];
        let numbers = [&head[..], &[0, self.config1, 0, 0, ALL_REGISTERS]].concat();
        let mut bytes = words(&numbers);
        bytes.resize(128, 0);
        bytes
    }
}

/// The file: header, attributes with one id each, data, and a command line as its only feature.
fn file_of(events: &[&Written], data: &[u8]) -> Vec<u8> {
    const HEADER: u64 = 104;
    const ENTRY: u64 = 128 + 16;
    let count = events.len() as u64;
    let (ids, length) = (HEADER + count * ENTRY, data.len() as u64);
    let start = ids + 8 * count;
    let entry = |(at, event): (u64, &&Written)| [event.attribute(), words(&[ids + 8 * at, 8])].concat();
    let listed = (0..).zip(events).map(entry).collect::<Vec<_>>().concat();
    let texts = ["perf", "record", "--", "./app", "-n"];
    let command = (COMMAND, [&5_u32.to_le_bytes()[..], &texts.map(text_of).concat()].concat());
    let mut features = [&[command][..], &events[0].features].concat();
    features.sort_by_key(|(bit, _)| *bit);
    let bits = features.iter().fold(0, |bits, (bit, _)| bits | 1 << bit);
    let header = [HEADER, ENTRY, HEADER, count * ENTRY, start, length, 0, 0, bits, 0, 0, 0];
    let mut place = start + length + 16 * features.len() as u64;
    let mut sections = Vec::new();
    for (_, feature) in &features {
        sections.extend(words(&[place, feature.len() as u64]));
        place += feature.len() as u64;
    }
    let features = features.into_iter().flat_map(|(_, feature)| feature).collect::<Vec<u8>>();
    let ids = words(&(ID..ID + count).collect::<Vec<_>>());
    [b"PERFILE2", &words(&header)[..], &listed, &ids, data, &sections, &features].concat()
}

pub(super) fn text_of(text: &str) -> Vec<u8> {
    let bytes = padded(text);
    [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], &bytes].concat()
}

pub(super) fn clock_file() -> Vec<u8> {
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

pub(super) const RAM: u64 = 0x02 | 0x80 << 5;
pub(super) const CACHE: u64 = 0x02 | 0x08 << 5;
pub(super) const STORE: u64 = 0x04 | 0x04 << 5;

pub(super) fn memory_file() -> Vec<u8> {
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
    let recording = clock(&clock_file()).unwrap();
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
    let (profile, rows) = analyse(&memory(&memory_file()).unwrap(), &Files);
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
    let refused = |bytes: &[u8]| match clock(bytes).unwrap_err() {
        Flaw::Content { problem, hint } => format!("{problem}: {hint}"),
        Flaw::Unreadable(error) => panic!("{error}"),
    };
    assert!(refused(b"ELF").contains("does not begin"));
    assert!(refused(&[&b"2ELIFREP"[..], &[0; 8]].concat()).contains("byte order"));
    assert!(refused(&[&b"PERFILE2"[..], &words(&[16])].concat()).contains("list of events"));
    let cycles = Written { kind: 0, ..Written::new(1, CLOCK_TYPE) }.file();
    assert!(refused(&cycles).contains("--user-regs"));
    let bare = Written::new(1, CLOCK_TYPE & !perf::PERF_SAMPLE_REGS_USER).file();
    assert!(refused(&bare).contains("lack registers"));
    assert!(refused(&Written::new(1, CLOCK_TYPE).file()).contains("no sample"));
    let mut packed = Written::new(1, CLOCK_TYPE);
    packed.data.extend(record(81, 0, &[0; 8]));
    assert!(refused(&packed.file()).contains("damaged"));
}

#[test]
fn every_loss_is_counted_once() {
    let lost = |read_format: u64| {
        let mut written = Written { read_format, ..Written::new(1, CLOCK_TYPE) };
        written.clock_sample(40, &[1; 18]);
        let without_registers = [ID, 0x1234, pair(PID, PID), 50, 0, 1_003_009, 0];
        written.data.extend(record(9, USER, &words(&without_registers)));
        let behind = behind(CLOCK_TYPE, 60);
        written.data.extend(record(2, 0, &[words(&[ID, 5]), behind.clone()].concat()));
        written.data.extend(record(13, 0, &[words(&[7]), behind.clone()].concat()));
        written.data.extend(record(5, 0, &[words(&[60, ID, ID]), behind].concat()));
        let recording = clock(&written.file()).unwrap();
        assert!(recording.warnings.contains(&Warning::Throttled));
        recording.lost
    };
    assert_eq!(lost(0), 5 + 7 + 1);
    assert_eq!(lost(1 << 4), 7 + 1, "the event counted what found no room, too");
}

#[test]
fn the_event_of_a_sample_is_found_by_its_id() {
    let (mut clocks, accesses) = (Written::new(1, CLOCK_TYPE), Written::new(4, MEMORY_TYPE));
    clocks.clock_sample(40, &[7; 18]);
    let access = [ID + 1, 0x1234, pair(PID, PID), 50, 0x1000, pair(1, 0), 1, 300, RAM];
    clocks.data.extend(record(9, USER, &words(&access)));
    let recording = memory(&file_of(&[&clocks, &accesses], &clocks.data)).unwrap();
    let seen: Vec<_> =
        recording.accesses.iter().map(|access| (access.time_ns, access.cycles, access.source.memory)).collect();
    assert_eq!(seen, [(50, 300, true)]);
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

pub(super) fn clock(bytes: &[u8]) -> Result<Recording, Flaw> {
    PerfFile::open(Cursor::new(bytes)).and_then(|mut file| cpu_time::recording(&mut file, None))
}

pub(super) fn memory(bytes: &[u8]) -> Result<Recording, Flaw> {
    let read = PerfFile::open(Cursor::new(bytes)).and_then(|mut file| memory_samples::recording(&mut file, None));
    read?.ok_or_else(|| Flaw::damaged("all of it"))
}

/// Both readers, whatever the file says it is.
fn try_everything(bytes: &[u8]) {
    let _ = clock(bytes);
    let _ = memory(bytes);
}
