//! Runs a program and writes down what its memory and its CPU time were used for.
//!
//! The program runs unchanged, with the caller's standard streams; the recorder sits beside it and
//! empties two kinds of rings: the kernel's (samples, mappings, processes) and the preload library's
//! (allocations, stacks). Where the kernel gives no samples, threads are halted to take them (`ptrace`). Whatever
//! happens to the program, what was recorded until then is kept.

mod collect;
pub mod error;
mod journal;
mod maps;
mod processor;
mod ptrace;
pub mod skid;

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use tierloom_linux::LinuxError;
use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::perf::{Request, Ring, Sampler};
use tierloom_linux::root::Root;
use tierloom_linux::spawn::{self, Ended, Running};
use tierloom_wire as wire;

use crate::skid::{calibrate, calibrate_ptrace};
use collect::Gathered;
pub use error::RecordError;
use journal::{Kept, Tried};
pub use processor::processor;
use ptrace::{PtraceSampler, Target};
pub use tierloom_launch::DEFAULT_MIN_BYTES;
use tierloom_launch::channel::PreloadChannel;
use tierloom_launch::program::{self, Program};
use tierloom_recording::{Beginning, Calibration, Event, Exit, Recording};

/// Samples per second of CPU time unless asked otherwise: a prime, so that it does not run in step
/// with a program's own rhythm; about 2 % of overhead in a virtual machine, less on bare metal.
pub const DEFAULT_HZ: u32 = 997;

/// One of so many page faults is looked at, to see when which object got its pages. A program that did
/// nothing but fault took 5 % longer (measured on Linux 6.18 in a virtual machine: 0.1 us a fault, most of it
/// for counting them). A prime, so that it does not run in step with arrays that are filled in turn.
const FAULTS_PER_SAMPLE: u64 = 17;

/// Where samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// `perf_event_open` where the kernel allows it, else `ptrace`.
    #[default]
    Auto,
    /// `perf_event_open`, or an error.
    Perf,
    /// `ptrace`: threads that run are halted for a moment, or an error.
    Ptrace,
    /// No samples: allocations only.
    None,
}

/// What to record.
#[derive(Debug, Clone)]
pub struct RecordRequest {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Samples per second of CPU time, 1 to 10000; the usual rate of the backend unless given.
    pub hz: Option<u32>,
    /// Where samples come from.
    pub backend: Backend,
    /// `libtierloom_preload.so`; without it there are no allocations.
    pub preload: Option<PathBuf>,
    /// Smallest allocation that is recorded, bytes; at least [`DEFAULT_MIN_BYTES`].
    pub min_bytes: u64,
    /// Environment variables to set beside the caller's own.
    pub variables: Vec<(OsString, OsString)>,
    /// Also read each thread's count of instructions with every sample, where the machine can.
    pub instructions: bool,
    /// Where the recording is written while it grows; the file stays, whatever happens.
    pub journal: Option<PathBuf>,
    /// Skid of this machine; `None` measures it first, which takes a fraction of a second.
    pub calibration: Option<Calibration>,
    /// Where `/proc` and `/sys` are.
    pub root: Root,
}

impl RecordRequest {
    /// The usual recording of this command.
    pub fn new(command: Vec<OsString>, preload: Option<PathBuf>) -> Self {
        Self {
            command,
            hz: None,
            backend: Backend::Auto,
            preload,
            min_bytes: DEFAULT_MIN_BYTES,
            variables: Vec::new(),
            instructions: true,
            journal: None,
            calibration: None,
            root: Root::default(),
        }
    }

