//! What a prediction says adds up.

#![allow(clippy::unwrap_used, reason = "test data")]

mod common;

use common::{machine, small_profile};
use tierloom_model::Placement;
use tierloom_predict::{Predictor, Run};

fn predictor(threads: u32) -> Predictor {
    Predictor::new(&machine(), &small_profile(), Run { socket: 0, threads }).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-12)
}

fn placements() -> Vec<Placement> {
    let mixed = vec![vec![0.5, 0.3, 0.2], vec![0.0, 0.0, 1.0], vec![0.9, 0.0, 0.1], vec![0.0, 1.0, 0.0]];
    let mut all: Vec<Placement> = (0..3).map(|memory| Placement::uniform(4, 3, memory)).collect();
    all.push(Placement::new(mixed, 3).unwrap());
    all
}

#[test]
fn traffic_time_and_stalls_add_up() {
    for threads in [1, 4, 16, 64] {
        let predictor = predictor(threads);
        for placement in placements() {
            let prediction = predictor.predict(&placement);
            let bytes: f64 = prediction.tiers.iter().map(|tier| tier.read_bytes + tier.write_bytes).sum();
            assert!(close(bytes, 795e9));
            assert!(close(prediction.time_s, prediction.compute_s + prediction.stall_s));
            let stalls: f64 = prediction.objects.iter().map(|object| object.stall_s).sum();
            assert!(close(stalls, prediction.stall_s), "{stalls} {}", prediction.stall_s);
            assert!(close(prediction.time_s, predictor.time_s(&predictor.demand(placement.rows()))));
            assert!(prediction.low_s < prediction.time_s && prediction.time_s < prediction.high_s);
            let phases_s: f64 = prediction.phases.iter().map(|phase| phase.time_s).sum();
            assert!(close(phases_s, prediction.time_s));
            for (memory, tier) in prediction.tiers.iter().enumerate() {
                let moved: f64 = prediction.phases.iter().map(|phase| phase.gb_s[memory] * phase.time_s * 1e9).sum();
                assert!(close(moved, tier.read_bytes + tier.write_bytes));
            }
        }
    }
}

use common::{access, object, phase, profile};
use tierloom_model::{Access, Bound, Pattern, Prediction, Profile, Share};
use tierloom_predict::PredictError;

/// One object of one access, whole in one memory of the test machine.
fn predict_one(access: Access, compute_s: f64, threads: u32, memory: usize) -> Prediction {
    let profile = profile(vec![object("o", 1 << 30)], vec![phase("p", threads, compute_s, vec![access])]);
    let predictor = Predictor::new(&machine(), &profile, Run { socket: 0, threads }).unwrap();
    predictor.predict(&Placement::uniform(1, 3, memory))
}

#[test]
fn a_single_dependent_chain_waits_one_latency_a_line() {
    let prediction = predict_one(access("o", Pattern::Chain, 64e6, 0.0, 1.0), 0.0, 1, 0);
    assert!((prediction.time_s / (1e6 * 110e-9) - 1.0).abs() < 0.01, "{}", prediction.time_s);
    assert_eq!(prediction.bound, Bound::Latency);
}

#[test]
fn four_chains_take_a_quarter() {
    let one = predict_one(access("o", Pattern::Chain, 64e6, 0.0, 1.0), 0.0, 1, 2).time_s;
    let four = predict_one(access("o", Pattern::Chain, 64e6, 0.0, 4.0), 0.0, 1, 2).time_s;
    assert!((one / four - 4.0).abs() < 0.01);
}

#[test]
fn computing_is_the_bound_when_memory_is_hardly_used() {
    let prediction = predict_one(access("o", Pattern::Random, 64e3, 0.0, 1.0), 10.0, 4, 0);
    assert_eq!(prediction.bound, Bound::Compute);
    assert!((prediction.time_s - 2.5).abs() < 1e-3);
}

