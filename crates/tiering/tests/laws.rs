//! Laws of the simulator: the two evaluators agree, runs repeat, nothing is lost, nothing moves that may not.
#![allow(clippy::unwrap_used, reason = "a fixture that is wrong should stop the test")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use tierloom_fixtures::{cxl, ddr, memory, path, two_sockets};
use tierloom_model::{Machine, MemoryKind, Pattern};
use tierloom_tiering::{
    BYTES_PER_PAGE, Evaluator, OURS, Outcome, Phase, Region, Request, Spread, Stream, Workload, WorkloadTag, policy,
    simulate,
};

const MIB: u64 = 1 << 20;

fn machine() -> Machine {
    let memories = vec![memory("fast", MemoryKind::Dram, "s0", 1), memory("slow", MemoryKind::Cxl, "s0", 4)];
    let paths = vec![path("s0", "fast", 100.0, &[], ddr(100.0)), path("s0", "slow", 300.0, &[], cxl(25.0))];
    two_sockets(memories, paths)
}

fn stream(region: &str, spread: Spread, visits: f64, pattern: Pattern) -> Stream {
    let bytes = if spread == Spread::Sweep { 4096.0 } else { 64.0 };
    Stream {
        region: region.to_owned(),
        part: [0.0, 1.0],
        spread,
        pattern,
        visits,
        read_bytes: visits * bytes,
        write_bytes: visits * bytes * 0.2,
        mlp: 4.0,
        wait_factor: 1.0,
        shared: false,
        source: String::new(),
    }
}

/// A cold region that is touched first, then a hot one: `rates` are visits a second.
fn workload(mib: [u64; 2], rates: [f64; 2], spread: Spread, seconds: f64) -> Workload {
    let region = |name: &str, mib: u64| Region {
        name: name.to_owned(),
        size_bytes: mib * MIB,
        locked: false,
        source: String::new(),
    };
    let streams = vec![
        stream("cold", Spread::Uniform, rates[0] * seconds, Pattern::Random),
        stream("hot", spread, rates[1] * seconds, Pattern::Random),
    ];
    Workload {
        kind: WorkloadTag::Workload,
        version: 1,
        name: "laws".to_owned(),
        title: String::new(),
        sources: BTreeMap::new(),
        threads: 4,
        regions: vec![region("cold", mib[0]), region("hot", mib[1])],
        main_works: true,
        filled_by: 1,
        filling: Vec::new(),
        phases: vec![Phase { name: "run".to_owned(), threads: 4, compute_s: 4.0 * seconds, streams }],
    }
}

fn run(workload: &Workload, policy: &str, evaluator: Evaluator, fast_mib: u64, seed: u64) -> Outcome {
    let request = Request { evaluator, fast_bytes: Some(fast_mib * MIB), seed, ..Request::of(policy) };
    simulate(&machine(), workload, &request).unwrap()
}

fn close(what: &str, a: f64, b: f64, share: f64, pages: f64) -> Result<(), TestCaseError> {
    let near = (a - b).abs() <= share * a.max(b) + pages;
    prop_assert!(near, "{what}: {a} against {b}");
    Ok(())
}

