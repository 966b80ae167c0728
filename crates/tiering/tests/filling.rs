//! Where pages are when the first phase begins: regions that fill side by side, and memory given back meanwhile.
#![allow(clippy::unwrap_used, reason = "a fixture that is wrong should stop the test")]

use tierloom_fixtures::{access, cxl, ddr, memory, object, path, phase, profile, two_sockets};
use tierloom_model::{Machine, MemoryKind, Object, Pattern};
use tierloom_tiering::{Evaluator, Fill, Outcome, Region, Request, Workload, simulate};

const MIB: u64 = 1 << 20;
const EVALUATORS: [Evaluator; 2] = [Evaluator::Exact, Evaluator::Cohort];

fn machine() -> Machine {
    let memories = vec![memory("fast", MemoryKind::Dram, "s0", 1), memory("slow", MemoryKind::Cxl, "s0", 4)];
    let paths = vec![path("s0", "fast", 100.0, &[], ddr(100.0)), path("s0", "slow", 300.0, &[], cxl(25.0))];
    two_sockets(memories, paths)
}

/// Two objects of 256 MiB; the second is touched first at 1 s, and each is complete at its own time.
fn workload(populated_s: [Option<f64>; 2]) -> Workload {
    let made =
        |name: &str, first_touch_s, populated_s| Object { first_touch_s, populated_s, ..object(name, 256 * MIB) };
    let objects = vec![made("a", 0.0, populated_s[0]), made("b", 1.0, populated_s[1])];
    let accesses = ["a", "b"].map(|name| access(name, Pattern::Random, 1e6, 0.0, 1.0));
    Workload::from_profile(&profile(objects, vec![phase("run", 4, 4.0, accesses.to_vec())]), 4)
}

fn run(workload: &Workload, policy: &str, evaluator: Evaluator, fast_mib: u64) -> Outcome {
    let request = Request { evaluator, fast_bytes: Some(fast_mib * MIB), ..Request::of(policy) };
    simulate(&machine(), workload, &request).unwrap()
}

fn near(outcome: &Outcome, region: &str) -> f64 {
    outcome.regions.iter().find(|used| used.region == region).unwrap().shares[0]
}

#[test]
fn objects_that_fill_one_after_the_other_leave_the_last_outside() {
    for evaluator in EVALUATORS {
        let done = run(&workload([Some(0.9), None]), "none", evaluator, 300);
        assert!(near(&done, "a") > 0.999 && near(&done, "b") < 0.2, "{:?}", done.regions);
    }
}

#[test]
fn objects_that_fill_side_by_side_share_what_there_is() {
    for evaluator in EVALUATORS {
        let done = run(&workload([Some(9.0), Some(9.0)]), "none", evaluator, 300);
        let (a, b) = (near(&done, "a"), near(&done, "b"));
        // The first has a ninth when the second begins; then the second catches up.
        assert!((0.4..0.7).contains(&a) && (0.4..0.7).contains(&b) && a > b, "{a} and {b}");
    }
}

#[test]
fn memory_given_back_makes_room_for_what_is_touched_next() {
    let mut workload = workload([None, None]);
    let scratch = Region { name: "scratch".to_owned(), size_bytes: 280 * MIB, locked: false, source: String::new() };
    let touch = |region: &str| Fill::Touch { region: region.to_owned(), share: 1.0 };
    workload.filling = vec![Fill::Take(scratch), touch("a"), Fill::Free("scratch".to_owned()), touch("b")];
    for evaluator in EVALUATORS {
        let done = run(&workload, "none", evaluator, 300);
        assert!(near(&done, "a") < 0.1 && near(&done, "b") > 0.999, "{:?}", done.regions);
        assert!((done.phases[0].time_s - done.time_s).abs() < 1e-9);
    }
}

#[test]
fn a_hole_in_fast_memory_is_filled_by_any_migration_and_a_full_one_by_none() {
    let mut workload = workload([None, None]);
    workload.phases[0].compute_s = 40.0;
    let scratch = Region { name: "scratch".to_owned(), size_bytes: 256 * MIB, locked: false, source: String::new() };
    let touch = |region: &str| Fill::Touch { region: region.to_owned(), share: 1.0 };
    let moved = |workload: &Workload, policy: &str| {
        let request = Request {
            evaluator: Evaluator::Cohort,
            fast_bytes: Some(300 * MIB),
            knobs: if policy == "autonuma" { Vec::new() } else { vec![("demotion_enabled".to_owned(), 0.0)] },
            ..Request::of(policy)
        };
        let done = simulate(&machine(), workload, &request).unwrap();
        assert!(done.counters.pgdemote_kswapd == 0.0, "{policy}");
        done.counters.numa_pages_migrated
    };
    for policy in ["autonuma", "tiering", "tiering-0.8", "tpp"] {
        let full = moved(&workload, policy);
        workload.filling = vec![Fill::Take(scratch.clone()), touch("a"), touch("b"), Fill::Free("scratch".to_owned())];
        let hollow = moved(&workload, policy);
        workload.filling.clear();
        assert!(full < 3000.0 && hollow > 10_000.0, "{policy}: {full} and {hollow} pages");
    }
}

/// Kernels up to 6.0 and the posted patches of TPP go by the numbers of nodes, and a machine's memories stand in their order.
#[test]
fn from_a_node_of_a_higher_number_nothing_is_demoted_and_a_warning_says_so() {
    let mut workload = workload([None, None]);
    workload.phases[0].compute_s = 40.0;
    let mut other = machine();
    other.memories.insert(0, memory("far", MemoryKind::Dram, "s1", 1));
    other.paths.push(path("s0", "far", 200.0, &["upi"], ddr(60.0)));
    for (evaluator, policy) in
        EVALUATORS.into_iter().flat_map(|evaluator| [(evaluator, "tiering-0.8"), (evaluator, "tpp")])
    {
        let nodes = Some(vec!["fast".to_owned(), "slow".to_owned()]);
        let request = Request { evaluator, nodes, fast_bytes: Some(300 * MIB), ..Request::of(policy) };
        let [here, there] = [machine(), other.clone()].map(|machine| simulate(&machine, &workload, &request).unwrap());
        assert!(here.counters.pgdemote_kswapd > 0.0 && here.warnings.iter().all(|said| !said.contains("demote")));
        assert!(there.counters.pgdemote_kswapd == 0.0 && there.warnings.iter().any(|said| said.contains("demote")));
        assert!(there.counters.numa_pages_migrated < here.counters.numa_pages_migrated, "{:?}", there.counters);
        // TPP does not take that node for fast, and scans it.
        let [local, remote] = [here, there].map(|done| done.counters.numa_hint_faults_local > 0.0);
        assert_eq!((local, remote), (false, policy == "tpp"));
    }
}
