//! How fast the evaluators are, beside a plain walk over an array of the same trace: the physical limit.
//!
//! `walk` reads one byte a page, at random; `exact` visits the same pages with the page's state, without and with
//! migration; `cohort` is 130 GB for ten minutes of program time, `objects` as much in many objects.
#![allow(clippy::expect_used, reason = "a fixture that is wrong should stop the bench")]

use std::collections::BTreeMap;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tierloom_fixtures::{cxl, ddr, memory, path, two_sockets};
use tierloom_model::hash::scatter;
use tierloom_model::{Machine, MemoryKind, Pattern};
use tierloom_tiering::trace::{Access, Pace, simulate_trace};
use tierloom_tiering::{Phase, Region, Request, Spread, Stream, Workload, WorkloadTag, simulate};

/// 16 GiB of pages.
const PAGES: u64 = 1 << 22;
const ACCESSES: u64 = 1 << 24;

fn main() {
    divan::main();
}

fn machine() -> Machine {
    let memories = vec![memory("fast", MemoryKind::Dram, "s0", 64), memory("slow", MemoryKind::Cxl, "s0", 256)];
    let paths = vec![path("s0", "fast", 100.0, &[], ddr(300.0)), path("s0", "slow", 250.0, &[], cxl(30.0))];
    two_sockets(memories, paths)
}

fn page(index: u64) -> u64 {
    (scatter(index) >> 20) % PAGES
}

#[divan::bench(sample_count = 5)]
fn walk(bencher: Bencher<'_, '_>) {
    let bytes = vec![1u8; usize::try_from(PAGES).expect("it fits")];
    bencher.counter(ItemsCount::new(ACCESSES)).bench_local(|| {
        (0..ACCESSES).fold(0u64, |sum, index| sum + u64::from(bytes[usize::try_from(page(index)).unwrap_or(0)]))
    });
}

fn exact(bencher: Bencher<'_, '_>, policy: &str, fast_gib: u64) {
    let (machine, block) = (machine(), 1 << 15);
    let request = Request { fast_bytes: Some(fast_gib << 30), ..Request::of(policy) };
    // Touched once in order first, so that the measured accesses meet pages that are there.
    let pace = Pace { threads: 8, mlp: 8.0, ns_per_access: 200.0 };
    bencher.counter(ItemsCount::new(ACCESSES + PAGES)).bench_local(|| {
        let mut next = 0u64;
        let answer = simulate_trace(&machine, &request, "bench", pace, |rows| {
            let end = (next + block).min(PAGES + ACCESSES);
            rows.extend((next..end).map(|index| {
                let page = if index < PAGES { index } else { page(index) };
                Access { address: page << 12, write: index % 8 == 0, ..Access::default() }
            }));
            next = end;
            Ok(())
        });
        let counters = answer.expect("the trace fits").counters;
        assert_eq!(counters.numa_pages_migrated > 1e5, policy != "none", "{counters:?}");
        black_box(counters)
    });
}

#[divan::bench(sample_count = 3)]
fn trace_without_migration(bencher: Bencher<'_, '_>) {
    exact(bencher, "none", 8);
}

#[divan::bench(sample_count = 3)]
fn trace_with_mode_2(bencher: Bencher<'_, '_>) {
    exact(bencher, "tiering", 8);
}

/// Visits drawn and followed, without addresses to map.
#[divan::bench(sample_count = 3, args = ["none", "tiering"])]
fn visits(bencher: Bencher<'_, '_>, policy: &str) {
    let (machine, workload) = (machine(), uniform(16 << 30, 5e7, 5.0));
    let evaluator = tierloom_tiering::Evaluator::Exact;
    let request = Request { fast_bytes: Some(8 << 30), evaluator, ..Request::of(policy) };
    bencher.counter(ItemsCount::new(50_000_000u64)).bench_local(|| simulate(&machine, &workload, &request));
}

#[divan::bench(sample_count = 3, args = ["none", "autonuma", "tiering", "tpp", "memtis"])]
fn cohort_130_gb_600_s(bencher: Bencher<'_, '_>, policy: &str) {
    let (machine, workload) = (machine(), uniform(130_000_000_000, 1e10, 600.0));
    let request = Request { fast_bytes: Some(50_000_000_000), ..Request::of(policy) };
    bencher.bench_local(|| simulate(&machine, &workload, &request));
}

/// As many regions as a program has objects, each with a stream of its own.
#[divan::bench(sample_count = 3, args = [10, 100, 1000, 10_000])]
fn objects(bencher: Bencher<'_, '_>, count: u32) {
    let (machine, request) = (machine(), Request { fast_bytes: Some(50_000_000_000), ..Request::of("tiering") });
    let whole = uniform(130_000_000_000 / u64::from(count), 1e10 / f64::from(count), 60.0);
    let named = |index: u32| format!("object {index}");
    let regions = (0..count).map(|index| Region { name: named(index), ..whole.regions[0].clone() }).collect();
    let streams = (0..count).map(|index| Stream { region: named(index), ..whole.phases[0].streams[0].clone() });
    let phases = vec![Phase { streams: streams.collect(), ..whole.phases[0].clone() }];
    let workload = Workload { regions, phases, ..whole };
    bencher.bench_local(|| simulate(&machine, &workload, &request));
}

fn uniform(bytes: u64, visits: f64, seconds: f64) -> Workload {
    let stream = Stream {
        region: "data".to_owned(),
        part: [0.0, 1.0],
        spread: Spread::Scattered(0.6),
        pattern: Pattern::Random,
        visits,
        read_bytes: visits * 64.0,
        write_bytes: 0.0,
        mlp: 8.0,
        wait_factor: 1.0,
        shared: false,
        source: String::new(),
    };
    let region = Region { name: "data".to_owned(), size_bytes: bytes, locked: false, source: String::new() };
    let phase = Phase { name: "run".to_owned(), threads: 8, compute_s: seconds * 8.0, streams: vec![stream] };
    Workload {
        kind: WorkloadTag::Workload,
        version: 1,
        name: "uniform".to_owned(),
        title: String::new(),
        sources: BTreeMap::new(),
        threads: 8,
        regions: vec![region],
        main_works: true,
        filled_by: 1,
        filling: Vec::new(),
        phases: vec![phase],
    }
}
