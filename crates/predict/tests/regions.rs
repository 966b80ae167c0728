//! More threads share out the parallel regions that one thread was seen in, and nothing else.

#![allow(clippy::unwrap_used, reason = "test data")]

mod common;

use common::{access, machine, object, phase, profile};
use tierloom_model::{Pattern, Placement, Prediction, Profile, Sampling};
use tierloom_predict::{Predictor, Run};

/// One thread's 8 s of computing and a chain of lines, so much of it in parallel regions.
fn seen_with_one(in_regions: Option<f64>) -> Profile {
    let mut seen = profile(
        vec![object("o", 1 << 30)],
        vec![phase("whole", 1, 8.0, vec![access("o", Pattern::Chain, 64e6, 0.0, 1.0)])],
    );
    seen.phases[0].in_regions = in_regions;
    seen.sampling = Some(Sampling {
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
    seen
}

fn predicted(seen: &Profile, threads: u32) -> Prediction {
    Predictor::new(&machine(), seen, Run { socket: 0, threads }).unwrap().predict(&Placement::uniform(1, 3, 0))
}

#[test]
fn regions_are_shared_out_and_the_rest_is_waited_for() {
    let one_s = predicted(&seen_with_one(Some(1.0)), 1).time_s;
    for (in_regions, threads) in [(1.0, 4), (0.75, 4), (0.5, 8), (0.0, 8)] {
        let found = predicted(&seen_with_one(Some(in_regions)), threads);
        // Each further thread does 82 % as much as one.
        let worth = 1.0 + 0.82 * f64::from(threads - 1);
        let expected_s = one_s * (1.0 - in_regions + in_regions / worth);
        assert!((found.time_s / expected_s - 1.0).abs() < 0.01, "{in_regions} of {threads}: {}", found.time_s);
    }
    // Where nobody looked nothing is shared out.
    assert!((predicted(&seen_with_one(None), 8).time_s / one_s - 1.0).abs() < 1e-9);
}

#[test]
fn the_range_holds_threads_that_wait_for_each_other() {
    let (one, eight) = (predicted(&seen_with_one(Some(1.0)), 1), predicted(&seen_with_one(Some(1.0)), 8));
    let (narrow, wide) = (one.high_s / one.time_s, eight.high_s / eight.time_s);
    // Seven further threads do as much as 5.74; as 4.2 at the least, and as seven at the most.
    assert!((wide / narrow / (6.74 / 5.2) - 1.0).abs() < 0.03, "{narrow} {wide}");
    assert!((eight.low_s / eight.time_s / (one.low_s / one.time_s) / (6.74 / 8.0) - 1.0).abs() < 0.03);
    let said = |found: &Prediction| found.assumptions.iter().any(|words| words.contains("82 % as much as one"));
    assert!(said(&eight) && !said(&one));
}

#[test]
fn a_phase_that_one_of_several_threads_was_alone_in_stays_alone() {
    let mut seen = seen_with_one(Some(1.0));
    seen.program.threads = 4;
    let alone_s = predicted(&seen, 4).time_s;
    assert!((alone_s / predicted(&seen, 1).time_s - 1.0).abs() < 1e-9);
}
