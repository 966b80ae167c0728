//! Tests: what the samples of a file mean, by kind of file.

use std::io::Cursor;

use linux_perf_event_reader::constants as perf;
use tierloom_model::Warning;
use tierloom_recording::{Recording, register};

use crate::error::Flaw;
use crate::file::PerfFile;
use crate::written::{
    CACHE, CLOCK_TYPE, ID, MEMORY_TYPE, PID, RAM, STORE, USER, Written, behind, clock_file, memory_file, padded, pair,
    record, text_of, words,
};

const ARRAY: u64 = 0x7000_0000_0000;

fn read(bytes: &[u8], process: Option<&str>) -> Result<Recording, Flaw> {
    PerfFile::open(Cursor::new(bytes)).and_then(|file| crate::recording(file, process))
}

fn refusal(bytes: &[u8]) -> String {
    match read(bytes, None).unwrap_err() {
        Flaw::Content { problem, hint } => format!("{problem}: {hint}"),
        Flaw::Unreadable(error) => panic!("{error}"),
    }
}

/// A file with an array, and loads of it that this many times stand for `period` accesses.
fn loads(count: u64, period: u64) -> Written {
    let mut written = Written::new(4, MEMORY_TYPE);
    written.mapping(20, ARRAY, 4 << 20, false, "//anon");
    (0..count).for_each(|at| written.memory_sample(40 + at, ARRAY + 64 * at, period, 300, RAM));
    written
}

fn task(kind: u32, [pid, parent, tid, parent_tid]: [u32; 4], time: u64) -> Vec<u8> {
    let body = words(&[pair(pid, parent), pair(tid, parent_tid), time]);
    record(kind, 0, &[body, behind(MEMORY_TYPE, time)].concat())
}

fn exec(pid: u32, name: &str, time: u64) -> Vec<u8> {
    record(3, USER | 1 << 13, &[words(&[pair(pid, pid)]), padded(name), behind(MEMORY_TYPE, time)].concat())
}

fn sample_of(pid: u32, time: u64, address: u64) -> Vec<u8> {
    record(9, USER, &words(&[ID, 0x1234, pair(pid, pid), time, address, pair(1, 0), 1000, 300, RAM]))
}

#[test]
fn cycles_with_addresses_are_no_accesses() {
    for source in [0, 1, 0x80 << 5, 0x10] {
        let mut cycles = Written::new(0, MEMORY_TYPE);
        cycles.memory_sample(40, ARRAY, 1000, 0, source);
        let told = refusal(&cycles.file());
        assert!(told.contains("(cycles) say neither load nor store"), "{told}");
        assert!(told.contains("perf record -d -e cpu-clock:u"), "{told}");
    }
    let mut raw = Written { config: 0x1234, ..Written::new(4, MEMORY_TYPE) };
    raw.memory_sample(40, ARRAY, 1000, 0, 0);
    assert!(refusal(&raw.file()).contains("of r1234, and the data source of none says load or store"));
}

#[test]
fn cycles_with_registers_are_time() {
    let cpu = text_of("Intel(R) Xeon(R) CPU @ 2.00GHz");
    let mut cycles = Written { features: vec![(8, cpu)], ..Written::new(0, CLOCK_TYPE) };
    for time in 0..10 {
        let mut registers = [0; 18];
        registers[register::IP] = 0x40_0010;
        cycles.clock_sample(1_000_000 * time, &registers);
    }
    let recording = read(&cycles.file(), None).unwrap();
    assert_eq!(recording.samples.len(), 10);
    assert!((recording.cpu_s - 10.0 * 1_003_009.0 / 2e9).abs() < 1e-12, "periods over the clock: {}", recording.cpu_s);
    assert!((recording.period_ns - 1_003_009.0 / 2.0).abs() < 1e-6);
    assert!(recording.warnings.contains(&Warning::CyclesAsTime { ghz: 2.0, stated: true }));
}

