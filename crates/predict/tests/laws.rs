//! What holds for every machine, profile and placement.

#![allow(clippy::unwrap_used, reason = "test data")]

mod common;

use common::{access, machine, object, phase, profile};
use proptest::prelude::*;
use tierloom_contention::{Fabric, Station, Traffic};
use tierloom_model::{Load, Machine, Pattern, Peak, Placement, Profile};
use tierloom_predict::{Predictor, Run};

const MEMORIES: usize = 3;

/// A profile with a row of fractions per object.
#[derive(Debug, Clone)]
struct Case {
    profile: Profile,
    rows: Vec<Vec<f64>>,
    threads: u32,
}

proptest! {
    #[test]
    fn most_bytes_at_once_are_those_at_the_worst_moment(
        lives in prop::collection::vec((0u8..20, 0u8..20, 0u64..1000), 0..40),
    ) {
        let lived = |(index, (from, lasts, bytes)): (usize, &(u8, u8, u64))| tierloom_model::Object {
            first_s: f64::from(*from),
            last_s: f64::from(from + lasts),
            ..object(&format!("o{index}"), *bytes)
        };
        let profile = profile(lives.iter().enumerate().map(lived).collect(), Vec::new());
        let alive_at = |moment: u8| -> u64 {
            lives.iter().filter(|(from, lasts, _)| (*from..=from + lasts).contains(&moment)).map(|life| life.2).sum()
        };
        prop_assert_eq!(profile.bytes_at_once(), (0..40).map(alive_at).max().unwrap_or(0));
    }
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![Just(Pattern::Stream), Just(Pattern::Strided), Just(Pattern::Random), Just(Pattern::Chain)]
}

/// Fractions that sum to 1, some of them 0.
fn row() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0_u32..5, MEMORIES).prop_map(|parts| {
        let sum: u32 = parts.iter().sum();
        let whole = if sum == 0 { vec![1, 0, 0] } else { parts };
        let sum = f64::from(whole.iter().sum::<u32>());
        whole.into_iter().map(|part| f64::from(part) / sum).collect()
    })
}

prop_compose! {
    /// Reads and writes up to 100 GB: enough to reach every bound on the test machine.
    fn one_access(objects: usize)(
        index in 0..objects, pattern in pattern(), read in 0.0..100e9, write in 0.0..60e9, mlp in 0.5..50.0,
    ) -> tierloom_model::Access {
        access(&format!("o{index}"), pattern, read, write, mlp)
    }
}

fn one_phase(objects: usize) -> impl Strategy<Value = (f64, u32, Vec<tierloom_model::Access>)> {
    (0.0..20.0, 1_u32..9, prop::collection::vec(one_access(objects), 0..6))
}

fn case_with(phases: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    (1_usize..6)
        .prop_flat_map(move |objects| {
            let rows = prop::collection::vec(row(), objects);
            (rows, prop::collection::vec(one_phase(objects), phases.clone()), 1_u32..65)
        })
        .prop_map(|(rows, phases, threads)| {
            let objects = (0..rows.len()).map(|index| object(&format!("o{index}"), 1 << 30)).collect();
            let phases = phases.into_iter().map(|(compute_s, seen, accesses)| phase("p", seen, compute_s, accesses));
            Case { profile: profile(objects, phases.collect()), rows, threads }
        })
}

fn case() -> impl Strategy<Value = Case> {
    case_with(1..4)
}

fn predictor(machine: &Machine, case: &Case) -> Predictor {
    Predictor::new(machine, &case.profile, Run { socket: 0, threads: case.threads }).unwrap()
}

