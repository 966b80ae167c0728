//! Against a real kernel: counters of Linux 6.12.107 in a virtual machine (QEMU without hardware
//! virtualisation, 2 CPUs, a DRAM node of 1 GiB and a slow node of 2 GiB without CPUs, `lru_gen` off).
//!
//! The guest's processor is emulated, so its clock is not a machine's: what an entry costs to protect is
//! taken from one of its own experiments (`cold first`, mode 1: two threads protect 131 072 entries and pause for 12 to 15 s,
//! which is 32 times what the scan took), and how often pages are touched is what was counted in each.
//! Everything else is the simulator's own.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests stop on a wrong fixture; one prints a table")]

use std::collections::BTreeMap;

use tierloom_fixtures::{GIB, cxl, ddr, memory, path, two_sockets};
use tierloom_model::{Figure, Kind, Machine, MemoryKind, Pattern};
use tierloom_tiering::{Costs, Evaluator, Outcome, Phase, Region, Request, Spread, Stream, Workload, simulate};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// Free pages of the DRAM node before a run (`/proc/zoneinfo`: DMA32 232 204, DMA 3 712).
const DRAM_PAGES: u64 = 232_204 + 3_712;

fn guest() -> Machine {
    let memories = vec![memory("n0", MemoryKind::Dram, "s0", 1), memory("n1", MemoryKind::Cxl, "s0", 2)];
    let paths = vec![path("s0", "n0", 100.0, &[], ddr(100.0)), path("s0", "n1", 250.0, &[], cxl(30.0))];
    let mut machine = two_sockets(memories, paths);
    machine.memories[0].capacity_bytes.value = DRAM_PAGES * PAGE;
    machine.memories[1].capacity_bytes.value = 2 * GIB;
    machine
}

/// An emulated processor's costs, ns.
fn costs() -> Costs {
    let emulated = |value: f64, how: &str| Figure::new(value, Kind::Derived, "guest", how);
    Costs {
        protect_ns: emulated(6200.0, "13 s / 32 / 65 536 entries"),
        promote_ns: emulated(160_000.0, "mbind with MPOL_MF_MOVE took 160 µs a page"),
        demote_ns: emulated(160_000.0, "as promotion: 80 times a real processor's"),
        skip_ns: emulated(2480.0, "as protecting one, in the ratio of a real processor"),
        hint_fault_ns: emulated(80_000.0, "80 times a real processor's"),
        reclaim_ns: emulated(12_000.0, "80 times a real processor's"),
        shootdown_ns: emulated(240_000.0, "80 times a real processor's"),
        ..Costs::default()
    }
}

/// Regions with their MiB, and streams as (region, part, visits a second).
fn workload(regions: &[(&str, u64)], streams: &[(&str, [f64; 2], f64)], seconds: f64) -> Workload {
    let region = |(name, mib): &(&str, u64)| Region {
        name: (*name).to_owned(),
        size_bytes: mib * MIB,
        locked: false,
        source: String::new(),
    };
    let stream = |(name, part, rate): &(&str, [f64; 2], f64)| Stream {
        region: (*name).to_owned(),
        part: *part,
        spread: Spread::Uniform,
        pattern: Pattern::Random,
        visits: rate * seconds,
        read_bytes: 0.0,
        write_bytes: 0.0,
        mlp: 1.0,
        source: String::new(),
    };
    Workload {
        version: 1,
        name: "guest".to_owned(),
        title: String::new(),
        sources: BTreeMap::new(),
        threads: 2,
        regions: regions.iter().map(region).collect(),
        phases: vec![Phase {
            name: "run".to_owned(),
            threads: 2,
            compute_s: 2.0 * seconds,
            streams: streams.iter().map(stream).collect(),
        }],
    }
}

fn run(workload: &Workload, policy: &str, placement: &str, evaluator: Evaluator) -> Outcome {
    let request = Request {
        policy: policy.to_owned(),
        placement: Some(placement.to_owned()),
        evaluator,
        costs: Some(costs()),
        ..Request::default()
    };
    // Touches and wall time are as counted in the guest, faults and copies included; what is left is computing.
    let seconds = workload.phases[0].compute_s / 2.0;
    let mut workload = workload.clone();
    let mut outcome = simulate(&guest(), &workload, &request).unwrap();
    for _ in 0..5 {
        workload.phases[0].compute_s *= (seconds / outcome.time_s).sqrt();
        outcome = simulate(&guest(), &workload, &request).unwrap();
    }
    outcome
}

/// Buffer of 400 MB, touched evenly by two threads for 10 s.
fn resident() -> Workload {
    workload(&[("buffer", 400)], &[("buffer", [0.0, 1.0], 180_000.0)], 10.0)
}

/// 1100 MB, the last tenth in 15 of 16 touches.
fn pressed(rate: f64) -> Workload {
    let all = [0.0, 1.0];
    workload(&[("buffer", 1100)], &[("buffer", [0.9, 1.0], rate * 15.0 / 16.0), ("buffer", all, rate / 16.0)], 40.0)
}

/// 800 MB, touched once or evenly by one thread, then 300 MB whose last 60 are touched.
fn cold_first(touched: bool, rate: f64, seconds: f64) -> Workload {
    let hot = ("b", [0.8, 1.0], rate);
    let streams = if touched { vec![hot, ("a", [0.0, 1.0], rate)] } else { vec![hot] };
    workload(&[("a", 800), ("b", 300)], &streams, seconds)
}

