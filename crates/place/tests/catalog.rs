//! The catalog through the engines: published points of saturation, and every policy on every
//! profile.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a test that panics has failed, as it should"
)]

use std::fs;
use std::path::{Path, PathBuf};

use tierloom_model::{Load, Machine, Peak, Placement, Profile};
use tierloom_place::{Request, compare};
use tierloom_predict::{Predictor, Run};

const PROFILES: [&str; 9] =
    ["bt-e", "cg-e", "cloverleaf-bm1024", "cloverleaf-bm256", "ft-d", "lu-e", "mg-e", "sp-e", "xsbench-xl"];

fn catalog(path: &str) -> (String, PathBuf) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tierloom/catalog").join(path);
    (fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())), file)
}

fn machine(name: &str) -> Machine {
    let (text, file) = catalog(&format!("machines/{name}.toml"));
    Machine::from_toml(&text, &file.display().to_string()).unwrap()
}

fn profile(name: &str) -> Profile {
    let (text, file) = catalog(&format!("profiles/{name}.profile/profile.json"));
    Profile::from_json(&text, &file.display().to_string()).unwrap()
}

/// A program that only reads one stream, as bandwidth tests do.
fn stream() -> Profile {
    let mut profile = profile("ft-d");
    let phase = &mut profile.phases[0];
    phase.compute_s = 0.0;
    phase.accesses.truncate(1);
    phase.accesses[0].dram_write_bytes = 0.0;
    profile
}

/// Bandwidth (GB/s) and latency (ns) of that stream from one memory.
fn streamed(machine: &Machine, memory: &str, threads: u32) -> (f64, f64) {
    let profile = stream();
    let predictor = Predictor::new(machine, &profile, Run { socket: 0, threads }).unwrap();
    let memory = machine.memory_index(memory).unwrap();
    let placement = Placement::uniform(profile.objects.len(), machine.memories.len(), memory);
    let tier = &predictor.predict(&placement).tiers[memory];
    (tier.gb_s, tier.loaded_ns)
}

/// Read peak of a path, GB/s.
fn read_peak(machine: &Machine, memory: &str) -> f64 {
    let path = machine.path(0, machine.memory_index(memory).unwrap()).unwrap();
    let Load::Form(form) = &path.load else { panic!("{memory} has points, not a form") };
    match form.peak {
        Peak::Half { read_gb_s, .. } => read_gb_s,
        Peak::Full { read_gb_s, combined_gb_s, sharpness, .. } => {
            (read_gb_s.powf(-sharpness) + combined_gb_s.powf(-sharpness)).powf(-1.0 / sharpness)
        }
    }
}

#[test]
fn thirty_two_threads_saturate_server_c_as_published() {
    let c = machine("liu-c");
    let (gb_s, ns) = streamed(&c, "ldram", 32);
    assert!((gb_s / 110.0 - 1.0).abs() < 0.02 && (ns / 543.0 - 1.0).abs() < 0.03, "{gb_s} GB/s at {ns} ns");
    // Lines in flight are those of the near memory, and overstate the far one's 600 ns.
    let (gb_s, ns) = streamed(&c, "rdram", 32);
    assert!((gb_s / 84.0 - 1.0).abs() < 0.02 && (600.0..=720.0).contains(&ns), "{gb_s} GB/s at {ns} ns");
}

/// The card's limit on lines in flight is made of the study's 400 to 550 ns near its peak; reads alone reach less, and
/// queue as long for it.
#[test]
fn the_card_of_server_c_takes_so_many_lines() {
    let c = machine("liu-c");
    let (gb_s, ns) = streamed(&c, "cxl", 32);
    let lines = c.memories[c.memory_index("cxl").unwrap()].lines_in_flight.as_ref().unwrap().value;
    assert!((gb_s * ns / 64.0 / lines - 1.0).abs() < 0.01, "{gb_s} GB/s at {ns} ns");
    assert!(lines < 32.0 * c.sockets[0].stream_lines.value, "fewer than the cores'");
}

/// Published: local DRAM saturates at 28 threads, remote at 20, the card above 8.
#[test]
fn memories_of_server_b_saturate_at_the_published_threads() {
    let b = machine("liu-b");
    for (memory, published) in [("ldram", 28.0), ("rdram", 20.0), ("cxl", 8.0)] {
        let enough = 0.9 * read_peak(&b, memory);
        let threads = (1..=52).find(|threads| streamed(&b, memory, *threads).0 >= enough).unwrap();
        let apart = f64::from(threads) / published - 1.0;
        assert!(apart.abs() < 0.15, "{memory}: {threads} threads");
    }
}

#[test]
fn no_policy_beats_tierloom_on_any_profile() {
    let a = machine("liu-a");
    for name in PROFILES {
        let profile = profile(name);
        let request = Request { threads: Some(32), budget: Some(profile.footprint_bytes() / 2), ..Request::default() };
        let comparison = compare(&a, &profile, &request).unwrap_or_else(|error| panic!("{name}: {error}"));
        let times = comparison.policies.iter().filter_map(|one| Some((&one.policy, one.outcome.as_ref().ok()?.time_s)));
        let times: Vec<_> = times.collect();
        let ours = times.iter().find(|(policy, _)| *policy == "tierloom").unwrap().1;
        for (policy, time_s) in times {
            assert!(ours <= time_s * (1.0 + 1e-9), "{name}: {policy} takes {time_s} s, tierloom {ours} s");
        }
    }
}