#[test]
fn a_full_memory_and_a_full_link_are_named() {
    let local = predict_one(access("o", Pattern::Stream, 1e12, 0.0, 24.0), 0.0, 64, 0);
    assert_eq!(local.bound, Bound::Bandwidth("ddr0".to_owned()));
    assert!((local.time_s / (1000.0 / 200.0) - 1.0).abs() < 1e-6, "takes the roofline: {}", local.time_s);
    assert!((local.tiers[0].utilisation - 1.0).abs() < 1e-6);
    let remote = predict_one(access("o", Pattern::Stream, 1e12, 0.0, 24.0), 0.0, 64, 1);
    assert_eq!(remote.bound, Bound::Bandwidth("upi".to_owned()));
}

#[test]
fn what_limits_the_run_is_not_what_limits_its_longest_phase() {
    let chase = |name: &str| phase(name, 1, 0.0, vec![access("o", Pattern::Chain, 64e6, 0.0, 1.0)]);
    let phases = vec![phase("set up", 1, 0.15, Vec::new()), chase("a"), chase("b")];
    let profile = profile(vec![object("o", 1 << 30)], phases);
    let predictor = Predictor::new(&machine(), &profile, Run { socket: 0, threads: 1 }).unwrap();
    let prediction = predictor.predict(&Placement::uniform(1, 3, 0));
    let told: Vec<(&str, &Bound)> = prediction.phases.iter().map(|each| (each.phase.as_str(), &each.bound)).collect();
    assert_eq!(told, [("set up", &Bound::Compute), ("a", &Bound::Latency), ("b", &Bound::Latency)]);
    assert!(prediction.phases[0].time_s > prediction.phases[1].time_s);
    assert_eq!(prediction.bound, Bound::Latency);
}

/// Nearly full, but the program would hardly gain by a wider memory.
#[test]
fn a_memory_that_is_full_while_the_program_mostly_computes_is_not_the_bound() {
    let prediction = predict_one(access("o", Pattern::Stream, 220e9, 0.0, 24.0), 51.0, 64, 0);
    assert!(prediction.tiers[0].utilisation > 0.85 && prediction.compute_s > 0.6 * prediction.time_s);
    assert_eq!(prediction.bound, Bound::Compute);
}

#[test]
fn at_the_roofline_latency_is_littles_law() {
    let local = predict_one(access("o", Pattern::Stream, 1e12, 0.0, 24.0), 0.0, 64, 0);
    let lines_in_flight = 64.0 * 24.0;
    assert!((local.tiers[0].loaded_ns / (lines_in_flight * 64.0 / 200.0) - 1.0).abs() < 1e-6);
}

#[test]
fn write_backs_fill_a_memory_but_nobody_waits_for_a_line() {
    let prediction = predict_one(access("o", Pattern::Stream, 0.0, 160e9, 24.0), 0.0, 8, 0);
    assert!((prediction.time_s - 1.0).abs() < 1e-6, "the half-read curve holds below its read fraction");
    assert!((prediction.objects[0].share - 1.0).abs() < 1e-9, "the queue is the object's");
}

#[test]
fn write_backs_that_fill_a_link_have_a_latency_to_report() {
    let prediction = predict_one(access("o", Pattern::Stream, 0.0, 60e9, 24.0), 0.0, 8, 1);
    assert_eq!(prediction.bound, Bound::Bandwidth("upi".to_owned()));
    assert!(prediction.tiers[1].loaded_ns.is_finite() && prediction.tiers[1].loaded_ns > 200.0);
}

#[test]
fn samples_that_are_unsure_widen_the_range() {
    let width = |stall: Option<Share>| {
        let mut unsure: Profile = small_profile();
        unsure.objects[0].stall = stall;
        let predictor = Predictor::new(&machine(), &unsure, Run { socket: 0, threads: 8 }).unwrap();
        let prediction = predictor.predict(&Placement::uniform(4, 3, 0));
        prediction.high_s - prediction.low_s
    };
    let unsure = Share { share: 0.5, low: 0.3, high: 0.7 };
    assert!(width(Some(unsure)) > 1.05 * width(None));
}

