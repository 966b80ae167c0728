//! Time in the library that the recorder puts into a program is not the program's.

use tierloom_analysis::analyse;
use tierloom_binary::Files;
use tierloom_recording::{Clock, Event, InCopy, Mapping, PRELOAD_LIBRARY, REGISTERS, Recording, Sample, register};

const SECOND_NS: u64 = 1_000_000_000;

/// A second of a thread, of which so many of 100 samples are in the library, one behind the other.
fn recorded(in_library: u64) -> Recording {
    let map = |start: u64, path: &str| Mapping {
        time_ns: 0,
        pid: 7,
        start,
        bytes: 4096,
        file_offset: 0,
        executable: true,
        path: path.to_owned(),
    };
    let sample = |number: u64| {
        let mut registers = [0; REGISTERS];
        registers[register::IP] = if number < in_library { 0x2000 } else { 0x1000 };
        let time_ns = (number + 1) * SECOND_NS / 100;
        Sample { time_ns, pid: 7, tid: 7, instructions: 0, registers, kernel: false, copy: InCopy::No }
    };
    Recording {
        event: Event::CpuClock,
        period_ns: 1e7,
        wall_s: 1.0,
        cpu_s: 1.0,
        end_ns: SECOND_NS,
        mappings: vec![map(0x1000, "//anon"), map(0x2000, &format!("/here/{PRELOAD_LIBRARY}"))],
        samples: (0..100).map(sample).collect(),
        clocks: vec![Clock { time_ns: SECOND_NS, user_ns: SECOND_NS, ..Clock::default() }],
        ..Recording::default()
    }
}

#[test]
fn a_run_would_have_been_shorter_without_it() {
    for in_library in [0, 25, 60] {
        let (profile, samples) = analyse(&recorded(in_library), &Files);
        let own_s = 1.0 - in_library as f64 / 100.0;
        let worked_s: f64 = profile.phases.iter().map(|phase| phase.compute_s).sum();
        assert!((worked_s - own_s).abs() < 1e-9, "{in_library}: {worked_s}");
        assert!((profile.undisturbed().middle_s() - own_s).abs() < 1e-9, "{:?}", profile.undisturbed());
        assert!((profile.program.held_s.unwrap() - (1.0 - own_s)).abs() < 1e-9);
        assert_eq!(samples.len() as u64, 100 - in_library);
    }
}
