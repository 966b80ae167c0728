//! Predictions for machines with another last-level cache than that of the run.

#![allow(clippy::unwrap_used, reason = "test data")]

use proptest::prelude::*;
use tierloom_model::{
    Access, AccessCount, CountSource, Figure, Kind, Machine, MissPoint, Pattern, Placement, Prediction, Profile,
    Sampling, Touched,
};
use tierloom_predict::{Predictor, Run, anchored};

mod common;
use common::{machine, object, phase, profile};

const MIB: u64 = 1 << 20;
/// The cache of the run; all of the table fits.
const THERE: u64 = 512 * MIB;
const TABLE: u64 = 160 * MIB;
const TOUCHED: f64 = 64e9;

/// A table of which a cache holds the share that fits, touched at random; each of its lines came from memory once.
fn looked_up(cache_wait_s: f64) -> Profile {
    let access = Access {
        object: "table".to_owned(),
        pattern: Pattern::Random,
        reads: 1e9,
        writes: 0.0,
        read_bytes: 8e9,
        write_bytes: 0.0,
        dram_read_bytes: TABLE as f64,
        dram_write_bytes: 0.0,
        mlp: 1.0,
        touched: Some(Touched {
            bytes: TOUCHED,
            filled_bytes: TABLE as f64,
            mlp: 8.0,
            beyond_core: None,
            cache_wait_s,
        }),
        wait_s: None,
        wait_factor: None,
        traffic_within: None,
        origin: None,
    };
    let mut table = object("table", TABLE);
    let share = |cache_bytes: u64| {
        let first = TABLE as f64 / TOUCHED;
        first + (1.0 - first) * (1.0 - cache_bytes as f64 / TABLE as f64).max(0.0)
    };
    let sizes = (0..11).map(|power| MIB << power);
    table.miss_curve = sizes.map(|cache_bytes| MissPoint { cache_bytes, share: share(cache_bytes) }).collect();
    let mut profile = profile(vec![table], vec![phase("whole", 1, 40.0, vec![access])]);
    profile.program.llc_bytes = THERE;
    profile.sampling = Some(Sampling {
        event: "cpu-clock".to_owned(),
        hz: 1000.0,
        samples: 40_000,
        lost: 0,
        skid_purity: 1.0,
        not_sampled: None,
        thread_local: None,
        counted_traffic: None,
        warnings: Vec::new(),
    });
    profile
}

fn with_cache(cache_bytes: u64) -> Machine {
    let mut machine = machine();
    machine.sockets[0].llc_per_core_bytes.value = cache_bytes;
    machine
}

fn predicted(profile: &Profile, cache_bytes: u64) -> Prediction {
    let predictor = Predictor::new(&with_cache(cache_bytes), profile, Run { socket: 0, threads: 1 }).unwrap();
    predictor.predict(&Placement::uniform(predictor.objects(), predictor.memories(), 0))
}

fn read_bytes(prediction: &Prediction) -> f64 {
    prediction.tiers.iter().map(|tier| tier.read_bytes).sum()
}

#[test]
fn no_line_is_written_back_more_often_than_it_comes() {
    let mut looked_up = looked_up(30.0);
    let mut second = looked_up.phases[0].clone();
    // Its lines came in the first phase: this one fetched next to nothing, and wrote back all of them.
    (second.accesses[0].dram_read_bytes, second.accesses[0].dram_write_bytes) = (0.1, TABLE as f64);
    second.name = "second".to_owned();
    looked_up.phases.push(second);
    let here = predicted(&looked_up, 32 * MIB);
    let written: f64 = here.tiers.iter().map(|tier| tier.write_bytes).sum();
    assert!(written <= TABLE as f64 + read_bytes(&here) && read_bytes(&here) > 1e9, "{written}, {}", read_bytes(&here));
}

