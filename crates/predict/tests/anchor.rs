//! Predictions that are anchored to a run: on its machine they are what was measured, elsewhere they change as latencies do.

#![allow(clippy::unwrap_used, reason = "test data")]

use proptest::prelude::*;
use tierloom_model::{
    AccessCount, CountSource, Curve, Kind, Load, Machine, Origin, Placement, Prediction, Profile, Sampling, Share,
};
use tierloom_predict::{Predictor, Run, anchored};

mod common;
use common::{machine, small_profile};

/// The small profile as it is recorded where it runs for so long: seconds of waiting by access, computing and idle by phase.
fn recorded(waits_s: &[f64], compute_s: f64, idle_s: f64) -> Profile {
    let mut profile = small_profile();
    let mut waits_s = waits_s.iter().cycle();
    let mut wall_s = 0.0;
    for phase in &mut profile.phases {
        (phase.compute_s, phase.idle_s) = (compute_s, Some(idle_s));
        for access in &mut phase.accesses {
            access.wait_s = waits_s.next().copied();
        }
        let waited_s: f64 = phase.accesses.iter().filter_map(|access| access.wait_s).sum();
        wall_s += (compute_s + waited_s) / f64::from(phase.threads) + idle_s;
    }
    profile.program.wall_s = wall_s;
    profile.sampling = Some(Sampling {
        not_sampled: None,
        thread_local: None,
        counted_traffic: None,
        event: "cpu-clock".to_owned(),
        hz: 997.0,
        samples: 1000,
        lost: 0,
        skid_purity: 1.0,
        warnings: Vec::new(),
    });
    profile
}

fn time_s(machine: &Machine, profile: &Profile, memory: &str) -> f64 {
    predicted(machine, profile, memory).time_s
}

fn predicted(machine: &Machine, profile: &Profile, memory: &str) -> Prediction {
    let predictor = Predictor::new(machine, profile, Run { socket: 0, threads: profile.program.threads }).unwrap();
    let memory = machine.memory_index(memory).unwrap();
    let placement = Placement::uniform(predictor.objects(), predictor.memories(), memory);
    let prediction = predictor.predict(&placement);
    assert!(prediction.low_s <= prediction.time_s && prediction.time_s <= prediction.high_s);
    prediction
}

proptest! {
    #[test]
    fn on_its_machine_a_run_takes_what_it_took(
        waits_s in prop::collection::vec(0.0_f64..200.0, 5), compute_s in 0.1_f64..100.0, idle_s in 0.0_f64..5.0
    ) {
        let (here, profile) = (machine(), recorded(&waits_s, compute_s, idle_s));
        let (known, anchor) = anchored(&profile, &here).unwrap().unwrap();
        prop_assert!((anchor.measured_s - profile.program.wall_s).abs() < 1e-9);
        let again_s = time_s(&here, &known, "ddr0");
        prop_assert!((again_s / anchor.measured_s - 1.0).abs() < 0.011, "{} s, measured {} s", again_s, anchor.measured_s);
        let elsewhere_s = time_s(&here, &known, "cxl");
        prop_assert!(elsewhere_s >= again_s * 0.98, "{elsewhere_s} s in slow memory, {again_s} s in fast memory");
    }

    #[test]
    fn what_samples_leave_open_between_computing_and_waiting_changes_no_run_of_its_own(
        share in 0.2_f64..0.8, few in 0.1_f64..1.0, many in 1.0_f64..1.2
    ) {
        let mut here = machine();
        here.host = Some("here".to_owned());
        let mut profile = recorded(&[20.0, 5.0, 10.0, 5.0, 10.0], 100.0, 1.0);
        profile.program.host.clone_from(&here.host);
        for object in &mut profile.objects {
            object.accesses = None;
            object.stall = Some(Share { share, low: share * few, high: share * many });
        }
        let (known, _) = anchored(&profile, &here).unwrap().unwrap();
        let [same, far] = ["ddr0", "cxl"].map(|memory| {
            let found = predicted(&here, &known, memory);
            (found.high_s - found.low_s) / found.time_s
        });
        // Runs differ by 12 % to both sides, and latencies may be 3 % off.
        prop_assert!(same < 0.3, "the run's own placement is open to {same}");
        prop_assert!(far > same, "{far} in slow memory, {same} as it ran");
    }
}

#[test]
fn runs_without_the_profiler_tell_what_is_anchored_to_and_how_far_runs_differ() {
    let here = machine();
    let mut profile = recorded(&[20.0, 5.0, 10.0, 5.0, 10.0], 100.0, 1.0);
    let took_s = profile.program.wall_s;
    let range_of = |profile: &Profile| {
        let (known, anchor) = anchored(profile, &here).unwrap().unwrap();
        let found = predicted(&here, &known, "ddr0");
        ((found.high_s - found.low_s) / found.time_s, anchor)
    };
    let (of_one, anchor) = range_of(&profile);
    assert_eq!(anchor.unprofiled_runs, None);
    profile.program.unprofiled_s = vec![took_s * 0.99, took_s, took_s * 1.01];
    let (of_three, anchor) = range_of(&profile);
    assert!((anchor.measured_s - took_s).abs() < 1e-9 && anchor.unprofiled_runs == Some(3));
    // Half of it is 4.303 times the standard deviation of a hundredth, times the root of 4/3: 5 % and not 12 %.
    assert!(of_three < of_one - 0.12, "{of_three}, of the profiled run alone {of_one}");
    profile.program.unprofiled_s = vec![took_s * 0.7, took_s, took_s * 1.3];
    assert!(range_of(&profile).0 > of_one, "runs that differ by 30 %");
}

