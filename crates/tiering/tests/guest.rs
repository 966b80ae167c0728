//! Against real kernels: every experiment of `guest.toml`, by both evaluators.
//!
//! The guest's processor is emulated, so its clock is not a machine's; what events cost in it is derived from the
//! same runs. Everything else is the simulator's own. A counter is in its band when it lies in the span of the runs, give
//! or take a quarter, and zero where all runs have zero; what is out of its band is named in the file, with the reason, and
//! the test fails when that is no longer so. `cargo test --test guest -- --nocapture` prints the table.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests stop on a wrong fixture; one prints a table")]

use std::collections::BTreeMap;

use serde::Deserialize;
use tierloom_fixtures::{GIB, cxl, ddr, memory, path, two_sockets};
use tierloom_model::{Figure, Kind, Machine, MemoryKind, Pattern};
use tierloom_tiering::{
    Costs, Counters, Evaluator, Outcome, Phase, Region, Request, Spread, Stream, Workload, WorkloadTag, simulate,
};

const PAGE: u64 = 4096;
/// Free pages of the DRAM node before a run (`/proc/zoneinfo`: DMA32 232 204, DMA 3 712).
const DRAM_PAGES: u64 = 232_204 + 3_712;
/// How far outside the span of the runs still counts as agreement.
const BAND: f64 = 0.25;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    experiment: Vec<Experiment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    name: String,
    #[serde(rename = "about")]
    _about: String,
    policy: String,
    /// Name and MiB, in the order of first touch.
    regions: Vec<(String, u64)>,
    /// Region, part, touches a second.
    streams: Vec<(String, f64, f64, f64)>,
    seconds: f64,
    runs: Vec<Run>,
    /// Counter and reason.
    out: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    #[serde(rename = "lab", default)]
    _lab: bool,
    pte: f64,
    faults: f64,
    local: f64,
    candidates: f64,
    moved: f64,
    demoted: f64,
    #[serde(rename = "seconds")]
    _seconds: f64,
}

