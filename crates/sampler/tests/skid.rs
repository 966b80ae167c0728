//! Where a machine's samples fall too far behind what waited: no instruction is blamed.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use std::fs;

use common::{compiled, library};
use tierloom_linux::root::Root;
use tierloom_model::Profile;
use tierloom_sampler::recording::{Calibration, Recording};
use tierloom_sampler::{Processor, RecordRequest, analyse, record};

/// The array that one loop reads by itself, and the one that is only read along with it, bytes.
const ALONE: u64 = 24 << 20;
const ALONG: u64 = 32 << 20;

fn recorded() -> Recording {
    let program = compiled("skid", &[]);
    let calibration = Some(Calibration::UNKNOWN);
    let command = vec![program.clone().into_os_string()];
    let request = RecordRequest { calibration, ..RecordRequest::new(command, Some(library().to_owned())) };
    let recording = record(&request, &mut |_| ()).unwrap();
    fs::remove_file(program).unwrap();
    recording
}

/// The profile of the same run on a machine of which so many samples fall right behind what waited.
fn profile(recording: &Recording, purity: f64) -> Profile {
    let calibration = Calibration { offset: 1, purity, samples: 500 };
    let recording = Recording { calibration, ..recording.clone() };
    analyse(&recording, &Processor::of(&Root::default())).unwrap().0
}

fn waited(profile: &Profile, bytes: u64) -> f64 {
    let object = profile.objects.iter().find(|object| object.size_bytes == bytes).unwrap();
    object.stall.as_ref().map_or(0.0, |stall| stall.share)
}

fn rest(profile: &Profile, name: &str) -> f64 {
    profile.unattributed.iter().find(|rest| rest.name == name).unwrap().stall.share
}

fn reads(profile: &Profile, bytes: u64) -> f64 {
    let name = &profile.objects.iter().find(|object| object.size_bytes == bytes).unwrap().name;
    let all = profile.phases.iter().flat_map(|phase| &phase.accesses);
    all.filter(|access| access.object == *name).map(|access| access.reads).sum()
}

fn warns(profile: &Profile) -> bool {
    let warnings = &profile.sampling.as_ref().unwrap().warnings;
    warnings.iter().any(|warning| warning.contains("of the calibration samples"))
}

#[test]
fn below_eighty_percent_no_instruction_is_blamed_and_counts_stay() {
    let recording = recorded();
    let (sharp, blurred) = (profile(&recording, 0.97), profile(&recording, 0.6));
    assert!(!warns(&sharp) && warns(&blurred));
    assert!(waited(&blurred, ALONE) > 0.1, "a loop over one array tells by itself what it waits for");
    assert!(rest(&blurred, "[unrecovered]") > rest(&sharp, "[unrecovered]") + 0.1, "a loop over two does not");
    let along = (waited(&sharp, ALONG), waited(&blurred, ALONG));
    assert!(along.1 < along.0, "{along:?}");
    for bytes in [ALONE, ALONG] {
        let (before, after) = (reads(&sharp, bytes), reads(&blurred, bytes));
        assert!((after / before - 1.0).abs() < 0.02, "{bytes}: {before} and {after} reads");
    }
}

#[test]
fn the_limit_itself_is_pure_enough() {
    assert!(Calibration { offset: 1, purity: 0.8, samples: 500 }.tells_instruction());
    assert!(!Calibration { offset: 1, purity: 0.79, samples: 500 }.tells_instruction());
}
