//! What runs without the recorder tell: how long the program takes, and whether the run that was recorded was another.

use tierloom_model::{Profile, RunTime, Warning};
use tierloom_recording::{Exit, Recording};

/// The run that was recorded took another time than others if it is this part of theirs off, and not one of their range: as
/// much as the error that one asks of a prediction.
const ANOTHER_TIME: f64 = 0.05;

/// Times of the runs that ended as the one that was recorded, s.
pub(super) fn alike_s(recording: &Recording) -> Vec<f64> {
    let ended = recording.exit.map(Exit::code);
    let alike = recording.unrecorded.iter().filter(|run| ended == Some(i32::from(run.exit_code)));
    alike.map(|run| run.wall_s).collect()
}

/// Has the profile's phases take as long together as runs without the recorder, and says where they differ.
pub(super) fn hold_against(profile: &mut Profile, recording: &Recording) {
    let (all, alike) = (recording.unrecorded.len(), profile.program.unprofiled_s.len());
    let mut warnings = Vec::new();
    if alike < all {
        warnings.push(Warning::RunsEndedOtherwise { runs: all - alike, of: all });
    }
    let recorded_s = profile.undisturbed().middle_s();
    if let Some(run) = RunTime::of_runs(&profile.program.unprofiled_s).filter(|_| recorded_s > 0.0) {
        let longer = recorded_s / run.likely_s - 1.0;
        let is_one_of_them = (run.least_s..=run.most_s).contains(&recorded_s) || longer.abs() <= ANOTHER_TIME;
        let is_another = run.is_spread_known() && !is_one_of_them;
        warnings.extend(is_another.then_some(Warning::AnotherTime { longer, runs: run.runs }));
        stretch(profile, run.likely_s / recorded_s);
    }
    if let Some(sampling) = &mut profile.sampling {
        sampling.warnings.extend(warnings);
    }
}

/// What slowed the recorded run slowed all of it alike, as far as anybody knows.
fn stretch(profile: &mut Profile, by: f64) {
    for phase in &mut profile.phases {
        phase.compute_s *= by;
        let times = [&mut phase.idle_s, &mut phase.meeting_s];
        let waits = phase.accesses.iter_mut().map(|access| &mut access.wait_s);
        times.into_iter().chain(waits).flatten().for_each(|time_s| *time_s *= by);
    }
}
