//! Files that `perf` 6.1 wrote of small programs: with sections, compressed, as a stream, both.

#![allow(clippy::unwrap_used, reason = "a file that cannot be read should stop the test")]

use std::path::Path;

use tierloom_recording::{Change, Mapping, Recording};

const PROGRAM: &str = "/tmp/seed/small";

fn recording(name: &str) -> Recording {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/perf_data");
    tierloom_perfdata::read(&corpus.join(name), None).unwrap()
}

/// Samples as `perf script -i NAME` counts them, and the array of 2 MiB that three of them look at.
#[test]
fn every_way_to_write_a_file_is_read() {
    for (name, samples) in [("clock", 13), ("compressed", 28), ("stream", 27), ("compressed_stream", 30)] {
        let Recording { command, samples: taken, mappings, processes, lost, start_ns, .. } = recording(name);
        assert_eq!((taken.len(), lost), (samples, 0), "{name}");
        assert_eq!(command, [PROGRAM], "{name}");
        assert!(taken.is_sorted_by_key(|sample| sample.time_ns) && taken[0].time_ns >= start_ns, "{name}");
        let is_program = |map: &&Mapping, ip| map.path == PROGRAM && (map.start..map.start + map.bytes).contains(&ip);
        let inside = taken.iter().filter(|sample| mappings.iter().any(|map| is_program(&map, sample.ip())));
        assert!(inside.count() * 2 > samples, "{name}: most of the time is the program's own");
        let array = mappings.iter().find(|map| map.path.starts_with("[anon:") && map.bytes >> 21 == 1);
        assert!(array.is_some() || name == "clock", "{name}: {mappings:?}");
        assert_eq!(processes[0].change, Change::Exec { name: "small".to_owned() }, "{name}");
    }
}

#[test]
fn what_a_file_says_of_the_run_is_found_in_sections_and_in_streams() {
    for name in ["clock", "compressed", "stream", "compressed_stream"] {
        let processor = recording(name).processor;
        assert_eq!((processor.name.as_str(), processor.llc_bytes), ("AMD EPYC", 32 << 20), "{name}");
    }
    for (name, build_id) in
        [("clock", "89cd94267a839e61427993bc80666aa8f660bfb4"), ("stream", "b29e8cfa30415322cd15552342251172081388db")]
    {
        assert_eq!(recording(name).binaries.get(PROGRAM).map(String::as_str), Some(build_id), "{name}");
    }
}

#[test]
fn a_folder_of_one_file_is_read_and_one_with_a_part_a_thread() {
    let folder = std::env::temp_dir().join(format!("tierloom-perf-data-{}", std::process::id()));
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/perf_data");
    std::fs::create_dir_all(&folder).unwrap();
    let file = std::fs::read(corpus.join("clock")).unwrap();
    std::fs::write(folder.join("data"), &file).unwrap();
    assert_eq!(tierloom_perfdata::read(&folder, None).unwrap().samples.len(), 13);
    let [start, length] =
        [40, 48].map(|at: usize| usize::try_from(u64::from_le_bytes(file[at..at + 8].try_into().unwrap())).unwrap());
    let records = &file[start..start + length];
    std::fs::write(folder.join("data.0"), records).unwrap();
    std::fs::write(folder.join("data.1"), []).unwrap();
    let read = tierloom_perfdata::read(&folder, None).unwrap();
    assert_eq!(read.samples.len(), 26, "what the file has, and the same from a thread");
    assert!(read.samples.is_sorted_by_key(|sample| sample.time_ns));
    std::fs::write(folder.join("data.1"), &records[..length - 5]).unwrap();
    let read = tierloom_perfdata::read(&folder, None).unwrap();
    let is_damaged = |told: &tierloom_model::Warning| matches!(told, tierloom_model::Warning::Damaged { .. });
    assert!(read.samples.len() > 26 && read.warnings.iter().any(is_damaged));
    std::fs::remove_file(folder.join("data.0")).unwrap();
    let missing = tierloom_perfdata::read(&folder, None).unwrap_err().to_string();
    assert!(missing.contains("data.0 of this folder is missing"), "{missing}");
    std::fs::remove_dir_all(&folder).unwrap();
}