    /// Program and arguments as they are written down.
    fn words(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Samples so far.
    pub samples: usize,
    /// Allocation events so far.
    pub allocations: usize,
}

/// Runs the program to its end and returns what was seen; `progress` is called about 50 times a second.
///
/// A program that fails, crashes or is killed is recorded all the same: see [`Recording::exit`].
///
/// # Errors
/// The program cannot be started, the request makes no sense, or the machine lacks something.
pub fn record(request: &RecordRequest, progress: &mut dyn FnMut(Progress)) -> Result<Recording, RecordError> {
    let program = Program::find(&request.command)?;
    if let Some(hz) = request.hz.filter(|hz| !(1..=10_000).contains(hz)) {
        return Err(RecordError::Rate { hz });
    }
    let preload = request.preload.as_deref().map(program::existing).transpose()?;
    let tried = request.journal.as_deref().map(Tried::open).transpose()?;
    let mut channel = PreloadChannel::create(request.min_bytes, 0, &request.root)?;
    let variables = program::environment(&request.variables, preload, channel.path());
    let held = spawn::hold(&request.command, &variables)?;
    let mut samples = Samples::open(request, held.pid(), &channel)?;
    if samples.kernel().is_none() {
        channel.ask_for_modules();
    }
    let event = samples.event();
    let calibration = request.calibration.unwrap_or_else(|| measured(event, &request.root));

    let watched = samples.kernel().is_none().then(|| channel.name().to_owned());
    let mut gathered = Gathered::new(held.pid(), monotonic_ns(), watched.as_deref());
    let (start_ns, pid, command) = (gathered.start_ns(), held.pid(), request.words());
    let processor = processor(&request.root);
    let beginning = Beginning { command: &command, pid, start_ns, event, calibration, processor: &processor };
    let running = held.release().map_err(|refused| program.not_executable(refused))?;
    let hz = f64::from(rate(request, event));
    let mut kept = Kept::begin(tried, &beginning, &request.root, hz);
    let mut visit = |gathered: &mut Gathered| {
        progress(gathered.progress());
        kept.visit(gathered);
    };
    let ended = follow(&running, &mut samples, &mut channel, &mut gathered, &request.root, &mut visit)?;
    kept.take_rest(&mut gathered, &ended);
    let mut recording = gathered.finish(request, event, &ended, hz);
    recording.calibration = calibration;
    recording.processor = processor;
    recording.warnings.extend(program.warnings(preload.is_some(), channel.attached()));
    recording.warnings.extend(channel.doubt(&request.root));
    recording.warnings.extend(channel.closed());
    recording.warnings.extend(sampling_warnings(&recording, request, samples.refused()));
    recording.warnings.extend(samples.faults_refused());
    kept.end(&recording);
    Ok(recording)
}

/// Samples per second of CPU time that a backend takes.
fn rate(request: &RecordRequest, event: Event) -> u32 {
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
enum Samples {
    Kernel(Sampler),
    Ptrace(PtraceSampler),
    None,
}

impl Samples {
    fn open(request: &RecordRequest, pid: u32, channel: &PreloadChannel) -> Result<Self, RecordError> {
        let perf = || open_perf(request, pid).map(Samples::Kernel);
        let ptrace = || open_ptrace(request, pid, channel).map(Samples::Ptrace);
        match request.backend {
            Backend::None => Ok(Samples::None),
            Backend::Perf => perf().map_err(|source| RecordError::PerfRefused { source }),
            Backend::Ptrace => ptrace().map_err(|source| RecordError::PtraceRefused { source }),
            Backend::Auto => perf().or_else(|perf| ptrace().map_err(|ptrace| RecordError::NoSamples { perf, ptrace })),
        }
    }

    fn kernel(&mut self) -> Option<&mut Sampler> {
        if let Samples::Kernel(sampler) = self { Some(sampler) } else { None }
    }

    fn event(&self) -> Event {
        match self {
            Samples::Kernel(_) => Event::CpuClock,
            Samples::Ptrace(_) => Event::Ptrace,
            Samples::None => Event::None,
        }
    }

    /// What becomes readable when there are many.
    fn descriptors(&self) -> Vec<RawFd> {
        if let Samples::Kernel(sampler) = self { sampler.rings().map(Ring::descriptor).collect() } else { Vec::new() }
    }

    /// Hands on what came since this was last asked.
    fn drain(&mut self, gathered: &mut Gathered) {
        match self {
            Samples::Kernel(sampler) => {
                sampler.drain(|record| gathered.take_perf(record));
                sampler.drain_faults(|fault| gathered.take_fault(fault));
            }
            Samples::Ptrace(sampler) => sampler.drain().into_iter().for_each(|sample| gathered.take_sample(sample)),
            Samples::None => {}
        }
    }

    /// A record of the preload library may name a process that nobody knew.
    fn learn(&self, record: &wire::Record) {
        if let (Samples::Ptrace(sampler), wire::Event::Start | wire::Event::Fork { .. }) = (self, &record.event) {
            sampler.add_process(record.pid);
        }
    }

    /// What is missed where the kernel gives samples but no page faults.
    fn faults_refused(&self) -> Option<String> {
        let Samples::Kernel(sampler) = self else { return None };
        let refused = sampler.faults_refused()?;
        Some(format!(
            "page faults are not seen, so no object tells when it got its pages: {refused}; raise \
             kernel.perf_event_mlock_kb or the limit of open files"
        ))
    }

    /// How often a thread that ran could not be sampled.
    fn refused(&self) -> u64 {
        if let Samples::Ptrace(sampler) = self { sampler.refused() } else { 0 }
    }
}

fn open_ptrace(request: &RecordRequest, pid: u32, channel: &PreloadChannel) -> Result<PtraceSampler, LinuxError> {
    let hz = rate(request, Event::Ptrace);
    PtraceSampler::start(Target { pid, hz, root: request.root.clone(), file: channel.file() })
}

fn open_perf(request: &RecordRequest, pid: u32) -> Result<Sampler, LinuxError> {
    let cpus = request.root.online_cpus();
    let period_ns = 1_000_000_000 / u64::from(rate(request, Event::CpuClock));
    let attempt =
        |instructions| Sampler::open(&Request { pid, period_ns, instructions, faults: FAULTS_PER_SAMPLE }, &cpus);
    // Counting needs a hardware counter and a new kernel; samples alone need neither.
    let counted = if request.instructions { attempt(true).ok() } else { None };
    counted.map_or_else(|| attempt(false), Ok)
}

/// The skid of this machine; where it cannot be measured the recording says that it was not.
fn measured(event: Event, root: &Root) -> Calibration {
    let measured = match event {
        Event::CpuClock => calibrate(root),
        Event::Ptrace => calibrate_ptrace(root),
        Event::MemoryAccess | Event::None => return Calibration::UNKNOWN,
    };
    measured.unwrap_or(Calibration::UNKNOWN)
}

/// Empties the rings until the program has ended.
fn follow(
    running: &Running,
    samples: &mut Samples,
    channel: &mut PreloadChannel,
    gathered: &mut Gathered,
    root: &Root,
    visit: &mut dyn FnMut(&mut Gathered),
) -> Result<Ended, RecordError> {
    let descriptors = samples.descriptors();
    loop {
        running.wait(&descriptors, channel.tick_ms());
        // Asked first and emptied after: what the program wrote before its end is in the rings by now.
        let ended = running.ended()?;
        samples.drain(gathered);
        channel.drain(ended.is_some(), |time_ns, record| {
            samples.learn(record);
            gathered.take_wire(time_ns, record);
        });
        gathered.look(root);
        visit(gathered);
        if let Some(ended) = ended {
            gathered.end(monotonic_ns(), channel.lost_events());
            return Ok(ended);
        }
    }
}

fn sampling_warnings(recording: &Recording, request: &RecordRequest, refused: u64) -> Vec<String> {
    /// Losing fewer samples than this does not move a share by more than its own spread.
    const NOTABLE_LOSS: f64 = 0.01;
    let mut warnings = Vec::new();
    let taken = recording.samples.len() as f64;
    let hz = rate(request, recording.event);
    if let Some(asked) = request.hz.filter(|asked| *asked > hz) {
        warnings.push(match recording.event {
            Event::Ptrace => format!("{hz} samples per second were taken, not {asked}: more by ptrace would slow the program"),
            _ => format!(
                "the kernel allows {hz} samples per second, not {asked}; raise kernel.perf_event_max_sample_rate for more"
            ),
        });
    }
    if recording.lost as f64 > NOTABLE_LOSS * taken {
        warnings.push(format!("{} samples were lost beside {taken}; lower the rate", recording.lost));
    }
    if recording.lost_allocations > 0 {
        let lost = recording.lost_allocations;
        warnings.push(format!("{lost} allocation events were lost; some objects may be missing: raise the threshold"));
    }
    if request.backend == Backend::Auto && recording.event == Event::Ptrace {
        warnings.push(format!(
            "perf_event_open is refused here, so samples were taken by ptrace: {hz} per second of CPU time, and page faults \
             are not seen; lower kernel.perf_event_paranoid, or let the container's seccomp profile allow perf_event_open"
        ));
    }
    if refused > 0 {
        warnings.push(format!(
            "{refused} times a thread that ran could not be sampled: a debugger or tracer had it, or its process has \
             other rights than ours"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(hz: Option<u32>) -> RecordRequest {
        RecordRequest { hz, ..RecordRequest::new(vec!["true".into()], None) }
    }

    #[test]
    fn each_way_to_sample_has_its_rate() {
        assert_eq!(rate(&request(None), Event::CpuClock), DEFAULT_HZ);
        assert_eq!(rate(&request(None), Event::Ptrace), 173);
        assert_eq!(rate(&request(Some(9999)), Event::Ptrace), 250);
        assert_eq!(rate(&request(Some(50)), Event::Ptrace), 50);
    }

    #[test]
    fn a_rate_that_makes_no_sense_is_refused() {
        for hz in [0, 10_001] {
            assert!(matches!(record(&request(Some(hz)), &mut |_| ()), Err(RecordError::Rate { .. })));
        }
    }
}
