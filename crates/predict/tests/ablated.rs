//! Predictions without what some objects cost: nothing, all, and whatever is between.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "test data, and nothing is nothing")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use tierloom_model::{Placement, Prediction, Profile, Touched};
use tierloom_predict::{Predictor, Run, ablated};

mod common;
use common::{machine, small_profile};

fn predicted(profile: &Profile) -> Prediction {
    let here = machine();
    let predictor = Predictor::new(&here, profile, Run { socket: 0, threads: 8 }).unwrap();
    predictor.predict(&Placement::uniform(predictor.objects(), predictor.memories(), 0))
}

fn all() -> Vec<String> {
    small_profile().objects.into_iter().map(|object| object.name).collect()
}

fn without(profile: &Profile, names: &[String]) -> Profile {
    ablated(profile, &names.iter().map(String::as_str).collect::<BTreeSet<_>>()).likely
}

/// The profile as it would be held against the machine of its run: waiting by access, and what it is over that of the model.
fn anchored(waits: &[(f64, f64)]) -> Profile {
    let mut profile = small_profile();
    let accesses = profile.phases.iter_mut().flat_map(|phase| &mut phase.accesses);
    for (access, (wait_s, factor)) in accesses.zip(waits) {
        (access.wait_s, access.wait_factor) = (Some(*wait_s), Some(*factor));
    }
    profile
}

#[test]
fn to_ablate_nothing_changes_nothing() {
    let profile = small_profile();
    assert_eq!(without(&profile, &[]), profile);
    assert_eq!(without(&profile, &["no such object".to_owned()]), profile);
}

#[test]
fn without_all_objects_computing_is_left() {
    let profile = small_profile();
    let (before, after) = (predicted(&profile), predicted(&without(&profile, &all())));
    assert!(before.stall_s > 0.0);
    assert_eq!((after.time_s, after.stall_s), (before.compute_s, 0.0));
    assert!(after.tiers.iter().all(|tier| tier.read_bytes + tier.write_bytes == 0.0));
    assert_eq!((after.low_s, after.high_s), (after.time_s, after.time_s), "nothing of memory is left in doubt");
}

#[test]
fn others_gain_the_bandwidth_and_keep_their_lines() {
    let profile = small_profile();
    let (before, after) = (predicted(&profile), predicted(&without(&profile, &["grid".to_owned()])));
    let stall_s = |of: &Prediction, name: &str| of.objects.iter().find(|each| each.object == name).unwrap().stall_s;
    assert_eq!(stall_s(&after, "grid"), 0.0);
    for other in ["index", "table", "list"] {
        assert!(stall_s(&after, other) < stall_s(&before, other), "{other} waits for loaded memory");
        assert!(stall_s(&after, other) > 0.0);
    }
}

#[test]
fn waiting_for_caches_goes_too() {
    let mut profile = small_profile();
    let phase = &mut profile.phases[1];
    phase.accesses[0].touched =
        Some(Touched { bytes: 200e9, filled_bytes: 0.0, mlp: 6.0, beyond_core: None, cache_wait_s: 4.0 });
    let gone = without(&profile, &["table".to_owned()]);
    assert_eq!(gone.phases[1].compute_s, profile.phases[1].compute_s - 4.0);
    assert_eq!(gone.phases[1].accesses[0].reads, profile.phases[1].accesses[0].reads, "it is still touched");
}

#[test]
fn others_may_come_out_from_under_what_is_gone() {
    let profile = anchored(&[(6.0, 0.5), (1.0, 0.25), (2.0, 2.0), (1.0, 0.5), (1.0, 1.0)]);
    let ablated = ablated(&profile, &BTreeSet::from(["grid"]));
    let waits = |profile: &Profile| -> Vec<(f64, f64)> {
        let accesses = profile.phases.iter().flat_map(|phase| &phase.accesses);
        accesses.map(|access| (access.wait_s.unwrap(), access.wait_factor.unwrap())).collect()
    };
    assert_eq!(waits(&ablated.likely), [(0.0, 0.5), (1.0, 0.25), (2.0, 2.0), (1.0, 0.5), (0.0, 1.0)]);
    // In the first phase 6 s are free, and alone the index takes 3 s more; in the second, the list takes 1 s more.
    assert_eq!(waits(&ablated.uncovered), [(0.0, 0.5), (4.0, 1.0), (2.0, 2.0), (2.0, 1.0), (0.0, 1.0)]);

    let profile = anchored(&[(0.5, 0.5), (1.0, 0.25), (2.0, 2.0), (1.0, 0.5), (0.0, 1.0)]);
    let ablated = tierloom_predict::ablated(&profile, &BTreeSet::from(["grid"]));
    assert_eq!(waits(&ablated.uncovered)[1], (1.5, 0.375), "no longer than all were before");
    assert_eq!(waits(&ablated.uncovered)[3], (1.0, 0.5), "what was not waited for covers nothing");
}

proptest! {
    #[test]
    fn the_more_is_ablated_the_less_it_takes(which in prop::collection::vec(0_u8..3, 4)) {
        let names = |most: u8| -> Vec<String> {
            all().into_iter().zip(&which).filter(|(_, at)| **at < most).map(|(name, _)| name).collect()
        };
        let [few, more, most] = [1, 2, 3].map(|most| predicted(&without(&small_profile(), &names(most))));
        for (less, more) in [(&more, &few), (&most, &more)] {
            prop_assert!(less.time_s <= more.time_s * (1.0 + 1e-9), "{} {}", less.time_s, more.time_s);
            prop_assert!(less.low_s <= less.time_s && less.time_s <= less.high_s);
        }
    }
}