#[test]
fn mappings_without_the_flag_see_nothing_at_all() {
    for placement in ["local", "preferred:n0", "bind:n0+n1", "interleave", "weighted:n0=3+n1=1"] {
        for policy in ["autonuma", "tiering"] {
            for evaluator in [Evaluator::Exact, Evaluator::Cohort] {
                let counters = run(&resident(), policy, placement, evaluator).counters;
                let seen = counters.numa_pte_updates + counters.numa_hint_faults + counters.numa_pages_migrated;
                assert!(seen == 0.0 && counters.pgpromote_candidate == 0.0, "{placement} {policy} {evaluator:?}");
            }
        }
    }
}

#[test]
fn mode_2_does_not_look_at_dram() {
    let counters = run(&resident(), "tiering", "first-touch", Evaluator::Exact).counters;
    assert!(counters.numa_pte_updates == 0.0 && counters.numa_hint_faults == 0.0);
}

/// Ours within this share of what the guest counted.
fn near(what: &str, ours: f64, seen: f64) {
    assert!((ours / seen - 1.0).abs() <= 0.25, "{what}: {ours:.0} against {seen:.0}");
}

#[test]
fn autonuma_protects_resident_memory_once_and_a_half_in_ten_seconds() {
    for evaluator in [Evaluator::Exact, Evaluator::Cohort] {
        let counters = run(&resident(), "autonuma", "first-touch", evaluator).counters;
        near("entries", counters.numa_pte_updates, 204_810.0);
        // One pass is 102 400 faults; the guest was half through its second when the ten seconds ended.
        assert!((102_400.0..204_800.0).contains(&counters.numa_hint_faults), "{}", counters.numa_hint_faults);
        assert!((counters.numa_hint_faults - counters.numa_hint_faults_local).abs() < 1e-6, "all are local");
        assert!(counters.numa_pages_migrated == 0.0);
    }
}

#[test]
fn what_autonuma_does_under_pressure_is_within_a_quarter() {
    for evaluator in [Evaluator::Exact, Evaluator::Cohort] {
        let counters = run(&pressed(370_000.0), "autonuma", "first-touch", evaluator).counters;
        near("entries", counters.numa_pte_updates, 351_128.0);
        near("faults", counters.numa_hint_faults, 338_269.0);
        near("local faults", counters.numa_hint_faults_local, 253_371.0);
        near("moved", counters.numa_pages_migrated, 1837.0);
        assert!(counters.pgdemote_kswapd == 0.0 && counters.pgpromote_candidate == 0.0);
        let spilled = run(&pressed(370_000.0), "none", "first-touch", evaluator).counters;
        near("spilled", spilled.numa_miss, 44_275.0);
    }
}

#[test]
fn interleaved_memory_under_pressure_sees_nothing() {
    for policy in ["autonuma", "tiering"] {
        let counters = run(&pressed(370_000.0), policy, "interleave", Evaluator::Cohort).counters;
        assert!(counters.numa_pte_updates == 0.0 && counters.pgpromote_success == 0.0, "{policy}");
    }
}

/// Promotions agree within 30 % page by page, and within a factor of two by cohorts. What does not, and why:
/// entries and faults come out about 1.6 times as many (the guest's threads shared their emulated CPUs with the
/// scanner), candidates twice, and demotions five times and more, because kswapd in the guest found some
/// 20 MB of other memory to free, which is not in this workload.
#[test]
fn mode_2_promotes_about_as_many_of_the_hot_pages() {
    for (evaluator, most) in [(Evaluator::Exact, 1.3), (Evaluator::Cohort, 2.0)] {
        let counters = run(&cold_first(false, 4_000_000.0, 60.0), "tiering", "first-touch", evaluator).counters;
        let ratio = counters.pgpromote_success / 6074.0;
        assert!((1.0 / most..=most).contains(&ratio), "{evaluator:?}: {} promoted", counters.pgpromote_success);
        assert!(counters.numa_hint_faults_local == 0.0, "no page of DRAM faults");
        assert!(counters.pgdemote_kswapd > 0.0);
    }
}

/// Every experiment beside the guest's counters: `cargo test --test guest -- --ignored --nocapture`.
#[test]
#[ignore = "a table for readers, not a check"]
fn table() {
    let cases: Vec<(&str, Workload, &str, [f64; 5])> = vec![
        ("resident mode1", resident(), "autonuma", [204_810.0, 155_061.0, 0.0, 0.0, 0.0]),
        ("pressed mode1", pressed(370_000.0), "autonuma", [351_128.0, 338_269.0, 0.0, 1837.0, 0.0]),
        ("pressed mode2", pressed(70_000.0), "tiering", [73_534.0, 60_267.0, 4773.0, 1534.0, 0.0]),
        ("cold mode2", cold_first(false, 4_000_000.0, 60.0), "tiering", [64_339.0, 41_206.0, 29_024.0, 6074.0, 1092.0]),
        ("hot mode2", cold_first(true, 670_000.0, 60.0), "tiering", [49_336.0, 29_658.0, 8872.0, 3879.0, 15.0]),
        ("cold mode1", cold_first(false, 720_000.0, 30.0), "autonuma", [281_608.0, 15_368.0, 0.0, 0.0, 0.0]),
    ];
    for (name, workload, policy, seen) in cases {
        for evaluator in [Evaluator::Exact, Evaluator::Cohort] {
            let c = run(&workload, policy, "first-touch", evaluator).counters;
            let ours = [
                c.numa_pte_updates,
                c.numa_hint_faults,
                c.pgpromote_candidate,
                c.numa_pages_migrated,
                c.pgdemote_kswapd,
            ];
            println!("{name:16} {evaluator:?} {:.1} s", run(&workload, policy, "first-touch", evaluator).time_s);
            for (what, (ours, seen)) in ["pte", "faults", "cand", "migr", "demote"].iter().zip(ours.iter().zip(seen)) {
                println!("    {what:8} {ours:>10.0} {seen:>10.0} {:>6.2}", ours / seen);
            }
        }
    }
}