#[test]
fn a_fixed_period_is_that_of_the_event() {
    let without_period = MEMORY_TYPE & !perf::PERF_SAMPLE_PERIOD;
    let sample = |written: &mut Written| {
        let body = [ID, 0x1234, pair(PID, PID), 40, ARRAY, pair(1, 0), 300, RAM];
        written.data.extend(record(9, USER, &words(&body)));
    };
    let mut fixed = Written { period: Some(10_009), ..Written::new(4, without_period) };
    sample(&mut fixed);
    assert_eq!(read(&fixed.file(), None).unwrap().accesses[0].period, 10_009);
    let mut unknown = Written::new(4, without_period);
    sample(&mut unknown);
    let recording = read(&unknown.file(), None).unwrap();
    assert_eq!(recording.accesses[0].period, 0);
    assert!(recording.warnings.contains(&Warning::PeriodUnknown { event: "r0".to_owned() }));
}

#[test]
fn what_limits_an_event_is_said() {
    let slow = Written { config: 0x1cd, config1: 30, ..loads(2, 1000) };
    let warnings = read(&slow.file(), None).unwrap().warnings;
    assert!(warnings.contains(&Warning::LatencyThreshold { event: "r1cd".to_owned(), cycles: 30 }));
    assert!(warnings.contains(&Warning::CacheAssumed { bytes: 32 << 20 }));
    let units = |name: &str| (16, [&1_u32.to_le_bytes()[..], &4_u32.to_le_bytes(), &text_of(name)].concat());
    let by_cycles = |config| {
        let file = Written { config, features: vec![units("ibs_op")], ..loads(2, 1000) }.file();
        read(&file, None).unwrap().warnings.iter().any(|told| matches!(told, Warning::PeriodInCycles { .. }))
    };
    assert!(by_cycles(0) && !by_cycles(1 << 19));
    let spe = Written { period: Some(4096), features: vec![units("arm_spe_0")], ..loads(2, 1) };
    let recording = read(&spe.file(), None).unwrap();
    assert_eq!(recording.accesses[0].period, 4096);
}

#[test]
fn events_are_called_what_the_file_calls_them() {
    let name = text_of("cpu/mem-loads,ldlat=50/P");
    let attribute = [0; 128];
    let list = [&words(&[pair(1, 128)]), &attribute[..], &1_u32.to_le_bytes(), &name, &words(&[ID])].concat();
    let written = Written { features: vec![(12, list)], ..loads(1, 1000) };
    let warnings = read(&written.file(), None).unwrap().warnings;
    let told = Warning::LatencyThreshold { event: "cpu/mem-loads,ldlat=50/P".to_owned(), cycles: 50 };
    assert!(warnings.contains(&told), "{warnings:?}");
}

#[test]
fn a_trace_of_arm_is_refused_with_the_command_that_reads_it() {
    let mut spe = Written::new(10, MEMORY_TYPE);
    spe.data.extend(record(70, 0, &words(&[pair(4, 0), 0])));
    assert!(refusal(&spe.file()).ends_with("perf inject --itrace=M -i {file} -o injected.data"));
    let mut branches = Written::new(10, MEMORY_TYPE);
    branches.data.extend(record(70, 0, &words(&[pair(1, 0), 0])));
    assert!(refusal(&branches.file()).contains("trace of its branches"));
}

#[test]
fn code_of_another_architecture_is_refused_by_its_name() {
    let mut arm = Written { features: vec![(6, text_of("aarch64"))], ..Written::new(1, CLOCK_TYPE) };
    arm.clock_sample(40, &[7; 18]);
    let told = refusal(&arm.file());
    assert!(told.contains("code of aarch64") && told.contains("perf inject --itrace=M"), "{told}");
    let accesses = Written { features: vec![(6, text_of("aarch64"))], ..loads(3, 1000) };
    assert_eq!(read(&accesses.file(), None).unwrap().accesses.len(), 3, "addresses need no code");
}

