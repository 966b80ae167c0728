//! What a reader must know before believing the numbers: cause and remedy.

use crate::attribution::{Attribution, Observed, Rest};
use crate::traffic::accesses::AllAccesses;
use tierloom_binary::code::{FunctionId, LoadedFunction};
use tierloom_binary::debug_info::Missing;
use tierloom_binary::demangle::demangled;
use tierloom_binary::elf::Binary;
use tierloom_model::{AccessCount, CountSource, Warning};
use tierloom_recording::Recording;

/// Fewer samples than this leave a share of 10 % open by 4 points and more (Wilson).
pub(crate) const FEW_SAMPLES: usize = 200;
/// Shares below this are not worth a warning.
const NOTEWORTHY: f64 = 0.1;

/// What the warnings are drawn from.
pub(crate) struct Doubts<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) observed: &'a Observed,
    /// Functions in which the run that was counted is not like this one.
    pub(crate) differing: &'a [FunctionId],
    pub(crate) tallies: &'a AllAccesses,
    /// Counts of objects, by name, with how far they may be off; none where that is not known.
    pub(crate) intervals: Vec<(&'a str, AccessCount)>,
    /// Share of the memory traffic for which there was no time.
    pub(crate) cut: f64,
    pub(crate) modules: &'a [Binary],
}

impl Doubts<'_> {
    pub(crate) fn all(&self) -> Vec<Warning> {
        [self.about_samples(), self.about_skid(), self.about_code(), self.about_counts(), self.about_runs()].concat()
    }

    fn about_samples(&self) -> Vec<Warning> {
        let samples = self.observed.seen.len();
        let hz = 1e9 / self.recording.period_ns.max(1.0);
        let (lost, lost_allocations) = (self.recording.lost, self.recording.lost_allocations);
        // Time in the kernel has none, and needs none.
        let in_kernel = self.recording.system_s * hz;
        let few = ((samples as f64 + in_kernel) < FEW_SAMPLES as f64).then_some(Warning::FewSamples { samples, hz });
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

    /// Of code that is here, and of code that no file has; whoever looked for the files tells which are lacking.
    fn about_code(&self) -> Vec<Warning> {
        let samples = self.observed.seen.len().max(1) as f64;
        let lost = self.observed.seen.iter().filter(|seen| seen.verdict == Attribution::Rest(Rest::Unrecovered));
        let own = lost.filter(|seen| seen.at.is_some()).count() as f64 / samples;
        let foreign = self.observed.generated as f64 / samples;
        let generated = (foreign > NOTEWORTHY).then_some(Warning::GeneratedCode { share: foreign });
        let unclear = (own > NOTEWORTHY).then_some(Warning::Unrecovered { share: own });
        generated.into_iter().chain(unclear).collect()
    }

    fn about_counts(&self) -> Vec<Warning> {
        let known: f64 = self.tallies.known.iter().map(|tally| tally.executions).sum();
        let unseen = self.tallies.unseen / (known + self.tallies.unseen).max(1.0);
        let missing = (unseen > NOTEWORTHY).then_some(Warning::ObjectsUnseen { share: unseen });
        let no_time = (self.cut > NOTEWORTHY).then_some(Warning::NoTime { share: self.cut });
        self.about_intervals().into_iter().chain(missing).chain(no_time).collect()
    }

    /// Of the run that was counted, against this one.
    fn about_runs(&self) -> Vec<Warning> {
        let named = |id: FunctionId| {
            let LoadedFunction { module, function } = &self.observed.code.functions[id];
            let module = &self.modules[*module];
            let unnamed = || format!("{}+{:#x}", module.name(), function.start);
            module.function_name(function.start).map_or_else(unnamed, demangled)
        };
        let functions: Vec<String> = self.differing.iter().copied().map(named).collect();
        let differ = (!functions.is_empty()).then_some(Warning::RunsDiffer { functions });
        differ.into_iter().collect()
    }

    /// Objects of which nobody knows how often they were touched.
    fn about_intervals(&self) -> Option<Warning> {
        /// Part of the count by which it may be off.
        const ROUGH: f64 = 0.5;
        let all: f64 = self.intervals.iter().map(|(_, accesses)| accesses.count).sum();
        // What was counted is rough where no sample shows its object: that is listed, and counting again does not mend it.
        let is_rough = |(_, accesses): &&(&str, AccessCount)| {
            accesses.source == CountSource::Estimated && accesses.high - accesses.count > ROUGH * accesses.count
        };
        let rough: Vec<&(&str, AccessCount)> = self.intervals.iter().filter(is_rough).collect();
        let share = rough.iter().map(|(_, accesses)| accesses.count).sum::<f64>() / all.max(1.0);
        let large = rough.iter().filter(|(_, accesses)| accesses.count > NOTEWORTHY / 2.0 * all);
        let objects: Vec<String> = large.map(|(name, _)| (*name).to_owned()).collect();
        (share > NOTEWORTHY && !objects.is_empty()).then_some(Warning::CountsRough { objects, share })
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

#[cfg(test)]
mod tests {
    use tierloom_binary::Files;
    use tierloom_recording::{Event, InCopy, Mapping, REGISTERS, Sample, register};

    use super::*;
    use crate::analyse;

    /// Samples of a process whose pages belong to these.
    fn sampled(paths: &[&str]) -> Recording {
        let starts = (1..).map(|page| page * 4096);
        let map = |(start, path): (u64, &&str)| Mapping {
            time_ns: 1,
            pid: 7,
            start,
            bytes: 4096,
            file_offset: 0,
            executable: true,
            path: (*path).to_owned(),
        };
        let sample = |start: u64| {
            let mut registers = [0; REGISTERS];
            registers[register::IP] = start + 4;
            Sample { time_ns: 2, pid: 7, tid: 7, instructions: 0, registers, kernel: false, copy: InCopy::No }
        };
        let mappings = starts.clone().zip(paths).map(map).collect();
        let samples = starts.take(paths.len()).map(sample).collect();
        Recording { event: Event::CpuClock, mappings, samples, ..Recording::default() }
    }

    #[test]
    fn code_of_a_file_that_is_lacking_was_not_generated() {
        let gone = "/no/such/file";
        let mut recording = sampled(&["//anon", gone, "/memfd:compiled (deleted)", gone, "[vdso]"]);
        recording.binaries = [(gone.to_owned(), "1".to_owned())].into();
        let (profile, _) = analyse(&recording, &Files);
        let shares = profile.sampling.unwrap().warnings.into_iter().filter_map(|warning| match warning {
            Warning::GeneratedCode { share } => Some(share),
            _ => None,
        });
        assert_eq!(shares.collect::<Vec<_>>(), [0.4]);
    }
}
