//! What holds for every policy, whatever the machine and the program.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod common;

use common::{GIB, any_data, data, machine_of, predictor, profile_of, small_profile};
use proptest::prelude::*;
use tierloom_model::units::round_to_u64;
use tierloom_model::{Action, Machine, ObjectKind, Pattern, Profile, Site};
use tierloom_place::{Context, Request, actions_for, compare, plan_from, policy};
use tierloom_predict::Predictor;

fn context<'a>(
    machine: &'a Machine,
    profile: &'a Profile,
    predictor: &'a Predictor,
    budget: Option<u64>,
) -> Context<'a> {
    Context::new(machine, profile, predictor, 0, machine.memories_by_distance(0), 0, budget).expect("it fits")
}

/// Allocations mostly, and what no rule selects.
fn any_kind() -> impl Strategy<Value = ObjectKind> {
    prop_oneof![3 => Just(ObjectKind::Heap), 1 => Just(ObjectKind::Arena), 1 => Just(ObjectKind::Constant)]
}

/// A machine with some shortage, a program, and a budget as a share of the first memory.
fn any_case() -> impl Strategy<Value = (Machine, Profile, f64)> {
    let gib = (4u64..80, 8u64..80).prop_map(|(near, far)| [near, far, 400]);
    let gb_s = (60.0f64..300.0, 30.0f64..120.0, 8.0f64..60.0).prop_map(|(a, b, c)| [a, b, c]);
    let objects = prop::collection::vec(any_data(), 1..9);
    (gib, gb_s, objects, 1u32..48, 0.0f64..20.0, 0.0f64..1.0).prop_map(
        |(gib, gb_s, objects, threads, compute_s, share)| {
            let all: Vec<usize> = (0..objects.len()).collect();
            let odd: Vec<usize> = (0..objects.len()).filter(|object| object % 2 == 1).collect();
            (machine_of(gib, gb_s), profile_of(&objects, &[&all, &odd], threads, compute_s), share)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_policy_fills_rows_and_respects_capacities((machine, profile, share) in any_case()) {
        let predictor = predictor(&machine, &profile);
        let budget = round_to_u64(share * machine.memories[0].capacity_bytes.value as f64);
        let context = context(&machine, &profile, &predictor, Some(budget));
        for policy in policy::usual(&context) {
            let Ok(placement) = policy.place(&context) else { continue };
            for row in placement.rows() {
                prop_assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{}", policy.name());
            }
            for (used, capacity) in placement.bytes_by_memory(&profile).iter().zip(&context.capacity) {
                prop_assert!(*used <= capacity * (1.0 + 1e-9) + 1.0, "{}: {used} of {capacity}", policy.name());
            }
            prop_assert!(policy.place(&context).is_ok_and(|again| again == placement), "{} twice", policy.name());
        }
    }

    #[test]
    fn tierloom_is_never_slower_than_another_policy((machine, profile, share) in any_case()) {
        let budget = Some(round_to_u64(share * machine.memories[0].capacity_bytes.value as f64));
        let comparison = compare(&machine, &profile, &Request { budget, ..Request::default() }).unwrap();
        let time_s = |name: &str| {
            let result = comparison.policies.iter().find(|result| result.policy == name).unwrap();
            result.outcome.as_ref().map_or(f64::INFINITY, |outcome| outcome.time_s)
        };
        for result in &comparison.policies {
            let (ours, other) = (time_s("tierloom"), time_s(&result.policy));
            prop_assert!(ours <= other * (1.0 + 1e-9), "{ours} s against {other} s of {}", result.policy);
        }
        prop_assert!(time_s(&comparison.chosen) <= time_s("tierloom") * (1.0 + 1e-3));
    }

    #[test]
    fn the_frontier_grows_in_memory_and_falls_in_time((machine, profile, _share) in any_case()) {
        let comparison = compare(&machine, &profile, &Request::default()).unwrap();
        for pair in comparison.frontier.windows(2) {
            prop_assert!(pair[0].fast_bytes < pair[1].fast_bytes && pair[0].time_s > pair[1].time_s);
        }
        let ours = comparison.policies.iter().find(|result| result.policy == "tierloom").unwrap();
        let best = comparison.frontier.last().unwrap();
        // Points that no reader could tell apart in time are one: the one with less memory.
        prop_assert!(best.time_s <= ours.outcome.as_ref().unwrap().time_s * (1.0 + 1.1e-5));
        prop_assert!((best.slowdown - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_plan_brings_back_the_placement_that_was_predicted(
        (machine, mut profile, share) in any_case(),
        kinds in prop::collection::vec(any_kind(), 8),
    ) {
        profile.objects.iter_mut().zip(kinds).for_each(|(object, kind)| object.kind = kind);
        let budget = round_to_u64(share * machine.memories[0].capacity_bytes.value as f64);
        let comparison = compare(&machine, &profile, &Request { budget: Some(budget), ..Request::default() }).unwrap();
        let predictor = predictor(&machine, &profile);
        let context = context(&machine, &profile, &predictor, Some(budget));
        for result in comparison.policies.iter().filter(|result| result.outcome.is_ok()) {
            let plan = plan_from(&machine, &profile, &comparison, &result.policy, &[]).unwrap();
            let read = tierloom_model::Plan::from_toml(&plan.to_toml(), "test").unwrap();
            let placement = context.realise(&actions_for(&read, &profile)).unwrap();
            for (row, expected) in placement.rows().iter().zip(&result.fractions) {
                prop_assert!(row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{}", result.policy);
            }
            let time_s = predictor.time_s(&predictor.demand(placement.rows()));
            prop_assert!((time_s - plan.predicted.time_s).abs() <= 1e-6 * time_s, "{}", result.policy);
        }
    }

    #[test]
    fn a_bound_on_the_slow_down_is_kept_with_the_least_fast_memory((machine, profile, slack) in any_case()) {
        let request = Request { max_slowdown: Some(slack), ..Request::default() };
        let comparison = compare(&machine, &profile, &request).unwrap();
        let chosen = comparison.policies.iter().find(|result| result.policy == comparison.chosen).unwrap();
        let best_s = comparison.frontier.last().unwrap().time_s;
        let time_s = chosen.outcome.as_ref().unwrap().time_s;
        prop_assert!(time_s <= best_s * (1.0 + slack) * (1.0 + 2e-5), "{time_s} s of {best_s} s within {slack}");
        prop_assert!(chosen.fast_bytes <= comparison.budget_bytes as f64 + 1.0);
        for point in &comparison.frontier {
            let less = point.fast_bytes < chosen.fast_bytes.round() - 1.0;
            prop_assert!(!less || point.slowdown > (1.0 + slack) * (1.0 - 1e-9), "{point:?} under {}", chosen.fast_bytes);
        }
    }

    #[test]
    fn a_slow_down_that_is_said_to_be_the_least_can_be_had((machine, mut profile, share) in any_case(), arena in any::<prop::sample::Index>()) {
        // No rule selects an arena, so what is found to keep the bound may be no plan.
        let arena = arena.index(profile.objects.len());
        profile.objects[arena].kind = ObjectKind::Arena;
        let budget = Some(round_to_u64(share * machine.memories[0].capacity_bytes.value as f64));
        let within = |slack: f64| {
            compare(&machine, &profile, &Request { max_slowdown: Some(slack), budget, ..Request::default() })
        };
        if let Err(error) = within(0.0) {
            let text = error.to_string();
            let allowed = text.split("hint: allow ").nth(1).and_then(|rest| rest.split(" %").next()).unwrap();
            let comparison = within(allowed.parse::<f64>().unwrap() / 100.0).unwrap();
            let chosen = comparison.policies.iter().find(|result| result.policy == comparison.chosen).unwrap();
            let best_s = comparison.frontier.last().unwrap().time_s;
            let needed = (chosen.outcome.as_ref().unwrap().time_s / best_s - 1.0) * 100.0;
            prop_assert!(needed > 0.0, "{text}: {needed} %");
        }
    }
}

#[test]
fn first_touch_spills_in_touch_order_by_distance() {
    let objects = [10.0, 30.0, 50.0, 100.0].map(|gib| data(gib, Pattern::Stream, 10.0, 0.0, 24.0));
    let mut profile = profile_of(&objects, &[&[0, 1, 2, 3]], 8, 1.0);
    // The largest is touched first: 64 GiB near, 36 far; then 10 + 18 far, 12 + 50 beyond.
    profile.objects[3].first_touch_s = -1.0;
    let machine = machine_of([64, 64, 128], [160.0, 80.0, 30.0]);
    let predictor = predictor(&machine, &profile);
    let context = context(&machine, &profile, &predictor, None);
    let placement = context.realise(&context.everywhere(&Action::FirstTouch)).unwrap();
    let bytes = |object: usize| placement.row(object).iter().map(|f| f * objects[object].gib).collect::<Vec<f64>>();
    for (object, expected) in
        [(3, [64.0, 36.0, 0.0]), (0, [0.0, 10.0, 0.0]), (1, [0.0, 18.0, 12.0]), (2, [0.0, 0.0, 50.0])]
    {
        assert!(bytes(object).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{object}: {:?}", bytes(object));
    }
}

#[test]
fn preferring_a_node_spills_by_distance_from_that_node() {
    let profile = profile_of(&[data(150.0, Pattern::Stream, 10.0, 0.0, 24.0)], &[&[0]], 8, 1.0);
    let machine = machine_of([64, 64, 128], [160.0, 80.0, 30.0]);
    let predictor = predictor(&machine, &profile);
    let context = context(&machine, &profile, &predictor, None);
    // The expander hangs on the second socket, so what does not fit goes to that socket's DRAM.
    let placement = context.realise(&[Action::Prefer("cxl".to_owned())]).unwrap();
    let bytes: Vec<f64> = placement.row(0).iter().map(|fraction| fraction * 150.0).collect();
    assert!((bytes[2] - 128.0).abs() < 1e-9 && (bytes[1] - 22.0).abs() < 1e-9, "{bytes:?}");
}

#[test]
fn a_bind_that_does_not_fit_says_how_much_is_missing() {
    let machine = machine_of([64, 64, 128], [160.0, 80.0, 30.0]);
    let comparison = compare(&machine, &small_profile(), &Request::default()).unwrap();
    let bind = comparison.policies.iter().find(|result| result.policy == "bind:ddr0").unwrap();
    let reason = bind.outcome.as_ref().unwrap_err();
    assert!(reason.starts_with("70GiB of data do not fit in ddr0: 6GiB too much, room ended at `o2`"), "{reason}");
    assert!(reason.contains("hint:"), "{reason}");
}

#[test]
fn data_that_fits_nowhere_is_an_error_that_says_by_how_much() {
    let machine = machine_of([16, 16, 16], [160.0, 80.0, 30.0]);
    let text = compare(&machine, &small_profile(), &Request::default()).unwrap_err().to_string();
    assert!(text.contains("70GiB") && text.contains("48GiB") && text.contains("22GiB too much"), "{text}");
    let budget = Request { budget: Some(GIB), nodes: Some(vec!["ddr0".into(), "cxl".into()]), ..Request::default() };
    let machine = machine_of([64, 64, 60], [160.0, 80.0, 30.0]);
    let text = compare(&machine, &small_profile(), &budget).unwrap_err().to_string();
    assert!(text.contains("9GiB too much") && text.contains("give more fast memory"), "{text}");
}

#[test]
fn object_interleave_takes_the_large_and_much_accessed() {
    // 40 % of the footprint each for two streams, one of them hardly read; the hot table is small.
    let objects = [
        data(40.0, Pattern::Stream, 400.0, 200.0, 24.0),
        data(40.0, Pattern::Stream, 10.0, 0.0, 24.0),
        data(4.0, Pattern::Random, 900.0, 0.0, 6.0),
    ];
    let profile = profile_of(&objects, &[&[0, 1, 2]], 16, 1.0);
    let machine = machine_of([64, 64, 128], [160.0, 80.0, 30.0]);
    let predictor = predictor(&machine, &profile);
    let context = context(&machine, &profile, &predictor, None);
    let interleaved = |name: &str| -> Vec<bool> {
        let actions = policy::by_name(name, &context).unwrap().actions(&context).unwrap();
        actions.iter().map(|action| matches!(action, Action::Interleave(_))).collect()
    };
    assert_eq!(interleaved("object-interleave:ddr0+cxl"), [true, false, false]);
    assert_eq!(interleaved("object-interleave-traffic:ddr0+cxl"), [true, false, true]);
}

#[test]
fn soar_takes_what_is_waited_for_most_per_byte() {
    let objects = [
        data(40.0, Pattern::Stream, 400.0, 0.0, 24.0),
        data(60.0, Pattern::Random, 300.0, 0.0, 6.0),
        data(20.0, Pattern::Chain, 20.0, 0.0, 1.0),
    ];
    let profile = profile_of(&objects, &[&[0, 1, 2]], 16, 1.0);
    let machine = machine_of([64, 64, 128], [160.0, 80.0, 30.0]);
    let predictor = predictor(&machine, &profile);
    let context = context(&machine, &profile, &predictor, None);
    let actions = policy::by_name("soar", &context).unwrap().actions(&context).unwrap();
    // s/ns per GiB: chain 20/1/20, random 300/6/60, stream 400/24/40; the random one no longer fits near.
    let node = |name: &str| Action::Prefer(name.to_owned());
    assert_eq!(actions, [node("ddr0"), node("ddr1"), node("ddr0")]);
}

#[test]
fn automatic_weights_reach_the_kernel_as_it_would_set_them() {
    let (machine, profile) = (machine_of([64, 64, 128], [160.0, 80.0, 30.0]), small_profile());
    let predictor = predictor(&machine, &profile);
    let context = context(&machine, &profile, &predictor, None);
    let actions = policy::by_name("weighted-auto:ddr0+cxl", &context).unwrap().actions(&context).unwrap();
    // The lesser of reads and writes is 128, 128 and 30 GB/s: of 32 parts 14, 14 and 3, rounded down.
    let weights = Action::Weighted([("ddr0".to_owned(), 14), ("cxl".to_owned(), 3)].into());
    assert_eq!(actions, vec![weights; profile.objects.len()]);
}

#[test]
fn names_are_read_back_as_they_are_written() {
    let (machine, profile) = (machine_of([64, 64, 128], [160.0, 80.0, 30.0]), small_profile());
    let predictor = predictor(&machine, &profile);
    let context = context(&machine, &profile, &predictor, None);
    for policy in policy::usual(&context) {
        let again = policy::by_name(&policy.name(), &context).unwrap();
        assert_eq!((again.name(), again.about()), (policy.name(), policy.about()));
    }
    let weighted = policy::by_name("weighted:ddr0=3+cxl=1", &context).unwrap();
    assert_eq!(weighted.name(), "weighted:ddr0=3+cxl=1");
    for (wrong, hint) in [
        ("fastest", "use one of: usual, local"),
        ("weighted:ddr0", "write for example weighted:ddr0=3"),
        ("weighted:ddr0=0", "1 to 255"),
        ("interleave:ddr0+hbm", "no memory `hbm`"),
    ] {
        let text = policy::by_name(wrong, &context).err().unwrap().to_string();
        assert!(text.contains(hint), "{text}");
    }
}

#[test]
fn what_no_rule_can_select_has_none_and_counts_where_the_default_puts_it() {
    let mut profile = small_profile();
    profile.objects[1].kind = ObjectKind::Constant;
    profile.objects[3].kind = ObjectKind::File;
    profile.objects[3].site = Site::File("/data/list".to_owned());
    let machine = common::machine();
    let request = Request { budget: Some(profile.footprint_bytes() / 2), ..Request::default() };
    let comparison = compare(&machine, &profile, &request).unwrap();
    assert_eq!(comparison.unselected, ["o1", "o3"]);
    for result in &comparison.policies {
        let uniform = result.actions.iter().all(|action| *action == result.actions[0]);
        assert!(uniform || result.actions[1] == result.actions[3], "{}: one default", result.policy);
    }
    let plan = plan_from(&machine, &profile, &comparison, "soar", &[]).unwrap();
    assert_eq!(plan.rules.iter().map(|rule| rule.object.as_str()).collect::<Vec<_>>(), ["o0", "o2"]);
    profile.objects[3].site = Site::File("/dev/shm/list".to_owned());
    assert!(profile.objects[3].can_be_placed(), "shared memory takes a policy");
}

#[test]
fn what_is_placed_leaves_room_for_what_no_rule_can_select() {
    // A hot arena and a cold one, which have one policy; a table that is read now and then, and one that is all the time.
    let objects = [(2.0, 100.0), (2.0, 1.0), (4.0, 20.0), (16.0, 400.0)]
        .map(|(gib, read_gb)| data(gib, Pattern::Random, read_gb, 0.0, 6.0));
    let mut profile = profile_of(&objects, &[&[0, 1, 2, 3]], 4, 1.0);
    profile.objects[..2].iter_mut().for_each(|arena| arena.kind = ObjectKind::Arena);
    let machine = machine_of([64, 64, 128], [160.0, 80.0, 30.0]);
    let comparison = compare(&machine, &profile, &Request { budget: Some(22 * GIB), ..Request::default() }).unwrap();
    let ours = comparison.policies.iter().find(|result| result.policy == "tierloom").unwrap();
    assert!(ours.fractions[3][0] > 0.99, "{:?}", ours.fractions);
}

#[test]
fn arenas_get_no_rule_and_are_left_to_first_touch() {
    let mut profile = small_profile();
    let arena = profile.objects.len() - 1;
    profile.objects[arena].kind = ObjectKind::Arena;
    let machine = common::machine();
    let footprint = profile.footprint_bytes();
    let request = Request { budget: Some(footprint / 2), ..Request::default() };
    let comparison = compare(&machine, &profile, &request).unwrap();
    let ours = comparison.policies.iter().find(|result| result.policy == "tierloom").unwrap();
    assert_eq!(ours.actions[arena], Action::FirstTouch);
    let plan = plan_from(&machine, &profile, &comparison, "tierloom", &[]).unwrap();
    assert_eq!(plan.rules.len(), arena);
    assert_eq!(plan.default, Action::FirstTouch);
    assert_eq!(actions_for(&plan, &profile), ours.actions);
}