#[test]
fn independent_touches_miss_as_the_curve_says_and_the_range_holds_that_none_do() {
    let looked_up = looked_up(30.0);
    let (there, here) = (predicted(&looked_up, THERE), predicted(&looked_up, 32 * MIB));
    assert!((read_bytes(&there) - TABLE as f64).abs() < 1.0);
    let expected = TOUCHED * (TABLE as f64 / TOUCHED + (1.0 - TABLE as f64 / TOUCHED) * 0.8);
    assert!((read_bytes(&here) / expected - 1.0).abs() < 1e-9, "{}", read_bytes(&here));
    assert!(here.stall_s > 10.0 * there.stall_s && here.low_s <= there.time_s);
}

#[test]
fn time_in_caches_turns_into_time_in_memory() {
    let here = |cache_wait_s: f64| predicted(&looked_up(cache_wait_s), 32 * MIB).compute_s;
    // Eight tenths of what the cache of the run had come from memory here.
    assert!((here(30.0) - (40.0 - 0.8 * 30.0)).abs() < 1e-6, "{}", here(30.0));
}

#[test]
fn a_program_that_comes_back_to_what_it_touched_misses_as_much_less_here_as_there() {
    let mut sort = looked_up(30.0);
    // Independent touches would have fetched eight tenths of all behind the cache of the run, too; the run a twentieth of it.
    sort.program.llc_bytes = 32 * MIB;
    sort.phases[0].accesses[0].dram_read_bytes = 0.05 * 0.8 * TOUCHED;
    let here = predicted(&sort, 16 * MIB);
    let more = read_bytes(&here) - 0.05 * 0.8 * TOUCHED;
    assert!(more > 0.04 * 0.1 * TOUCHED && more < 0.06 * 0.1 * TOUCHED, "{}", more / TOUCHED);
    assert!(here.high_s > here.time_s && here.low_s < here.time_s);
}

/// As it is known where the machine of the run was measured: its last-level cache answers after 40 ns.
fn known(seen: &Profile) -> Profile {
    let mut seen = seen.clone();
    seen.phases[0].accesses[0].wait_s = Some(0.0);
    let mut there = with_cache(THERE);
    there.sockets[0].llc_ns = Some(Figure::new(40.0, Kind::Measured, "made-up", ""));
    there.sockets[0].core_cache_bytes = Some(Figure::new(MIB, Kind::Measured, "made-up", ""));
    anchored(&seen, &there).unwrap().unwrap().0
}

/// Its cache took the run longer than memory takes a machine that streams: no lines from memory are not the fastest.
#[test]
fn a_range_holds_both_directions_where_memory_is_faster_than_the_cache_of_the_run() {
    let mut swept = looked_up(30.0);
    let access = &mut swept.phases[0].accesses[0];
    (access.pattern, access.mlp) = (Pattern::Stream, 32.0);
    if let Some(touched) = &mut access.touched {
        touched.mlp = 32.0;
    }
    let here = predicted(&swept, 32 * MIB);
    assert!(here.time_s < predicted(&swept, THERE).time_s, "{} s", here.time_s);
    assert!(here.low_s < 0.99 * here.time_s && here.high_s > 1.01 * here.time_s, "{here:?}");
}

#[test]
fn what_a_measured_cache_was_waited_for_tells_how_much_the_core_found_itself() {
    // A quarter of the lines that independent touches would ask the last-level cache for, eight at once.
    let asked = 0.25 * (TOUCHED - TABLE as f64) * (1.0 - 1.0 / 160.0) / 64.0;
    let here = predicted(&known(&looked_up(asked * 40e-9 / 8.0)), 32 * MIB);
    let expected = TABLE as f64 + 0.25 * 0.8 * (TOUCHED - TABLE as f64);
    assert!((read_bytes(&here) / expected - 1.0).abs() < 1e-3, "{} of {expected}", read_bytes(&here));
}

#[test]
fn on_the_host_of_the_run_its_cache_is_the_runs_whatever_a_file_says() {
    let mut here = with_cache(32 * MIB);
    let mut ran = looked_up(30.0);
    let read = |machine: &Machine, profile: &Profile| {
        let predictor = Predictor::new(machine, profile, Run { socket: 0, threads: 1 }).unwrap();
        read_bytes(&predictor.predict(&Placement::uniform(predictor.objects(), predictor.memories(), 0)))
    };
    assert!(read(&here, &ran) > 2.0 * TABLE as f64);
    (here.host, ran.program.host) = (Some("one".to_owned()), Some("one".to_owned()));
    assert!((read(&here, &ran) - TABLE as f64).abs() < 1.0);
}