#[test]
fn the_stack_of_a_thread_is_one() {
    let mut written = loads(1, 1000);
    written.mapping(50, 0x7200_0000_0000, 8 << 20, false, "//anon");
    written.data.extend(task(7, [PID, PID, PID + 1, PID], 60));
    let paths = |recording: Recording| recording.mappings.into_iter().map(|mapping| mapping.path).collect::<Vec<_>>();
    assert_eq!(paths(read(&written.file(), None).unwrap()), ["[anon:1 4MiB]", "[stack]"]);
}

#[test]
fn the_program_is_what_ran_after_its_exec_until_its_exit() {
    let mut written = Written { data: Vec::new(), ..Written::new(4, MEMORY_TYPE) };
    written.mapping(5, 0x40_0000, 0x1000, true, "/usr/bin/perf");
    written.data.extend(exec(PID, "app", 10));
    written.mapping(20, 0x40_0000, 0x1000, true, "/opt/app");
    written.memory_sample(40, ARRAY, 1000, 300, RAM);
    written.data.extend(task(4, [PID, 1, PID, 1], 1_000_000_010));
    let recording = read(&written.file(), None).unwrap();
    assert_eq!(recording.command, ["/opt/app", "-n"]);
    assert_eq!((recording.start_ns, recording.end_ns), (10, 1_000_000_010));
}

#[test]
fn several_programs_are_chosen_among() {
    let mut written = loads(2, 1000);
    for (pid, name) in [(20, "db"), (30, "sh")] {
        written.data.extend(exec(pid, name, 15));
        (0..pid).for_each(|at| written.data.extend(sample_of(pid, 50 + u64::from(at), ARRAY)));
    }
    written.data.extend(task(7, [31, 30, 31, 30], 60));
    written.data.extend(sample_of(31, 70, ARRAY));
    let told = refusal(&written.file());
    assert!(told.contains("several programs: sh (30 of the samples), db (20 of the samples)"), "{told}");
    assert!(told.ends_with("tierloom profile --from {file} --process sh"), "{told}");
    let chosen = |process| read(&written.file(), Some(process)).unwrap();
    assert_eq!((chosen("db").pid, chosen("db").accesses.len(), chosen("20").accesses.len()), (20, 20, 20));
    assert_eq!(chosen("sh").accesses.len(), 31, "with what it forked");
    assert!(
        chosen("db")
            .warnings
            .iter()
            .any(|told| matches!(told, Warning::OtherPrograms { chosen, .. } if chosen == "db"))
    );
    assert!(read(&written.file(), Some("no")).is_err());
}

#[test]
fn what_descends_from_a_program_is_of_it_however_far() {
    let mut written = loads(2, 1000);
    for (child, parent) in [(8, PID), (9, 8)] {
        written.data.extend(task(7, [child, parent, child, parent], 45));
    }
    written.data.extend(sample_of(9, 70, ARRAY));
    assert_eq!(read(&written.file(), None).unwrap().accesses.len(), 3, "through a process without a sample");
}

#[test]
fn what_was_forked_before_the_file_began_is_no_kinship() {
    let mut written = loads(2, 1000);
    written.data.extend(exec(20, "db", 15));
    written.data.extend(sample_of(20, 50, ARRAY));
    for pid in [20, PID] {
        written.data.extend(task(7, [pid, 1, pid, 1], 0));
    }
    assert!(refusal(&written.file()).contains("several programs"));
}

#[test]
fn build_ids_inside_mappings_are_taken() {
    const BUILD_ID: u16 = 1 << 14;
    let mut written = loads(1, 1000);
    let fields = words(&[pair(PID, PID), 0x40_0000, 0x1000, 0, pair(20, 0xab), 0, 0, pair(5, 2)]);
    let body = [fields, padded("/opt/app"), behind(MEMORY_TYPE, 30)].concat();
    written.data.extend(record(10, USER | BUILD_ID, &body));
    let build = read(&written.file(), None).unwrap().binaries["/opt/app"].clone();
    assert_eq!((build.len(), &build[..8]), (40, "ab000000"));
}

