//! What stands beside a program while it runs, and empties the rings.

use tierloom_launch::channel::PreloadChannel;
use tierloom_launch::program::Program;
use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::root::Root;
use tierloom_linux::sample_cost;
use tierloom_linux::spawn::{Ended, Running};
use tierloom_recording::{Beginning, Event, Processor, Recording};

use crate::collect::{Gathered, Setting};
use crate::error::RecordError;
use crate::processor::processor;
use crate::request::RecordRequest;
use crate::samples::{Samples, rate};
use crate::skid::of_this_machine;
use crate::warnings::about_sampling;

/// The recorder of one run.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    request: &'a RecordRequest,
    setting: Setting,
    samples: Samples,
    channel: PreloadChannel,
    gathered: Gathered,
}

impl<'a> Recorder<'a> {
    /// Beside a process that waits for its start.
    ///
    /// # Errors
    /// No samples can be taken.
    pub(super) fn beside(request: &'a RecordRequest, pid: u32, channel: PreloadChannel) -> Result<Self, RecordError> {
        let samples = Samples::open(request, pid, &channel)?;
        let watched = samples.lack_mappings().then(|| channel.name().to_owned());
        if watched.is_some() {
            channel.ask_for_modules();
        }
        let setting = setting(request, &samples);
        let gathered = Gathered::new(pid, monotonic_ns(), watched.as_deref());
        Ok(Self { request, setting, samples, channel, gathered })
    }

    /// What is known before the program runs.
    pub(super) fn beginning(&self) -> Beginning<'_> {
        let setting = &self.setting;
        Beginning {
            command: &setting.command,
            pid: self.gathered.pid(),
            start_ns: self.gathered.start_ns(),
            event: setting.event,
            calibration: setting.calibration,
            sample_cost_ns: setting.sample_cost_ns,
            longest_interval_ns: setting.longest_interval_ns,
            processor: &setting.processor,
            unrecorded: &setting.unrecorded,
        }
    }

    /// Samples per second of CPU time.
    pub(super) fn hz(&self) -> f64 {
        self.setting.hz
    }

    /// What was seen so far.
    pub(super) fn gathered(&self) -> &Gathered {
        &self.gathered
    }

    /// Empties the rings until the program has ended.
    ///
    /// # Errors
    /// The kernel does not say whether it has.
    pub(super) fn follow(&mut self, running: &Running, visit: &mut dyn FnMut(&Gathered)) -> Result<Ended, RecordError> {
        let descriptors = self.samples.descriptors();
        loop {
            running.wait(&descriptors, self.channel.tick_ms());
            // Asked first and emptied after: what the program wrote before its end is in the rings by now.
            let ended = running.ended()?;
            self.drain(ended.is_some());
            visit(&self.gathered);
            if let Some(ended) = ended {
                self.gathered.end(monotonic_ns(), self.channel.lost_events());
                return Ok(ended);
            }
        }
    }

    fn drain(&mut self, all: bool) {
        let Self { request, samples, channel, gathered, .. } = self;
        samples.drain(gathered);
        channel.drain(all, |time_ns, record| {
            samples.learn(record);
            gathered.take_wire(time_ns, record);
        });
        gathered.look(&request.root, samples.held_ns() + channel.waited_ns());
    }

    /// The recording of a program that has ended.
    pub(super) fn finish(self, ended: &Ended, program: &Program) -> Recording {
        let Self { request, setting, samples, channel, gathered } = self;
        let mut recording = gathered.finish(setting, ended);
        recording.warnings.extend(program.warning(request.preload.is_some(), channel.attached()));
        recording.warnings.extend(channel.doubt(&request.root));
        recording.warnings.extend(channel.closed());
        recording.warnings.extend(about_sampling(&recording, request, samples.refused()));
        recording.warnings.extend(samples.faults_refused());
        recording
    }
}

fn setting(request: &RecordRequest, samples: &Samples) -> Setting {
    let event = samples.event();
    Setting {
        command: request.words(),
        event,
        hz: f64::from(rate(request, event)),
        calibration: request.calibration.unwrap_or_else(|| of_this_machine(event, &request.root)),
        sample_cost_ns: sample_cost_ns(event, &request.root),
        longest_interval_ns: samples.longest_interval_ns(),
        processor: as_measured(request, processor(&request.root)),
        unrecorded: request.unrecorded.clone(),
    }
}

/// A processor whose last-level cache and memory are as they were measured, where somebody did.
fn as_measured(request: &RecordRequest, processor: Processor) -> Processor {
    let llc_bytes = request.llc_bytes.unwrap_or(processor.llc_bytes);
    Processor { llc_bytes, memory: request.memory, ..processor }
}

/// What a sample takes from the program, ns; 0 where the program is sampled by other means, or it cannot be measured.
fn sample_cost_ns(event: Event, root: &Root) -> f64 {
    /// 20,000 samples a second: some twenty in each stretch of the measurement.
    const PERIOD_NS: u64 = 50_000;
    if event != Event::CpuClock {
        return 0.0;
    }
    sample_cost::measure(root.sample_period_ns(PERIOD_NS)).unwrap_or(0.0)
}
