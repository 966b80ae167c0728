//! Machines and profiles to try policies on. Their figures are made up.
#![allow(
    dead_code,
    clippy::expect_used,
    reason = "each test file uses its own part; a fixture that is wrong should stop it"
)]

use proptest::prelude::*;
pub(crate) use tierloom_fixtures::{GIB, machine as machine_of};
use tierloom_fixtures::{access, ddr, memory, object, path, phase, profile};
use tierloom_model::hash::SplitMix;
use tierloom_model::{Machine, MemoryKind, Pattern, Profile, units};
use tierloom_predict::{Predictor, Run};

/// Two sockets with 64 GiB of DRAM each and a CXL memory of 128 GiB on the second one.
pub(crate) fn machine() -> Machine {
    machine_of([64, 64, 128], [160.0, 80.0, 30.0])
}

/// What a test says about an object: GiB, pattern, GB read and written, misses in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    pub(crate) gib: f64,
    pub(crate) pattern: Pattern,
    pub(crate) read_gb: f64,
    pub(crate) write_gb: f64,
    pub(crate) mlp: f64,
}

pub(crate) fn data(gib: f64, pattern: Pattern, read_gb: f64, write_gb: f64, mlp: f64) -> Data {
    Data { gib, pattern, read_gb, write_gb, mlp }
}

/// Objects `o0`, `o1`, … touched in that order; each phase lists which of them it uses.
pub(crate) fn profile_of(objects: &[Data], phases: &[&[usize]], threads: u32, compute_s: f64) -> Profile {
    let name = |index: usize| format!("o{index}");
    let object = |(index, data): (usize, &Data)| {
        let mut object = object(&name(index), units::round_to_u64(data.gib * GIB as f64));
        object.first_touch_s = index as f64 * 0.001;
        object
    };
    let access = |index: &usize| {
        let data = objects[*index];
        access(&name(*index), data.pattern, data.read_gb * 1e9, data.write_gb * 1e9, data.mlp)
    };
    let phase = |(index, used): (usize, &&[usize])| {
        phase(&format!("phase {index}"), threads, compute_s, used.iter().map(access).collect())
    };
    profile(objects.iter().enumerate().map(object).collect(), phases.iter().enumerate().map(phase).collect())
}

/// A stream, a table of lookups, a list and a cold array: 70 GiB.
pub(crate) fn small_profile() -> Profile {
    let objects = [
        data(40.0, Pattern::Stream, 400.0, 200.0, 24.0),
        data(20.0, Pattern::Stream, 10.0, 0.0, 24.0),
        data(8.0, Pattern::Random, 90.0, 10.0, 6.0),
        data(2.0, Pattern::Chain, 5.0, 0.0, 1.0),
    ];
    profile_of(&objects, &[&[0, 3], &[0, 1, 2, 3]], 16, 8.0)
}

/// Any object: from a small hot list to a large cold array.
pub(crate) fn any_data() -> impl Strategy<Value = Data> {
    let pattern = prop_oneof![
        Just((Pattern::Stream, 24.0)),
        Just((Pattern::Strided, 10.0)),
        Just((Pattern::Random, 6.0)),
        Just((Pattern::Chain, 1.0))
    ];
    let traffic = prop_oneof![Just(0.0), 0.0f64..300.0];
    (0.01f64..24.0, pattern, traffic, 0.0f64..1.0).prop_map(|(gib, (pattern, mlp), read_gb, written)| Data {
        gib,
        pattern,
        read_gb,
        write_gb: read_gb * written * 0.6,
        mlp,
    })
}

/// A predictor for the first socket on the threads of the profile.
pub(crate) fn predictor(machine: &Machine, profile: &Profile) -> Predictor {
    Predictor::new(machine, profile, Run { socket: 0, threads: profile.program.threads }).expect("the fixture is valid")
}

/// Two sockets with DRAM, one with HBM too, and an expander: four nodes, less near than there is data.
pub(crate) fn four_nodes() -> Machine {
    let mut machine = machine_of([64, 128, 512], [160.0, 80.0, 50.0]);
    machine.memories.push(memory("hbm", MemoryKind::Hbm, "s0", 16));
    machine.paths.push(path("s0", "hbm", 130.0, &[], ddr(400.0)));
    machine
}

/// A stream of numbers from 0 to 1 that is the same for the same seed (`SplitMix64`).
pub(crate) fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut sequence = SplitMix::new(seed);
    move || (sequence.draw() >> 11) as f64 / (1u64 << 53) as f64
}

/// Objects of all kinds, 200 GiB and 2 TB of traffic in all, in two phases.
pub(crate) fn many_objects(count: usize, seed: u64) -> Profile {
    let mut number = numbers(seed);
    let kinds = [(Pattern::Stream, 24.0), (Pattern::Strided, 10.0), (Pattern::Random, 6.0), (Pattern::Chain, 1.0)];
    let mut objects: Vec<Data> = (0..count)
        .map(|index| {
            let (pattern, mlp) = kinds[index % kinds.len()];
            let weight = 1.0 / (1.0 - 0.95 * number());
            let lonely = if pattern == Pattern::Chain { 0.05 } else { 1.0 };
            data(weight, pattern, number() * weight * lonely, 0.3 * number() * weight * lonely, mlp)
        })
        .collect();
    let (gib, gb) = objects.iter().fold((0.0, 0.0), |(gib, gb), o| (gib + o.gib, gb + o.read_gb + o.write_gb));
    for object in &mut objects {
        object.gib *= 200.0 / gib;
        object.read_gb *= 2000.0 / gb;
        object.write_gb *= 2000.0 / gb;
    }
    let all: Vec<usize> = (0..count).collect();
    let third: Vec<usize> = (0..count).filter(|object| object % 3 == 0).collect();
    profile_of(&objects, &[&all, &third], 32, 20.0)
}
