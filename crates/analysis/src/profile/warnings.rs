//! What a reader must know before believing the numbers: cause and remedy.

use std::fmt;

use crate::attribution::{Attribution, Observed, Rest};
use crate::frequency::Counts;
use crate::traffic::accesses::AllAccesses;
use tierloom_recording::Recording;

/// Fewer samples than this leave a share of 10 % open by 4 points and more (Wilson).
const FEW_SAMPLES: usize = 200;
/// Shares below this are not worth a warning.
const NOTEWORTHY: f64 = 0.1;

/// One reason for doubt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Warning {
    TooFewSamples { samples: usize, hz: f64 },
    LostSamples { lost: u64, samples: usize },
    LostAllocations { lost: u64 },
    LowPurity { purity: f64 },
    NoCalibration,
    UnknownCode { share: f64 },
    Unrecovered { share: f64 },
    Uncounted { share: f64 },
    Unseen { share: f64 },
    NoTime { share: f64 },
}

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
        let few = (samples < FEW_SAMPLES).then_some(Warning::TooFewSamples { samples, hz });
        let missing = (lost > 0).then_some(Warning::LostSamples { lost, samples });
        let unknown = (lost_allocations > 0).then_some(Warning::LostAllocations { lost: lost_allocations });
        few.into_iter().chain(missing).chain(unknown).collect()
    }

    fn about_skid(&self) -> Vec<Warning> {
        let calibration = self.recording.calibration;
        match calibration.samples {
            0 => vec![Warning::NoCalibration],
            _ if !calibration.tells_instruction() => vec![Warning::LowPurity { purity: calibration.purity }],
            _ => Vec::new(),
        }
    }

    fn about_code(&self) -> Vec<Warning> {
        let samples = self.observed.seen.len().max(1) as f64;
        let lost = self.observed.seen.iter().filter(|seen| seen.verdict == Attribution::Rest(Rest::Unrecovered));
        let (foreign, own): (Vec<_>, Vec<_>) = lost.partition(|seen| seen.at.is_none());
        let (foreign, own) = (foreign.len() as f64 / samples, own.len() as f64 / samples);
        let generated = (foreign > NOTEWORTHY).then_some(Warning::UnknownCode { share: foreign });
        let unclear = (own > NOTEWORTHY).then_some(Warning::Unrecovered { share: own });
        generated.into_iter().chain(unclear).collect()
    }

    fn about_counts(&self) -> Vec<Warning> {
        let known: f64 = self.tallies.known.iter().map(|tally| tally.executions).sum();
        let counted = |operand: &(usize, usize, usize)| {
            let function = &self.observed.code.functions[operand.0].function;
            let block = function.block_of(operand.1);
            self.counts.blocks.get(&operand.0).is_some_and(|blocks| blocks.counted[block])
        };
        let guessed: f64 =
            self.tallies.known.iter().filter(|tally| !counted(&tally.operand)).map(|tally| tally.executions).sum();
        let guessed = guessed / known.max(1.0);
        let unseen = self.tallies.unseen / (known + self.tallies.unseen).max(1.0);
        let uncounted = (guessed > NOTEWORTHY).then_some(Warning::Uncounted { share: guessed });
        let missing = (unseen > NOTEWORTHY).then_some(Warning::Unseen { share: unseen });
        let no_time = (self.cut > NOTEWORTHY).then_some(Warning::NoTime { share: self.cut });
        uncounted.into_iter().chain(missing).chain(no_time).collect()
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewSamples { samples, hz } => write!(
                out,
                "only {samples} samples: shares are rough; let the program run longer, or sample faster than {hz:.0}/s"
            ),
            Self::LostSamples { lost, samples } => write!(
                out,
                "{lost} samples were lost beside {samples} kept: busy stretches are under-counted; sample slower"
            ),
            Self::LostAllocations { lost } => write!(
                out,
                "{lost} allocation events were lost: some memory is named [small objects]; allocate in larger pieces or \
                 raise the object threshold"
            ),
            Self::LowPurity { purity } => write!(
                out,
                "only {:.0} % of the calibration samples fell right behind the waiting instruction: waiting is \
                 told by basic block where all of a block touches one object, and [unrecovered] elsewhere; counts \
                 are not affected; record on another machine to tell more",
                100.0 * purity
            ),
            Self::NoCalibration => write!(
                out,
                "the skid of this machine was not measured: stall shares take it to be one instruction; record with \
                 calibration"
            ),
            Self::UnknownCode { share } => write!(
                out,
                "{:.0} % of the samples fell into code of no file (generated at run time): it is [unrecovered]; \
                 profile an ahead-of-time build if there is one",
                100.0 * share
            ),
            Self::Unrecovered { share } => write!(
                out,
                "{:.0} % of the samples could not be attributed: compile with optimisation, which keeps addresses in \
                 registers",
                100.0 * share
            ),
            Self::Uncounted { share } => write!(
                out,
                "{:.0} % of the accesses lie in code without a counting register: their numbers follow from samples \
                 and flow, good to a factor rather than to a percent",
                100.0 * share
            ),
            Self::Unseen { share } => write!(
                out,
                "{:.0} % of the accesses touch objects that no sample shows: they are missing; let the program run \
                 longer",
                100.0 * share
            ),
            Self::NoTime { share } => write!(
                out,
                "{:.0} % of the memory traffic that the counts ask for was left out: there was no time for it, so \
                 lines were found in the cache again; what is left is the most that fits",
                100.0 * share
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_has_a_number_or_a_remedy() {
        let text = Warning::TooFewSamples { samples: 12, hz: 997.0 }.to_string();
        assert!(text.contains("12 samples") && text.contains("run longer"));
        assert!(Warning::LowPurity { purity: 0.5 }.to_string().contains("50 %"));
    }
}