#[test]
fn a_serial_phase_stays_serial() {
    let mut mixed = small_profile();
    mixed.phases.push(phase("serial", 1, 3.0, Vec::new()));
    let time = |profile: &Profile, threads: u32| {
        let predictor = Predictor::new(&machine(), profile, Run { socket: 0, threads }).unwrap();
        predictor.predict(&Placement::uniform(4, 3, 0)).time_s
    };
    for threads in [1, 8, 64] {
        assert!((time(&mixed, threads) - time(&small_profile(), threads) - 3.0).abs() < 1e-6);
    }
}

#[test]
fn a_memory_that_no_path_reaches_takes_forever_if_it_is_used() {
    let mut cut = machine();
    cut.paths.retain(|path| !(path.from == "s0" && path.to == "cxl"));
    let predictor = Predictor::new(&cut, &small_profile(), Run { socket: 0, threads: 8 }).unwrap();
    let prediction = predictor.predict(&Placement::uniform(4, 3, 2));
    assert!(prediction.time_s.is_infinite() && prediction.high_s.is_infinite());
    let away = predictor.predict(&Placement::uniform(4, 3, 0));
    assert!(away.time_s.is_finite() && away.tiers[2].gb_s.abs() < 1e-12);
}

#[test]
fn a_program_that_does_nothing_takes_no_time() {
    let idle = profile(vec![object("o", 1 << 30)], Vec::new());
    let predictor = Predictor::new(&machine(), &idle, Run { socket: 0, threads: 1 }).unwrap();
    let prediction = predictor.predict(&Placement::uniform(1, 3, 0));
    assert!(prediction.time_s.abs() < 1e-12 && prediction.objects[0].share.abs() < 1e-12);
}

#[test]
fn wrong_requests_say_what_to_do() {
    let refuse = |socket, threads| {
        let error = Predictor::new(&machine(), &small_profile(), Run { socket, threads }).unwrap_err();
        assert!(error.to_string().contains("hint:"), "{error}");
        error
    };
    assert!(matches!(refuse(0, 0), PredictError::NoThreads { .. }));
    assert!(matches!(refuse(0, 65), PredictError::TooManyThreads { threads: 65, cores: 64, .. }));
    assert!(matches!(refuse(2, 1), PredictError::Contention(_)));
    let stray = profile(Vec::new(), vec![phase("p", 1, 1.0, vec![access("ghost", Pattern::Stream, 1.0, 0.0, 1.0)])]);
    let error = Predictor::new(&machine(), &stray, Run { socket: 0, threads: 1 }).unwrap_err();
    assert!(matches!(&error, PredictError::UnknownObject { object, .. } if object == "ghost"));
}

#[test]
fn the_cache_that_traffic_holds_for_is_held_against_what_a_core_reaches() {
    let said = |reached| {
        let mut profile = small_profile();
        profile.program.llc_bytes = reached;
        let predictor = Predictor::new(&machine(), &profile, Run { socket: 0, threads: 1 }).unwrap();
        let assumptions = predictor.predict(&Placement::uniform(4, 3, 0)).assumptions;
        assumptions.into_iter().find(|assumption| assumption.contains("last-level cache"))
    };
    assert_eq!(said(machine().sockets[0].llc_per_core_bytes.value), None);
    assert!(said(32 << 20).is_some_and(|words| words.contains("32MiB each") && words.contains("here it is 2MiB")));
}

