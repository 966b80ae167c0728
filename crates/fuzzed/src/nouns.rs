//! Files of nouns: what was read is written, and means the same when it is read again.

use tierloom_expander::Parameters;
use tierloom_model::{Machine, Plan, Profile, samples_from_npy, samples_to_npy};
use tierloom_tiering::Workload;

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

pub(crate) fn machine(bytes: &[u8]) {
    if let Ok(machine) = Machine::from_toml(text(bytes), "fuzzed.toml") {
        assert_eq!(Machine::from_toml(&machine.to_toml(), "written.toml"), Ok(machine));
    }
    if let Ok(machine) = Machine::from_json(text(bytes), "fuzzed.json") {
        assert_eq!(Machine::from_toml(&machine.to_toml(), "written.toml"), Ok(machine));
    }
}

pub(crate) fn plan(bytes: &[u8]) {
    if let Ok(plan) = Plan::from_toml(text(bytes), "fuzzed.plan.toml") {
        assert_eq!(Plan::from_toml(&plan.to_toml(), "written.plan.toml"), Ok(plan));
    }
}

pub(crate) fn profile(bytes: &[u8]) {
    if let Ok(profile) = Profile::from_json(text(bytes), "fuzzed.json") {
        assert_eq!(Profile::from_json(&profile.to_json(), "written.json"), Ok(profile));
    }
}

pub(crate) fn workload(bytes: &[u8]) {
    if let Ok(workload) = Workload::from_toml(text(bytes), "fuzzed.toml") {
        let _ = workload.footprint_bytes();
    }
}

pub(crate) fn parameters(bytes: &[u8]) {
    let _ = Parameters::from_toml(text(bytes), "fuzzed.toml");
}

pub(crate) fn samples(bytes: &[u8]) {
    if let Ok(rows) = samples_from_npy(bytes) {
        assert_eq!(samples_from_npy(&samples_to_npy(&rows)), Ok(rows));
    }
}
