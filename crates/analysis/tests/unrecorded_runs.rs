//! Runs that nobody recorded tell how long a program takes; the one that was recorded tells what it does meanwhile.

use tierloom_analysis::analyse;
use tierloom_binary::Files;
use tierloom_model::{Profile, Warning};
use tierloom_recording::{Clock, Event, Exit, Recording, UnrecordedRun};

const SECOND_NS: u64 = 1_000_000_000;

/// A run of two seconds, of which it worked one; and others, by how long they took and how they ended.
fn profile(others: &[(f64, u8)]) -> Profile {
    let recording = Recording {
        event: Event::CpuClock,
        period_ns: 1e7,
        wall_s: 2.0,
        cpu_s: 1.0,
        end_ns: 2 * SECOND_NS,
        exit: Some(Exit::Code(0)),
        clocks: vec![Clock { time_ns: 2 * SECOND_NS, user_ns: SECOND_NS, ..Clock::default() }],
        unrecorded: others
            .iter()
            .map(|(wall_s, exit_code)| UnrecordedRun { wall_s: *wall_s, exit_code: *exit_code })
            .collect(),
        ..Recording::default()
    };
    analyse(&recording, &Files).0
}

/// Computing, and neither that nor waiting for memory, s.
fn times_s(profile: &Profile) -> (f64, f64) {
    let phases = profile.phases.iter();
    phases.fold((0.0, 0.0), |sum, phase| (sum.0 + phase.compute_s, sum.1 + phase.idle_s.unwrap_or(0.0)))
}

fn about_runs(profile: &Profile) -> Vec<Warning> {
    let warnings = profile.sampling.iter().flat_map(|sampling| &sampling.warnings).cloned();
    warnings.filter(|each| matches!(each, Warning::AnotherTime { .. } | Warning::RunsEndedOtherwise { .. })).collect()
}

fn is_near(times_s: (f64, f64), expected_s: (f64, f64)) -> bool {
    (times_s.0 - expected_s.0).abs() < 1e-9 && (times_s.1 - expected_s.1).abs() < 1e-9
}

#[test]
fn without_others_the_recorded_run_tells() {
    let profile = profile(&[]);
    assert!(is_near(times_s(&profile), (1.0, 1.0)), "{:?}", times_s(&profile));
    assert!(profile.program.unprofiled_s.is_empty() && about_runs(&profile).is_empty());
    assert!((profile.run_time().likely_s - 2.0).abs() < 1e-9);
}

#[test]
fn phases_take_as_long_as_the_median_of_others() {
    let profile = profile(&[(1.6, 0), (1.5, 0), (1.7, 0)]);
    assert!(is_near(times_s(&profile), (0.8, 0.8)), "{:?}", times_s(&profile));
    assert_eq!(profile.program.unprofiled_s, [1.6, 1.5, 1.7]);
    // 95 % of further runs are within 0.5 s.
    assert!(about_runs(&profile).is_empty(), "{:?}", about_runs(&profile));
}

#[test]
fn a_recorded_run_that_took_another_time_than_others_is_told() {
    let warnings = about_runs(&profile(&[(1.6, 0), (1.59, 0), (1.61, 0)]));
    let [Warning::AnotherTime { longer, runs: 3 }] = warnings[..] else { panic!("{warnings:?}") };
    assert!((longer - 0.25).abs() < 1e-9);
}

#[test]
fn runs_that_ended_otherwise_do_not_count() {
    let profile = profile(&[(0.1, 3), (1.98, 0)]);
    assert_eq!(profile.program.unprofiled_s, [1.98]);
    assert_eq!(about_runs(&profile), [Warning::RunsEndedOtherwise { runs: 1, of: 2 }]);
}
