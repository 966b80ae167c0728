//! Every machine of the catalog runs every profile of the catalog, and the reports hold together.

#![allow(clippy::unwrap_used, reason = "test data")]

use std::fs;
use std::path::{Path, PathBuf};

use tierloom_model::{Machine, Placement, Prediction, Profile};
use tierloom_predict::{Predictor, Run};

fn files(folder: &str) -> Vec<PathBuf> {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tierloom/catalog").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(catalog).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn machines() -> Vec<Machine> {
    let read = |path: &PathBuf| Machine::from_toml(&fs::read_to_string(path).unwrap(), "machine").unwrap();
    files("machines").iter().map(read).collect()
}

fn profiles() -> Vec<Profile> {
    let read = |path: &PathBuf| {
        Profile::from_json(&fs::read_to_string(path.join("profile.json")).unwrap(), "profile").unwrap()
    };
    files("profiles").iter().map(read).collect()
}

/// Everything in one memory, for each memory that the first socket reaches, and spread over all of
/// them.
fn placements(machine: &Machine, objects: usize) -> Vec<Placement> {
    let (memories, reached) = (machine.memories.len(), machine.memories_by_distance(0));
    let share = 1.0 / reached.len() as f64;
    let even: Vec<f64> = (0..memories).map(|memory| if reached.contains(&memory) { share } else { 0.0 }).collect();
    let one = |memory: &usize| Placement::uniform(objects, memories, *memory);
    reached.iter().map(one).chain([Placement::new(vec![even; objects], memories).unwrap()]).collect()
}

fn check(prediction: &Prediction) {
    assert!(prediction.time_s.is_finite() && prediction.time_s > 0.0);
    assert!(prediction.low_s <= prediction.time_s && prediction.time_s <= prediction.high_s);
    let stalls: f64 = prediction.objects.iter().map(|object| object.stall_s).sum();
    assert!((stalls - prediction.stall_s).abs() <= 1e-9 * prediction.time_s, "{stalls} {}", prediction.stall_s);
    for tier in prediction.tiers.iter().filter(|tier| tier.gb_s > 0.0) {
        assert!(tier.utilisation <= 1.0 + 1e-9, "{} {}", tier.memory, tier.utilisation);
        assert!(tier.loaded_ns.is_finite() && tier.loaded_ns >= tier.idle_ns * (1.0 - 1e-9), "{}", tier.memory);
    }
}

#[test]
fn every_machine_runs_every_profile() {
    for machine in machines() {
        for profile in profiles() {
            for placement in placements(&machine, profile.objects.len()) {
                let mut before_s = f64::INFINITY;
                for threads in [1, 4, machine.sockets[0].cores.value / 2, machine.sockets[0].cores.value] {
                    let predictor = Predictor::new(&machine, &profile, Run { socket: 0, threads }).unwrap();
                    let prediction = predictor.predict(&placement);
                    check(&prediction);
                    assert!(prediction.time_s <= before_s * (1.0 + 1e-10), "{} {}", machine.name, profile.name);
                    before_s = prediction.time_s;
                }
            }
        }
    }
}

#[test]
fn near_memory_is_never_slower_than_far_memory() {
    for machine in machines() {
        let order = machine.memories_by_distance(0);
        for profile in profiles() {
            let predictor = Predictor::new(&machine, &profile, Run { socket: 0, threads: 1 }).unwrap();
            let time = |memory: usize| {
                predictor.predict(&Placement::uniform(profile.objects.len(), machine.memories.len(), memory)).time_s
            };
            assert!(order.windows(2).all(|pair| time(pair[0]) <= time(pair[1])), "{} {}", machine.name, profile.name);
        }
    }
}