fn time(machine: &Machine, case: &Case) -> f64 {
    let predictor = predictor(machine, case);
    predictor.time_s(&predictor.demand(&case.rows))
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn not_above(a: f64, b: f64) -> bool {
    a <= b * (1.0 + 1e-10)
}

/// Stretches the bandwidth axis of every curve and link.
fn with_bandwidth(mut machine: Machine, factor: f64) -> Machine {
    for path in &mut machine.paths {
        match &mut path.load {
            Load::Points(curves) => {
                curves.iter_mut().flat_map(|curve| &mut curve.points).for_each(|point| point[0] *= factor);
            }
            Load::Form(form) => match &mut form.peak {
                Peak::Half { read_gb_s, write_gb_s } => {
                    *read_gb_s *= factor;
                    *write_gb_s *= factor;
                }
                Peak::Full { read_gb_s, write_gb_s, combined_gb_s, .. } => {
                    *read_gb_s *= factor;
                    *write_gb_s *= factor;
                    *combined_gb_s *= factor;
                }
            },
        }
    }
    machine.links.iter_mut().for_each(|link| link.gb_s_each_way.value *= factor);
    machine
}

fn with_idle(mut machine: Machine, factor: f64) -> Machine {
    machine.paths.iter_mut().for_each(|path| path.idle_ns.value *= factor);
    machine
}

/// Traffic of a phase by memory, summed up without the crate.
fn traffic(case: &Case, phase: usize) -> Vec<Traffic> {
    let mut by_memory = vec![Traffic::default(); MEMORIES];
    for access in &case.profile.phases[phase].accesses {
        let row = &case.rows[case.profile.object_index(&access.object).unwrap()];
        for (sum, fraction) in by_memory.iter_mut().zip(row) {
            sum.read += fraction * access.dram_read_bytes;
            sum.write += fraction * access.dram_write_bytes;
        }
    }
    by_memory
}

/// The right side of `T = F(T)` for a profile of one phase, written down once more from its
/// definition: access by access, memory by memory.
fn needed(machine: &Machine, case: &Case, fabric: &Fabric, seconds: f64) -> f64 {
    let flow = fabric.flow(traffic(case, 0).into_iter());
    let threads = f64::from(case.threads);
    let mut sum = case.profile.phases[0].compute_s / threads;
    let mut in_window = Vec::new();
    for access in &case.profile.phases[0].accesses {
        let row = &case.rows[case.profile.object_index(&access.object).unwrap()];
        let held = match access.pattern {
            Pattern::Stream | Pattern::Strided => machine.sockets[0].stream_lines.value,
            Pattern::Random | Pattern::Chain => machine.sockets[0].demand_lines.value,
        };
        for (memory, fraction) in row.iter().enumerate().filter(|(_, fraction)| **fraction > 0.0) {
            let lines = fraction * access.dram_read_bytes / 64.0;
            let waits = lines / threads / access.mlp.min(held).max(1.0);
            let each_s = if waits > 0.0 { flow.latency_ns(memory, seconds) * 1e-9 } else { 0.0 };
            sum += waits * each_s;
            if access.pattern == Pattern::Random && access.mlp <= held && waits > 0.0 {
                in_window.push((lines / threads, waits, each_s));
            }
        }
    }
    sum + held_up(&in_window)
}

/// What reads in one window wait beyond each its own: reads, those one after the other, and seconds of one.
fn held_up(reads: &[(f64, f64, f64)]) -> f64 {
    let all: f64 = reads.iter().map(|read| read.0).sum();
    let window = all / reads.iter().map(|read| read.1).sum::<f64>();
    let itself: f64 = reads.iter().map(|read| read.1 * read.2).sum();
    let held = reads.iter().map(|slowest| {
        let slow = || reads.iter().filter(|read| read.2 >= slowest.2);
        let many: f64 = slow().map(|read| read.0).sum();
        all * slow().map(|read| read.0 * read.2).sum::<f64>() / many / (window + all / many - 1.0)
    });
    (held.fold(0.0, f64::max) - itself).max(0.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn more_bandwidth_never_slows(case in case(), factor in 1.0..4.0) {
        let (before, after) = (time(&machine(), &case), time(&with_bandwidth(machine(), factor), &case));
        prop_assert!(not_above(after, before), "{before} {after}");
    }

    #[test]
    fn less_latency_never_slows(case in case(), factor in 0.3..1.0) {
        let (before, after) = (time(&machine(), &case), time(&with_idle(machine(), factor), &case));
        prop_assert!(not_above(after, before), "{before} {after}");
    }

    #[test]
    fn more_threads_never_slow(case in case(), more in 1_u32..64) {
        let wider = Case { threads: (case.threads + more).min(64), ..case.clone() };
        prop_assert!(not_above(time(&machine(), &wider), time(&machine(), &case)));
    }

    #[test]
    fn two_equal_halves_are_the_whole(case in case(), which in any::<prop::sample::Index>()) {
        let mut split = case.clone();
        let index = which.index(case.rows.len());
        let (name, twin) = (format!("o{index}"), "twin".to_owned());
        split.profile.objects[index].size_bytes /= 2;
        split.profile.objects.push(object(&twin, split.profile.objects[index].size_bytes));
        split.rows.push(case.rows[index].clone());
        for phase in &mut split.profile.phases {
            let whole: Vec<_> = phase.accesses.extract_if(.., |access| access.object == name).collect();
            for mut half in whole {
                half.dram_read_bytes /= 2.0;
                half.dram_write_bytes /= 2.0;
                phase.accesses.push(half.clone());
                phase.accesses.push(tierloom_model::Access { object: twin.clone(), ..half });
            }
        }
        prop_assert!(same(time(&machine(), &case), time(&machine(), &split)));
    }

    #[test]
    fn order_does_not_matter(case in case()) {
        let mut turned = case.clone();
        turned.profile.objects.reverse();
        turned.rows.reverse();
        turned.rows.iter_mut().for_each(|row| row.reverse());
        turned.profile.phases.reverse();
        turned.profile.phases.iter_mut().for_each(|phase| phase.accesses.reverse());
        let mut turned_machine = machine();
        turned_machine.memories.reverse();
        turned_machine.paths.reverse();
        prop_assert!(same(time(&machine(), &case), time(&turned_machine, &turned)));
    }

    #[test]
    fn the_same_input_gives_the_same_bits(case in case()) {
        prop_assert_eq!(time(&machine(), &case).to_bits(), time(&machine(), &case).to_bits());
    }

    #[test]
    fn the_time_solves_the_equation_or_is_the_roofline(case in case_with(1..2)) {
        let machine = machine();
        let fabric = Fabric::new(&machine, 0).unwrap();
        let time_s = time(&machine, &case);
        let roofline_s = fabric.flow(traffic(&case, 0).into_iter()).least_s();
        prop_assert!(not_above(roofline_s, time_s), "{roofline_s} {time_s}");
        let (less, more) = (time_s * (1.0 - 1e-9), time_s * (1.0 + 1e-9));
        prop_assert!(needed(&machine, &case, &fabric, more) <= more);
        prop_assert!(less < roofline_s || needed(&machine, &case, &fabric, less) >= less);
    }

    #[test]
    fn no_memory_or_link_carries_more_than_its_peak(case in case_with(1..2)) {
        let machine = machine();
        let fabric = Fabric::new(&machine, 0).unwrap();
        let (time_s, traffic) = (time(&machine, &case), traffic(&case, 0));
        for (memory, bytes) in traffic.iter().enumerate() {
            prop_assert!(bytes.bytes() * 1e-9 <= time_s * fabric.peak_gb_s(memory, bytes.read_fraction()) * (1.0 + 1e-12));
        }
        let over_link = |way: fn(&Traffic) -> f64| way(&traffic[1]) + way(&traffic[2]);
        let busier = over_link(|bytes| bytes.read).max(over_link(|bytes| bytes.write));
        prop_assert!(busier * 1e-9 <= time_s * machine.links[0].gb_s_each_way.value * (1.0 + 1e-12));
        let flow = fabric.flow(traffic.iter().copied());
        prop_assert!(flow.bottleneck() != Some(Station::Memory(MEMORIES)));
    }

    #[test]
    fn shifting_is_the_same_as_starting_over(
        case in case(),
        moves in prop::collection::vec((any::<prop::sample::Index>(), 0..MEMORIES, 0..MEMORIES, 0.0..1.0), 0..30),
    ) {
        let machine = machine();
        let predictor = predictor(&machine, &case);
        let (mut rows, mut demand) = (case.rows.clone(), predictor.demand(&case.rows));
        for (object, from, to, share) in moves {
            let object = object.index(rows.len());
            let fraction = rows[object][from] * share;
            rows[object][from] -= fraction;
            rows[object][to] += fraction;
            predictor.shift(&mut demand, object, from, to, fraction);
        }
        prop_assert!(same(predictor.time_s(&demand), predictor.time_s(&predictor.demand(&rows))));
    }

    #[test]
    fn a_report_adds_up(case in case()) {
        let machine = machine();
        let prediction = predictor(&machine, &case).predict(&Placement::new(case.rows.clone(), MEMORIES).unwrap());
        let accesses = case.profile.phases.iter().flat_map(|phase| &phase.accesses);
        let bytes: f64 = accesses.map(|access| access.dram_read_bytes + access.dram_write_bytes).sum();
        let carried: f64 = prediction.tiers.iter().map(|tier| tier.read_bytes + tier.write_bytes).sum();
        let stalls: f64 = prediction.objects.iter().map(|object| object.stall_s).sum();
        prop_assert!(same(bytes, carried));
        prop_assert!((stalls - prediction.stall_s).abs() <= 1e-9 * prediction.time_s);
        prop_assert!(same(prediction.compute_s + prediction.stall_s, prediction.time_s));
        prop_assert!(same(prediction.time_s, time(&machine, &case)));
        prop_assert!(prediction.low_s <= prediction.time_s && prediction.time_s <= prediction.high_s);
        for tier in &prediction.tiers {
            prop_assert!(tier.utilisation <= 1.0 + 1e-9 && tier.loaded_ns >= tier.idle_ns * (1.0 - 1e-9));
        }
    }

    #[test]
    fn an_object_weighs_what_its_accesses_weigh(case in case()) {
        let machine = machine();
        let predictor = predictor(&machine, &case);
        for index in 0..predictor.objects() {
            let name = format!("o{index}");
            let accesses = case.profile.phases.iter().flat_map(|phase| &phase.accesses).filter(|a| a.object == name);
            let bytes: f64 = accesses.map(|access| access.dram_read_bytes + access.dram_write_bytes).sum();
            prop_assert!(same(predictor.dram_bytes(index), bytes));
            prop_assert!((predictor.stall_per_ns(index) > 0.0) <= (bytes > 0.0));
        }
    }
}
