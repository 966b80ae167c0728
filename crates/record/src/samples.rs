//! Where the samples of a run come from: the kernel, or threads that are halted.

use std::os::fd::RawFd;

use tierloom_launch::channel::PreloadChannel;
use tierloom_linux::LinuxError;
use tierloom_linux::perf::{self, Request, Ring, Sampler};
use tierloom_model::Warning;
use tierloom_model::units::round_to_u64;

use tierloom_recording::{Event, FAULTS_PER_RECORD, InCopy};
use tierloom_wire as wire;

use crate::collect::Gathered;
use crate::error::RecordError;
use crate::ptrace::{self, PtraceSampler, Target};
use crate::request::{Backend, DEFAULT_HZ, RecordRequest};

const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;

/// Samples per second of CPU time that a backend takes.
pub(super) fn rate(request: &RecordRequest, event: Event) -> u32 {
    let (usual, most) = match event {
        Event::Ptrace => (ptrace::DEFAULT_HZ, ptrace::MOST_HZ),
        Event::CpuClock | Event::MemoryAccess | Event::None => {
            (DEFAULT_HZ, request.root.max_sample_rate().unwrap_or(u32::MAX))
        }
    };
    request.hz.unwrap_or(usual).min(most.max(1))
}

/// Where the samples of a run come from.
#[derive(Debug)]
pub(super) enum Samples {
    Kernel(Box<Kernel>),
    Ptrace(PtraceSampler),
    None,
}

/// Samples by the kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    sampler: Sampler,
    /// Most CPU time between two samples of a thread, ns; 0 where they come at even times.
    longest_interval_ns: f64,
    /// What halts threads for other things than samples.
    halts: Option<PtraceSampler>,
}

impl Samples {
    pub(super) fn open(request: &RecordRequest, pid: u32, channel: &PreloadChannel) -> Result<Self, RecordError> {
        let kernel = || {
            let (sampler, longest_interval_ns) = open_perf(request, pid)?;
            // Where threads may not be halted there are samples alone.
            let wants_halts = request.windows || request.ahead.is_some();
            let halts = wants_halts.then(|| open_ptrace(request, pid, channel, false).ok()).flatten();
            Ok(Samples::Kernel(Box::new(Kernel { sampler, longest_interval_ns, halts })))
        };
        let ptrace = || open_ptrace(request, pid, channel, true).map(Samples::Ptrace);
        match request.backend {
            Backend::None => Ok(Samples::None),
            Backend::Perf => kernel().map_err(|source| RecordError::PerfRefused { source }),
            Backend::Ptrace => ptrace().map_err(|source| RecordError::PtraceRefused { source }),
            Backend::Auto => {
                kernel().or_else(|perf| ptrace().map_err(|ptrace| RecordError::NoSamples { perf, ptrace }))
            }
        }
    }

    /// Whether somebody else must tell what is mapped: the kernel does not.
    pub(super) fn lack_mappings(&self) -> bool {
        !matches!(self, Samples::Kernel(..))
    }

    pub(super) fn event(&self) -> Event {
        match self {
            Samples::Kernel(..) => Event::CpuClock,
            Samples::Ptrace(_) => Event::Ptrace,
            Samples::None => Event::None,
        }
    }

    /// Most CPU time between two samples of a thread, ns; 0 where they come at even times, or nobody knows.
    pub(super) fn longest_interval_ns(&self) -> f64 {
        if let Samples::Kernel(kernel) = self { kernel.longest_interval_ns } else { 0.0 }
    }