#[test]
fn far_shared_and_slow_stores_are_told_by_object() {
    let mut written = loads(1, 1000);
    written.memory_sample(50, ARRAY, 1000, 900, 0x02 | 0x100 << 5 | 0x10 << 19);
    written.memory_sample(60, ARRAY, 1000, 80, STORE);
    written.memory_sample(70, ARRAY, 1000, 10, CACHE);
    let (profile, _) = tierloom_analysis::analyse(&read(&written.file(), None).unwrap(), &tierloom_binary::Files);
    let source = profile.objects[0].data_source.unwrap();
    assert_eq!((source.remote, source.shared), (0.25, 0.25));
    assert_eq!((source.load_cycles.map(f64::round), source.store_cycles), (Some(403.0), Some(80.0)));
}

#[test]
fn addresses_of_the_kernel_are_its_own() {
    let mut written = loads(1, 1000);
    (0..9).for_each(|at| written.memory_sample(50 + at, 0xffff_8880_0000_0000, 1000, 300, RAM));
    let (profile, rows) = tierloom_analysis::analyse(&read(&written.file(), None).unwrap(), &tierloom_binary::Files);
    let rests: Vec<_> = profile.unattributed.iter().map(|rest| (rest.name.as_str(), rest.stall.share)).collect();
    assert_eq!(rests, [("[other]", 0.0), ("[kernel]", 0.9)]);
    assert_eq!(rows[9].object, -2);
    let warnings = profile.sampling.unwrap().warnings;
    assert!(warnings.contains(&Warning::KernelAddresses { share: 0.9 }));
    assert!(warnings.iter().any(|told| matches!(told, Warning::FewSamples { samples: 10, .. })));
}

#[test]
fn a_cut_file_is_read_up_to_the_cut() {
    let whole = loads(10, 1000).file();
    let samples = |bytes: &[u8]| read(bytes, None).map(|read| (read.accesses.len(), is_damaged(&read))).unwrap();
    assert_eq!(samples(&whole), (10, false));
    let one = 8 + 9 * 8;
    let end = 104 + 144 + 8 + loads(10, 1000).data.len();
    assert_eq!(samples(&whole[..end - 3 * one - 10]), (6, true), "in the middle of a record");
    let mut unfinished = whole[..end].to_vec();
    unfinished[48..56].fill(0);
    assert_eq!(samples(&unfinished), (10, true), "perf did not come to fill in the length");
    let mut broken = whole;
    broken[end - 2 * one + 6] = 3;
    assert_eq!(samples(&broken), (8, true), "a length that cannot be");
    for whole in [clock_file(), memory_file()] {
        assert!(refusal(&whole[..300]).contains("damaged"), "nothing is left of it");
    }
}

#[test]
fn a_stream_with_something_else_behind_it_is_read() {
    let file = loads(3, 1000);
    let attribute = &file.file()[104..104 + 128];
    let head = [&b"PERFILE2"[..], &words(&[16]), &record(64, 0, &[attribute, &words(&[ID])].concat())].concat();
    let whole = [&head[..], &file.data].concat();
    let read = |tail: &[u8]| read(&[&whole[..], tail].concat(), None).unwrap();
    assert_eq!((read(b"").accesses.len(), is_damaged(&read(b""))), (3, false));
    let tail = read(b"[ perf record: Woken up 1 times to write data ]\n");
    assert_eq!((tail.accesses.len(), is_damaged(&tail)), (3, true));
}

#[test]
fn the_first_version_is_called_so() {
    assert!(refusal(b"PERFFILE and more that nobody reads").contains("perf mem record -- CMD"));
}

fn is_damaged(recording: &Recording) -> bool {
    recording.warnings.iter().any(|told| matches!(told, Warning::Damaged { .. }))
}