#[test]
fn objects_that_are_never_there_together_are_said_to_be_counted_together() {
    let said = |profile: &tierloom_model::Profile| {
        let predictor = Predictor::new(&machine(), profile, Run { socket: 0, threads: 1 }).unwrap();
        let assumptions = predictor.predict(&Placement::uniform(4, 3, 0)).assumptions;
        assumptions.into_iter().find(|assumption| assumption.contains("at once"))
    };
    let mut profile = small_profile();
    assert_eq!(said(&profile), None);
    // grid is gone when index comes; table and list are there all the time.
    profile.objects[0].last_s = 0.4;
    profile.objects[1].first_s = 0.5;
    assert_eq!(profile.bytes_at_once(), 84 << 30);
    assert!(said(&profile).is_some_and(|words| words.contains("92GiB") && words.contains("84GiB")));
}

/// The test machine with near memory changed.
fn predict_on(change: impl Fn(&mut tierloom_model::Machine), access: Access, threads: u32) -> Prediction {
    let mut machine = machine();
    change(&mut machine);
    let profile = profile(vec![object("o", 1 << 30)], vec![phase("p", threads, 0.0, vec![access])]);
    let predictor = Predictor::new(&machine, &profile, Run { socket: 0, threads }).unwrap();
    predictor.predict(&Placement::uniform(1, 3, 0))
}

#[test]
fn random_reads_wait_their_own_latency_and_streams_do_not() {
    let apart = |machine: &mut tierloom_model::Machine| {
        machine.paths[0].random_idle_ns = Some(tierloom_fixtures::figure(150.0));
    };
    let time_s = |pattern: Pattern| predict_on(apart, access("o", pattern, 64e6, 0.0, 1.0), 1).time_s;
    for (pattern, ns) in [(Pattern::Stream, 110.0), (Pattern::Strided, 110.0), (Pattern::Random, 150.0)] {
        assert!((time_s(pattern) / (1e6 * ns * 1e-9) - 1.0).abs() < 0.01, "{pattern:?}");
    }
    let chain = predict_on(apart, access("o", Pattern::Chain, 64e6, 0.0, 1.0), 1);
    assert!((chain.tiers[0].loaded_ns - 150.0).abs() < 2.0 && (chain.tiers[0].idle_ns - 110.0).abs() < 1e-9);
    let stalls: f64 = chain.objects.iter().map(|object| object.stall_s).sum();
    assert!(close(stalls, chain.stall_s));
}

#[test]
fn traffic_of_each_memory_is_over_the_run_time() {
    // The second memory has what one of the two phases looks up.
    let near = || vec![1.0, 0.0, 0.0];
    let placement = Placement::new(vec![near(), near(), near(), vec![0.0, 1.0, 0.0]], 3).unwrap();
    let prediction = predictor(8).predict(&placement);
    assert!(prediction.tiers[1].gb_s > 0.0);
    for tier in &prediction.tiers {
        assert!(close(tier.gb_s, (tier.read_bytes + tier.write_bytes) * 1e-9 / prediction.time_s), "{tier:?}");
        assert!(tier.utilisation <= 1.0 && (tier.utilisation > 0.0) == (tier.gb_s > 0.0), "{tier:?}");
    }
}

/// 64 cores would have 1536 lines under way; the memory takes 160.
#[test]
fn a_memory_that_takes_so_many_lines_bounds_the_bandwidth_and_its_own_latency() {
    let stream = || access("o", Pattern::Stream, 640e9, 0.0, 64.0);
    let limited = |machine: &mut tierloom_model::Machine| {
        machine.memories[0].lines_in_flight = Some(tierloom_fixtures::figure(160.0));
    };
    let prediction = predict_on(limited, stream(), 64);
    let tier = &prediction.tiers[0];
    assert!((tier.gb_s * tier.loaded_ns / 64.0 / 160.0 - 1.0).abs() < 1e-3, "{tier:?}");
    assert!(prediction.time_s > predict_on(|_| (), stream(), 64).time_s * 1.05);
    assert_eq!(prediction.bound, Bound::Bandwidth(tier.memory.clone()));
    let stalls: f64 = prediction.objects.iter().map(|object| object.stall_s).sum();
    assert!(close(stalls, prediction.stall_s));
}
