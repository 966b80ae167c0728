//! What a reader must know before believing the numbers: cause and remedy.

use crate::attribution::OperandId;
use crate::attribution::{Attribution, Observed, Rest};
use crate::frequency::Counts;
use crate::traffic::accesses::AllAccesses;
use tierloom_binary::debug_info::Missing;
use tierloom_model::Warning;
use tierloom_recording::Recording;

/// Fewer samples than this leave a share of 10 % open by 4 points and more (Wilson).
const FEW_SAMPLES: usize = 200;
/// Shares below this are not worth a warning.
const NOTEWORTHY: f64 = 0.1;

/// What the warnings are drawn from.
pub(crate) struct Doubts<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) observed: &'a Observed,
    pub(crate) counts: &'a Counts,
    pub(crate) tallies: &'a AllAccesses,
    /// Share of the memory traffic for which there was no time.
    pub(crate) cut: f64,
}

impl Doubts<'_> {
    pub(crate) fn all(&self) -> Vec<Warning> {
        [self.about_samples(), self.about_skid(), self.about_code(), self.about_counts()].concat()
    }

    fn about_samples(&self) -> Vec<Warning> {
        let samples = self.observed.seen.len();
        let hz = 1e9 / self.recording.period_ns.max(1.0);
        let (lost, lost_allocations) = (self.recording.lost, self.recording.lost_allocations);
        let few = (samples < FEW_SAMPLES).then_some(Warning::FewSamples { samples, hz });
        let missing = (lost > 0).then_some(Warning::LostSamples { lost, samples });
        let unknown = (lost_allocations > 0).then_some(Warning::LostAllocations { lost: lost_allocations });
        few.into_iter().chain(missing).chain(unknown).collect()
    }

    fn about_skid(&self) -> Vec<Warning> {
        let calibration = self.recording.calibration;
        match calibration.samples {
            0 => vec![Warning::SkidUnknown],
            _ if !calibration.tells_instruction() => vec![Warning::Skid { purity: calibration.purity }],
            _ => Vec::new(),
        }
    }

    fn about_code(&self) -> Vec<Warning> {
        let samples = self.observed.seen.len().max(1) as f64;
        let lost = self.observed.seen.iter().filter(|seen| seen.verdict == Attribution::Rest(Rest::Unrecovered));
        let (foreign, own): (Vec<_>, Vec<_>) = lost.partition(|seen| seen.at.is_none());
        let (foreign, own) = (foreign.len() as f64 / samples, own.len() as f64 / samples);
        let generated = (foreign > NOTEWORTHY).then_some(Warning::GeneratedCode { share: foreign });
        let unclear = (own > NOTEWORTHY).then_some(Warning::Unrecovered { share: own });
        generated.into_iter().chain(unclear).collect()
    }

    fn about_counts(&self) -> Vec<Warning> {
        let known: f64 = self.tallies.known.iter().map(|tally| tally.executions).sum();
        let counted = |operand: &OperandId| {
            let function = &self.observed.code.functions[operand.function].function;
            let block = function.block_of(operand.instruction);
            self.counts.blocks.get(&operand.function).is_some_and(|blocks| blocks.counted[block])
        };
        let guessed: f64 =
            self.tallies.known.iter().filter(|tally| !counted(&tally.operand)).map(|tally| tally.executions).sum();
        let guessed = guessed / known.max(1.0);
        let unseen = self.tallies.unseen / (known + self.tallies.unseen).max(1.0);
        let uncounted = (guessed > NOTEWORTHY).then_some(Warning::Uncounted { share: guessed });
        let missing = (unseen > NOTEWORTHY).then_some(Warning::ObjectsUnseen { share: unseen });
        let no_time = (self.cut > NOTEWORTHY).then_some(Warning::NoTime { share: self.cut });
        uncounted.into_iter().chain(missing).chain(no_time).collect()
    }
}

/// Of a file whose objects have no source lines.
pub(crate) fn about_lines(file: &str, missing: Option<&Missing>) -> Warning {
    let file = file.to_owned();
    match missing {
        None => Warning::SomeDebugInformation { file },
        Some(Missing::Elsewhere(name)) => Warning::DebugFileMissing { file, debug_file: name.clone() },
        Some(Missing::NotBuilt | Missing::Unreadable) => Warning::NoDebugInformation { file },
    }
}