#[test]
fn memory_moved_no_more_than_the_run_had_time_for() {
    let here = machine();
    let high_s = |most: f64| {
        let mut profile = recorded(&[20.0, 5.0, 10.0, 5.0, 10.0], 100.0, 1.0);
        for object in &mut profile.objects {
            object.accesses = Some(AccessCount { count: 1.0, low: 1.0, high: most, source: CountSource::Estimated });
        }
        predicted(&here, &anchored(&profile, &here).unwrap().unwrap().0, "ddr0").high_s
    };
    assert!(high_s(1e6) <= 1.001 * high_s(100.0) && high_s(100.0) > 1.01 * high_s(1.0), "{}", high_s(1e6));
}

#[test]
fn who_waits_twice_as_long_as_modelled_loses_twice_as_much_elsewhere() {
    let here = machine();
    let lost_s = |waits_s: &[f64]| {
        let (known, _) = anchored(&recorded(waits_s, 10.0, 0.0), &here).unwrap().unwrap();
        time_s(&here, &known, "cxl") - time_s(&here, &known, "ddr0")
    };
    let (once_s, twice_s) = (lost_s(&[100.0, 20.0, 80.0, 20.0, 40.0]), lost_s(&[200.0, 40.0, 160.0, 40.0, 80.0]));
    assert!(once_s > 0.0 && (twice_s / once_s - 2.0).abs() < 0.3, "{once_s} s, {twice_s} s");
}

#[test]
fn on_another_machine_the_range_holds_what_the_model_alone_says() {
    let mut there = machine();
    there.host = Some("there".to_owned());
    let mut ran = recorded(&[1000.0, 200.0, 800.0, 200.0, 400.0], 10.0, 0.0);
    ran.program.host.clone_from(&there.host);
    let (known, anchor) = anchored(&ran, &there).unwrap().unwrap();
    assert!(anchor.modelled_s < anchor.measured_s / 2.0, "{anchor:?}");
    let range = |on: &Machine| {
        let predictor = Predictor::new(on, &known, Run { socket: 0, threads: 8 }).unwrap();
        let told = predictor.predict(&Placement::uniform(predictor.objects(), predictor.memories(), 0));
        (told.low_s, told.high_s)
    };
    let (low_s, high_s) = range(&machine());
    assert!(low_s < anchor.modelled_s && high_s > anchor.measured_s, "{low_s} to {high_s} s");
    assert!(range(&there).0 > 0.8 * anchor.measured_s, "where it ran, it is known: {:?}", range(&there));
}

#[test]
fn nothing_is_anchored_without_samples_of_waiting() {
    let here = machine();
    assert!(anchored(&small_profile(), &here).unwrap().is_none());
    let mut crowded = recorded(&[1.0], 1.0, 0.0);
    crowded.program.threads = 10_000;
    assert!(anchored(&crowded, &here).unwrap().is_none());
}

#[test]
fn a_machine_of_the_run_that_is_wrong_is_named() {
    let mut here = machine();
    let flat = |read_fraction| Curve {
        read_fraction,
        points: vec![[1.0, 250.0], [2.0, 260.0]],
        origin: Origin { kind: Kind::Measured, source: "test".to_owned(), how: String::new() },
    };
    for path in &mut here.paths {
        path.idle_ns.value = 400.0;
        path.load = Load::Points(vec![flat(1.0)]);
    }
    let told = anchored(&recorded(&[1.0], 1.0, 0.0), &here).unwrap_err().to_string();
    assert!(told.contains(&format!("machine `{}`, on which the profile was recorded", here.name)), "{told}");
    assert_eq!(told.matches("hint: ").count(), 1, "{told}");
}

#[test]
fn one_thread_waits_for_no_other() {
    let here = machine();
    let with_meeting = |meeting_s: f64| {
        let mut profile = small_profile();
        profile.phases.iter_mut().for_each(|phase| (phase.threads, phase.meeting_s) = (2, Some(meeting_s)));
        profile.program.threads = 2;
        profile
    };
    let time_s = |profile: &Profile, threads: u32| {
        let predictor = Predictor::new(&here, profile, Run { socket: 0, threads }).unwrap();
        predictor.predict(&Placement::uniform(predictor.objects(), predictor.memories(), 0)).time_s
    };
    let (none, some) = (with_meeting(0.0), with_meeting(3.0));
    let lost_s = 3.0 * some.phases.len() as f64;
    assert!(time_s(&some, 2) > time_s(&none, 2) + 0.9 * lost_s);
    assert!((time_s(&some, 1) - time_s(&none, 1)).abs() < 1e-9);
}

#[test]
fn what_others_took_from_several_threads_widens_the_range() {
    let here = machine();
    let mut disturbed = recorded(&[1.0, 2.0], 10.0, 0.0);
    let wall_s = disturbed.program.wall_s;
    disturbed.program.cpu_s = wall_s * f64::from(disturbed.program.threads);
    disturbed.program.queued_s = Some(wall_s / 2.0);
    let (_, anchor) = anchored(&disturbed, &here).unwrap().unwrap();
    assert!((anchor.least_s - wall_s / 2.0).abs() < 1e-9 && anchor.most_s > 0.9 * wall_s, "{anchor:?}");
    assert!((anchor.measured_s - f64::midpoint(anchor.least_s, anchor.most_s)).abs() < 1e-9);
}