/// Both evaluators on a cold and a hot region of so many MiB with so much fast memory.
fn agree([cold, hot, fast]: [u64; 3], rates: [f64; 2], spread: Spread, name: &str) -> Result<(), TestCaseError> {
    let skewed = if matches!(spread, Spread::Zipf(_)) && name == "tiering" { 0.3 } else { 0.15 };
    let workload = workload([cold, hot], rates, spread, 6.0);
    let exact = run(&workload, name, Evaluator::Exact, fast, 1);
    let cohort = run(&workload, name, Evaluator::Cohort, fast, 1);
    close("time", exact.time_s, cohort.time_s, 0.03, 0.0)?;
    close("share of fast memory", exact.fast_share, cohort.fast_share, 0.05, skewed)?;
    close("spilled", exact.counters.numa_miss, cohort.counters.numa_miss, 0.001, 2.0)?;
    // One of the two may end just before a scan that the other has seen.
    let scan = ((cold + hot) * 256) as f64;
    close("faults", exact.counters.numa_hint_faults, cohort.counters.numa_hint_faults, 0.3, scan)?;
    close("promoted", exact.counters.pgpromote_success, cohort.counters.pgpromote_success, 0.3, 3000.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Expected values against one draw: times within 3 %. Under a skew, the share of fast memory hangs on which of
    /// the hottest few pages find room in the milliseconds after a scan, which differs from draw to draw.
    #[test]
    fn the_evaluators_agree(
        cold in 64u64..256, hot in 16u64..96, fast in 48u64..160,
        cold_rate in 0.0f64..50_000.0, hot_rate in 20_000.0f64..300_000.0,
        zipf in any::<bool>(), which in 0usize..3,
    ) {
        let name = ["none", "autonuma", "tiering"][which];
        let spread = if zipf { Spread::Zipf(0.8) } else { Spread::Uniform };
        agree([cold, hot, fast], [cold_rate, hot_rate], spread, name)?;
    }

    #[test]
    fn nothing_is_lost_and_the_same_seed_gives_the_same_run(
        cold in 32u64..128, hot in 16u64..64, fast in 32u64..96, rate in 10_000.0f64..100_000.0,
        which in 0..policy::names().len(), exact in any::<bool>(), seed in any::<u64>(),
    ) {
        let name = policy::names()[which];
        let evaluator = if exact { Evaluator::Exact } else { Evaluator::Cohort };
        let workload = workload([cold, hot], [rate / 10.0, rate], Spread::Scattered(0.9), 2.0);
        let first = run(&workload, name, evaluator, fast, seed);
        prop_assert_eq!(&first, &run(&workload, name, evaluator, fast, seed));
        let pages: f64 = first.nodes.iter().map(|node| node.used_pages).sum();
        prop_assert!((pages - ((cold + hot) * 256) as f64).abs() < 1e-3, "{}: {pages} pages", name);
        prop_assert!((first.parts.sum() - first.time_s).abs() < 1e-9);
        prop_assert!(first.nodes.iter().all(|node| node.used_pages >= -1e-6 && node.used_pages <= node.pages + 1e-6));
        for region in &first.regions {
            prop_assert!((region.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    /// Ours starts from every static placement and moves nothing that does not pay.
    #[test]
    fn ours_is_at_least_as_fast_as_the_others(
        cold in 64u64..256, hot in 16u64..128, fast in 48u64..200,
        cold_rate in 1000.0f64..100_000.0, hot_rate in 10_000.0f64..500_000.0, which in 0..policy::names().len(),
    ) {
        let workload = workload([cold, hot], [cold_rate, hot_rate], Spread::Uniform, 4.0);
        let ours = run(&workload, OURS, Evaluator::Cohort, fast, 0);
        let other = run(&workload, policy::names()[which], Evaluator::Cohort, fast, 0);
        prop_assert!(ours.time_s <= other.time_s * 1.01, "{} against {} of {}", ours.time_s, other.time_s, other.policy);
    }
}

#[test]
fn the_evaluators_agree_on_a_case_that_was_found() {
    agree([107, 46, 56], [6426.2, 243_353.4], Spread::Uniform, "tiering").unwrap();
}

/// Pages that go up and down all the time: demoted ones fault again at once, and are active only when they have.
#[test]
fn the_evaluators_agree_where_pages_go_back_and_forth() {
    for (name, spread) in [("tpp", Spread::Uniform), ("tpp", Spread::Sweep), ("nomad", Spread::Uniform)] {
        let mut workload = workload([512, 512], [3000.0, 30_000.0], spread, 60.0);
        workload.phases[0].streams.iter_mut().for_each(|stream| stream.read_bytes = stream.visits * 640.0);
        let [exact, cohort] = [Evaluator::Exact, Evaluator::Cohort].map(|which| run(&workload, name, which, 400, 1));
        let near = |what: &str, a: f64, b: f64, share: f64| {
            assert!((a - b).abs() <= share * a.max(b), "{name}, {what}: {a} against {b}");
        };
        near("time", exact.time_s, cohort.time_s, 0.02);
        near("share of fast memory", exact.fast_share, cohort.fast_share, 0.05);
        near("promoted", exact.counters.pgpromote_success, cohort.counters.pgpromote_success, 0.06);
        near("faults", exact.counters.numa_hint_faults, cohort.counters.numa_hint_faults, 0.06);
    }
}

#[test]
fn locked_memory_is_not_demoted() {
    let mut workload = workload([128, 32], [0.0, 200_000.0], Spread::Uniform, 20.0);
    let loose = run(&workload, "tiering", Evaluator::Exact, 96, 1);
    assert!(loose.counters.pgdemote_kswapd > 0.0);
    workload.regions[0].locked = true;
    let locked = run(&workload, "tiering", Evaluator::Exact, 96, 1);
    assert!(locked.counters.pgdemote_kswapd == 0.0, "{:?}", locked.counters);
}

/// Demotion ignores memory policies: an interleaved object loses its fast half while others are promoted.
#[test]
fn kswapd_demotes_interleaved_pages_that_no_fault_brings_back() {
    let workload = workload([128, 64], [0.0, 400_000.0], Spread::Uniform, 30.0);
    let request = |policy: &str| Request {
        placement: Some("object-interleave".to_owned()),
        fast_bytes: Some(96 * MIB),
        evaluator: Evaluator::Exact,
        ..Request::of(policy)
    };
    let mut interleaved = workload;
    interleaved.phases[0].streams[0].visits = 1000.0;
    interleaved.phases[0].streams[0].read_bytes = 1e12;
    interleaved.phases[0].streams[0].mlp = 64.0;
    interleaved.phases[0].streams[1].read_bytes = 1e9;
    let still = simulate(&machine(), &interleaved, &request("none")).unwrap();
    let moving = simulate(&machine(), &interleaved, &request("tiering")).unwrap();
    assert!(moving.regions[0].shares[0] < still.regions[0].shares[0], "{:?} {:?}", moving.regions, still.regions);
    assert!(moving.regions[1].shares[0] >= still.regions[1].shares[0]);
}

#[test]
fn tpp_faults_many_times_for_each_page_unless_its_entry_is_restored() {
    let workload = workload([128, 32], [0.0, 200_000.0], Spread::Uniform, 10.0);
    let faults = |refault: f64| {
        let knobs = vec![("refault".to_owned(), refault)];
        let request = Request { knobs, fast_bytes: Some(96 * MIB), evaluator: Evaluator::Exact, ..Request::of("tpp") };
        simulate(&machine(), &workload, &request).unwrap().counters
    };
    let (with, without) = (faults(1.0), faults(0.0));
    assert!(with.numa_hint_faults > 5.0 * without.numa_hint_faults, "{with:?} {without:?}");
}

#[test]
fn mode_2_says_when_it_has_nothing_to_do() {
    let workload = workload([32, 32], [1000.0, 1000.0], Spread::Uniform, 1.0);
    let request = Request { tiers: Some(tierloom_tiering::TierRule::OneTier), ..Request::of("tiering") };
    let outcome = simulate(&machine(), &workload, &request).unwrap();
    assert!(outcome.warnings.iter().any(|words| words.contains("one tier")), "{:?}", outcome.warnings);
}

#[test]
fn a_page_takes_no_more_than_24_bytes() {
    const { assert!(BYTES_PER_PAGE <= 24) };
}

#[test]
fn wrong_requests_say_what_is_known() {
    let workload = workload([16, 16], [1.0, 1.0], Spread::Uniform, 1.0);
    let fails = |request: Request| simulate(&machine(), &workload, &request).unwrap_err().to_string();
    assert!(fails(Request::of("magic")).contains("hint: use one of: tierloom, none, autonuma"));
    assert!(fails(Request { placement: Some("heap".to_owned()), ..Request::of("none") }).contains("first-touch"));
    assert!(fails(Request { nodes: Some(vec!["ram".to_owned()]), ..Request::of("none") }).contains("fast, slow"));
    let knobs = vec![("speed".to_owned(), 1.0)];
    assert!(fails(Request { knobs, ..Request::of("tpp") }).contains("demote_scale_factor"));
    let small = Request { nodes: Some(vec!["fast".to_owned()]), fast_bytes: Some(8 * MIB), ..Request::of("none") };
    assert!(fails(small).contains("find no room"));
}