#[test]
fn a_run_on_a_machine_that_nobody_measured_is_told() {
    let told = |profile: &Profile| predicted(profile, 32 * MIB).assumptions.join("\n").contains("machine measure");
    assert!(told(&looked_up(30.0)) && !told(&known(&looked_up(30.0))));
}

/// `xz -9` ran 3.7 s behind 260 MiB of cache, and was told to take 82 s behind 32 MiB, as if no touch hit its core's caches.
#[test]
fn time_that_was_waited_bounds_the_lines_where_nobody_measured_the_machine_of_the_run() {
    let seen_s = 2.0;
    let here = predicted(&looked_up(seen_s), 32 * MIB);
    let from_cache = |latency_ns: f64| seen_s / (latency_ns * 1e-9) * 8.0 * 64.0;
    // Of what the last level gave, a cache of a fifth of the table keeps a fifth less than one of the core keeps.
    let beyond = 0.8 / (1.0 - 1.0 / 160.0);
    let expected = TABLE as f64 + from_cache(20.0) * beyond;
    assert!((read_bytes(&here) / expected - 1.0).abs() < 0.01, "{} of {expected}", read_bytes(&here));
    // A Zen waits 12 ns for a line that it waits for, and brings at most two in that time.
    let measured = predicted(&known(&looked_up(seen_s)), 32 * MIB);
    assert!(here.low_s <= measured.time_s && measured.time_s <= here.high_s, "{here:?}");
}

#[test]
fn touches_that_are_known_roughly_are_still_no_more_than_were_waited_for() {
    let exact = looked_up(0.3);
    let mut rough = exact.clone();
    rough.objects[0].accesses = Some(AccessCount { source: CountSource::Estimated, low: 1e8, count: 1e9, high: 14e9 });
    let [exact, rough] = [exact, rough].map(|profile| predicted(&profile, 32 * MIB).high_s);
    assert!(rough < 1.01 * exact, "{rough} s, {exact} s");
}

#[test]
fn lines_that_nobody_waited_for_were_in_a_nearer_cache() {
    let unsampled = Profile { sampling: None, ..looked_up(0.0) };
    let (here, blind) = (predicted(&known(&looked_up(0.0)), 32 * MIB), predicted(&unsampled, 32 * MIB));
    assert!((read_bytes(&here) - TABLE as f64).abs() < 1.0, "{}", read_bytes(&here));
    // No sample saw it wait; three are possible. The run itself may be 12 % off.
    assert!(here.high_s > here.time_s && here.high_s < 1.13 * here.compute_s, "{} s", here.high_s);
    assert!(blind.high_s > 1.3 * blind.compute_s, "{} s", blind.high_s);
}

#[test]
fn a_cache_that_holds_everything_leaves_first_touches() {
    let mut cramped = looked_up(30.0);
    cramped.program.llc_bytes = 32 * MIB;
    cramped.phases[0].accesses[0].dram_read_bytes = 0.8 * TOUCHED + 0.2 * TABLE as f64;
    let here = predicted(&cramped, THERE);
    assert!((read_bytes(&here) / TABLE as f64 - 1.0).abs() < 1e-6, "{}", read_bytes(&here));
}

proptest! {
    #[test]
    fn a_larger_cache_is_never_slower(first in 20u32..30, second in 20u32..30, cache_wait_s in 0.0f64..40.0) {
        let looked_up = looked_up(cache_wait_s);
        let (small, large) = (1 << first.min(second), 1 << first.max(second));
        let (small, large) = (predicted(&looked_up, small), predicted(&looked_up, large));
        prop_assert!(read_bytes(&large) <= read_bytes(&small) * (1.0 + 1e-9));
        for one in [&small, &large] {
            prop_assert!(one.low_s <= one.time_s && one.time_s <= one.high_s);
        }
    }
}