impl Run {
    fn counters(&self) -> [(&'static str, f64); 6] {
        let Self { pte, faults, local, candidates, moved, demoted, .. } = *self;
        named([pte, faults, local, candidates, moved, demoted])
    }
}

fn named(values: [f64; 6]) -> [(&'static str, f64); 6] {
    let [pte, faults, local, candidates, moved, demoted] = values;
    [
        ("pte", pte),
        ("faults", faults),
        ("local", local),
        ("candidates", candidates),
        ("moved", moved),
        ("demoted", demoted),
    ]
}

fn simulated(counters: &Counters) -> [(&'static str, f64); 6] {
    named([
        counters.numa_pte_updates,
        counters.numa_hint_faults,
        counters.numa_hint_faults_local,
        counters.pgpromote_candidate,
        counters.numa_pages_migrated,
        counters.pgdemote_kswapd,
    ])
}

fn experiments() -> Vec<Experiment> {
    toml::from_str::<Recorded>(include_str!("guest.toml")).unwrap().experiment
}

fn guest() -> Machine {
    let memories = vec![memory("n0", MemoryKind::Dram, "s0", 1), memory("n1", MemoryKind::Cxl, "s0", 2)];
    let paths = vec![path("s0", "n0", 100.0, &[], ddr(100.0)), path("s0", "n1", 250.0, &[], cxl(30.0))];
    let mut machine = two_sockets(memories, paths);
    machine.memories[0].capacity_bytes.value = DRAM_PAGES * PAGE;
    machine.memories[1].capacity_bytes.value = 2 * GIB;
    machine
}

/// An emulated processor's costs on a host with nothing else to do, ns.
fn costs() -> Costs {
    let emulated = |value: f64, how: &str| Figure::new(value, Kind::Derived, "guest", how);
    Costs {
        protect_ns: emulated(1300.0, "task_numa_work took 58 ms for 65 536 entries of which 32 216 were protected"),
        skip_ns: emulated(540.0, "task_numa_work took 35 ms for 65 536 entries of which few were protected"),
        hint_fault_ns: emulated(20_000.0, "two threads took 54 000 faults a second and touched 3.4 million pages"),
        promote_ns: emulated(
            213_000.0,
            "mbind with MPOL_MF_MOVE took 160 µs a page; of two processors kswapd has half a one while pages move up",
        ),
        demote_ns: emulated(
            320_000.0,
            "as promotion, by half a processor: two threads keep both busy, and kswapd has none idle",
        ),
        reclaim_ns: emulated(5000.0, "kswapd scanned 223 432 pages in 1.23 s without freeing any"),
        shootdown_ns: emulated(60_000.0, "20 times a real processor's, as a hint fault"),
        ..Costs::default()
    }
}

fn workload(experiment: &Experiment) -> Workload {
    let region = |(name, mib): &(String, u64)| Region {
        name: name.clone(),
        size_bytes: mib << 20,
        locked: false,
        source: String::new(),
    };
    let stream = |(region, from, to, rate): &(String, f64, f64, f64)| Stream {
        region: region.clone(),
        part: [*from, *to],
        spread: Spread::Uniform,
        pattern: Pattern::Random,
        visits: rate * experiment.seconds,
        read_bytes: 0.0,
        write_bytes: 0.0,
        mlp: 1.0,
        wait_factor: 1.0,
        shared: false,
        source: String::new(),
    };
    Workload {
        kind: WorkloadTag::Workload,
        version: 1,
        name: "guest".to_owned(),
        title: String::new(),
        sources: BTreeMap::new(),
        threads: 2,
        regions: experiment.regions.iter().map(region).collect(),
        main_works: false,
        filled_by: 1,
        filling: Vec::new(),
        phases: vec![Phase {
            name: "run".to_owned(),
            threads: 2,
            compute_s: 2.0 * experiment.seconds,
            streams: experiment.streams.iter().map(stream).collect(),
        }],
    }
}

fn run(experiment: &Experiment, placement: &str, evaluator: Evaluator) -> Outcome {
    let asked = |evaluator| Request {
        policy: experiment.policy.clone(),
        placement: Some(placement.to_owned()),
        evaluator,
        costs: Some(costs()),
        ..Request::default()
    };
    // The guest ran for so many seconds, faults and copies included; what is left of them is computing.
    let mut workload = workload(experiment);
    for _ in 0..4 {
        let found = simulate(&guest(), &workload, &asked(Evaluator::Cohort)).unwrap();
        workload.phases[0].compute_s *= experiment.seconds / found.time_s;
    }
    simulate(&guest(), &workload, &asked(evaluator)).unwrap()
}

fn in_band(ours: f64, runs: &[f64]) -> bool {
    let (least, most) = runs.iter().fold((f64::INFINITY, 0.0f64), |(a, b), run| (a.min(*run), b.max(*run)));
    if most == 0.0 { ours == 0.0 } else { (least * (1.0 - BAND)..=most * (1.0 + BAND)).contains(&ours) }
}

#[test]
fn every_counter_lies_where_the_guest_s_runs_lie_or_is_named_with_the_reason() {
    let mut wrong = Vec::new();
    for experiment in experiments() {
        let runs: Vec<_> = experiment.runs.iter().map(Run::counters).collect();
        let found = [Evaluator::Exact, Evaluator::Cohort]
            .map(|evaluator| simulated(&run(&experiment, "first-touch", evaluator).counters));
        println!("{}", experiment.name);
        for (index, (counter, _)) in found[0].iter().enumerate() {
            let seen: Vec<f64> = runs.iter().map(|run| run[index].1).collect();
            let ours = found.map(|counters| counters[index].1);
            let inside = ours.iter().all(|ours| in_band(*ours, &seen));
            println!(
                "    {counter:10} {:>9.0} {:>9.0}  {seen:?} {}",
                ours[0],
                ours[1],
                if inside { "" } else { "OUT" }
            );
            if inside == experiment.out.contains_key(*counter) {
                wrong.push(format!("{}, {counter}: {ours:?} against {seen:?}, in band: {inside}", experiment.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mappings_without_the_flag_see_nothing_at_all() {
    for experiment in experiments() {
        for placement in ["local", "preferred:n0", "bind:n0+n1", "interleave", "weighted:n0=3+n1=1"] {
            let counters = run(&experiment, placement, Evaluator::Cohort).counters;
            let seen = counters.numa_pte_updates + counters.numa_hint_faults + counters.numa_pages_migrated;
            assert!(seen == 0.0 && counters.pgpromote_candidate == 0.0, "{placement} {}", experiment.name);
        }
    }
    let small = &experiments()[0];
    assert!(run(small, "interleave", Evaluator::Exact).counters.numa_pte_updates == 0.0);
}

#[test]
fn first_touch_spills_as_many_pages_as_in_the_guest() {
    let experiments = experiments();
    let pressed = experiments.iter().find(|experiment| experiment.name == "pressed, mode 1").unwrap();
    for evaluator in [Evaluator::Exact, Evaluator::Cohort] {
        let spilled = run(pressed, "first-touch", evaluator).counters.numa_miss;
        assert!((spilled / 44_275.0 - 1.0).abs() < BAND, "{spilled}");
    }
}