    /// What becomes readable when there are many.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        if let Samples::Kernel(kernel) = self {
            kernel.sampler.rings().map(Ring::descriptor).collect()
        } else {
            Vec::new()
        }
    }

    /// Hands on what came since this was last asked.
    pub(super) fn drain(&mut self, gathered: &mut Gathered) {
        match self {
            Samples::Kernel(kernel) => {
                let Kernel { sampler, halts, .. } = &mut **kernel;
                sampler.drain(|mut record| {
                    let mut copy = InCopy::No;
                    if let (Some(halts), perf::Record::Sample(sample)) = (&halts, &mut record)
                        && let Some(registers) = &mut sample.registers
                    {
                        copy = halts.put_in_program(sample.pid, registers);
                    }
                    gathered.take_perf(record, copy);
                });
                sampler.drain_faults(|fault| gathered.take_fault(fault));
            }
            Samples::Ptrace(sampler) => sampler.drain().into_iter().for_each(|taken| gathered.take_sample(taken)),
            Samples::None => {}
        }
        let windows = self.ptrace().map(PtraceSampler::drain_windows).unwrap_or_default();
        for window in windows {
            gathered.take_window(window);
        }
        for lookahead in self.ptrace().map(PtraceSampler::drain_lookaheads).unwrap_or_default() {
            gathered.take_lookahead(lookahead);
        }
    }

    /// What halts threads.
    fn ptrace(&self) -> Option<&PtraceSampler> {
        match self {
            Samples::Kernel(kernel) => kernel.halts.as_ref(),
            Samples::Ptrace(sampler) => Some(sampler),
            Samples::None => None,
        }
    }

    /// A record of the preload library may name a process that nobody knew.
    pub(super) fn learn(&self, record: &wire::Record) {
        if let (Some(sampler), wire::Event::Start | wire::Event::Fork { .. }) = (self.ptrace(), &record.event) {
            sampler.add_process(record.pid);
        }
    }

    /// What is missed where the kernel gives samples but no page faults.
    pub(super) fn faults_refused(&self) -> Option<Warning> {
        let Samples::Kernel(kernel) = self else { return None };
        kernel.sampler.faults_refused().map(|refused| Warning::PageFaultsNotSeen { why: refused.to_string() })
    }

    /// For how long threads were held so far, ns.
    pub(super) fn held_ns(&self) -> u64 {
        self.ptrace().map_or(0, PtraceSampler::held_ns)
    }

    /// How often a thread that ran could not be sampled.
    pub(super) fn refused(&self) -> u64 {
        if let Samples::Ptrace(sampler) = self { sampler.refused() } else { 0 }
    }
}

fn open_ptrace(
    request: &RecordRequest,
    pid: u32,
    channel: &PreloadChannel,
    samples: bool,
) -> Result<PtraceSampler, LinuxError> {
    let samples_hz = samples.then(|| rate(request, Event::Ptrace));
    let (windows, ahead, root, file) = (request.windows, request.ahead, request.root.clone(), channel.file());
    PtraceSampler::start(Target { pid, samples_hz, windows, ahead, root, file })
}

/// Periods of two events that together take one sample in `period_ns`, ns.
///
/// Samples at even times are blind for what goes round nearly as often as they come, or a whole number of times: a counter
/// that is set anew 2.3 times between two samples looks like one that is set anew .3 times. Two events whose periods have
/// no common measure come after all times up to the shorter period. The golden ratio is the number that is furthest from all
/// fractions.
fn uneven(period_ns: u64) -> [u64; 2] {
    [GOLDEN_RATIO, GOLDEN_RATIO * GOLDEN_RATIO].map(|times| round_to_u64(period_ns as f64 * times))
}

/// Samples by the kernel, and the most CPU time between two of a thread, ns; 0 where they come at even times.
fn open_perf(request: &RecordRequest, pid: u32) -> Result<(Sampler, f64), LinuxError> {
    let cpus = request.root.online_cpus();
    let period_ns = 1_000_000_000 / u64::from(rate(request, Event::CpuClock));
    let attempt = |instructions, is_uneven: bool| {
        let [shorter_ns, longer_ns] = uneven(period_ns);
        let (period_ns, beside_ns) = if is_uneven { (shorter_ns, Some(longer_ns)) } else { (period_ns, None) };
        let asked = Request { pid, period_ns, beside_ns, instructions, faults: FAULTS_PER_RECORD };
        Sampler::open(&asked, &cpus).map(|sampler| (sampler, if is_uneven { period_ns as f64 } else { 0.0 }))
    };
    // Counting needs a hardware counter and a new kernel; samples alone need neither.
    let counted = || attempt(true, true).or_else(|_| attempt(true, false)).ok();
    let counted = if request.instructions { counted() } else { None };
    counted.map_or_else(|| attempt(false, true).or_else(|_| attempt(false, false)), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(hz: Option<u32>) -> RecordRequest {
        RecordRequest { hz, ..RecordRequest::new(vec!["true".into()], None) }
    }

    #[test]
    fn two_uneven_events_take_as_many_samples_as_an_even_one() {
        for period_ns in [100_000_u64, 501_756, 1_000_000_000] {
            let [shorter, longer] = uneven(period_ns).map(|uneven_ns| period_ns as f64 / uneven_ns as f64);
            assert!((shorter + longer - 1.0).abs() < 1e-4, "{shorter} {longer}");
        }
    }

    #[test]
    fn each_way_to_sample_has_its_rate() {
        assert_eq!(rate(&request(None), Event::CpuClock), DEFAULT_HZ);
        assert_eq!(rate(&request(None), Event::Ptrace), 173);
        assert_eq!(rate(&request(Some(9999)), Event::Ptrace), 250);
        assert_eq!(rate(&request(Some(50)), Event::Ptrace), 50);
    }
}
