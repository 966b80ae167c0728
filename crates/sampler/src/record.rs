//! Runs a program and writes down what its memory and its CPU time were used for.
//!
//! The program runs unchanged, with the caller's standard streams; the recorder sits beside it and
//! empties two kinds of rings: the kernel's (samples, mappings, processes) and the preload library's
//! (allocations, stacks, and samples where the kernel gives none). Whatever happens to the program,
//! what was recorded until then is kept.

pub(crate) mod channel;
mod clock;
mod gather;
mod journal;
mod lanes;
mod merge;
pub(crate) mod program;
mod watch;

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use tierloom_linux::LinuxError;
use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::perf::{Request, Ring, Sampler};
use tierloom_linux::root::Root;
use tierloom_linux::spawn::{self, Ended, Running};

use crate::calibrate::{calibrate, calibrate_sigprof};
use crate::error::SamplerError;
use crate::recording::{Beginning, Calibration, Event, Exit, Recording};
use channel::PreloadChannel;
use gather::Gathered;
use journal::{Kept, Tried};
use program::Program;

/// Samples per second of CPU time unless asked otherwise: a prime, so that it does not run in step
/// with a program's own rhythm; about 2 % of overhead in a virtual machine, less on bare metal.
pub const DEFAULT_HZ: u32 = 997;
/// Smallest allocation that is an object, bytes: 8 pages. Smaller ones cannot be placed one by one.
pub const DEFAULT_MIN_BYTES: u64 = 32 << 10;

/// One of so many page faults is looked at, to see when which object got its pages. A program that did
/// nothing but fault took 5 % longer (measured on Linux 6.18 in a virtual machine: 0.1 us a fault, most of it
/// for counting them). A prime, so that it does not run in step with arrays that are filled in turn.
const FAULTS_PER_SAMPLE: u64 = 17;

/// Where samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// The kernel's where it gives them, else `SIGPROF`.
    #[default]
    Auto,
    /// `perf_event_open`, or an error.
    Perf,
    /// A timer and `SIGPROF` per thread, from inside the process.
    Sigprof,
    /// No samples: allocations only.
    None,
}

/// What to record.
#[derive(Debug, Clone)]
pub struct RecordRequest {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Samples per second of CPU time, 1 to 10000.
    pub hz: u32,
    /// Where samples come from.
    pub backend: Backend,
    /// `libtierloom_preload.so`; without it there are no allocations and no `SIGPROF`.
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
            hz: DEFAULT_HZ,
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
pub fn record(request: &RecordRequest, progress: &mut dyn FnMut(Progress)) -> Result<Recording, SamplerError> {
    let program = Program::find(&request.command)?;
    if !(1..=10_000).contains(&request.hz) {
        return Err(SamplerError::Rate { hz: request.hz });
    }
    let preload = request.preload.as_deref().map(program::existing).transpose()?;
    let tried = request.journal.as_deref().map(Tried::open).transpose()?;
    let hz = request.root.max_sample_rate().map_or(request.hz, |most| request.hz.min(most.max(1)));
    let mut channel = PreloadChannel::create(request.min_bytes, 0, &request.root)?;
    let variables = program::environment(&request.variables, preload, channel.path());
    let held = spawn::hold(&request.command, &variables)?;
    let mut samples = Samples::open(request, held.pid(), hz)?;
    channel.ask(samples.sigprof_hz(hz), samples.kernel().is_none());
    let event = samples.event();
    let calibration = request.calibration.unwrap_or_else(|| measured(event, &request.root));

    let mut gathered = Gathered::new(held.pid(), monotonic_ns(), samples.kernel().is_none());
    let (start_ns, pid, command) = (gathered.start_ns(), held.pid(), request.words());
    let beginning = Beginning { command: &command, pid, start_ns, event, calibration };
    let running = held.release().map_err(|refused| program.not_executable(refused))?;
    let mut kept = Kept::begin(tried, &beginning, &request.root, f64::from(hz));
    let mut visit = |gathered: &mut Gathered| {
        progress(gathered.progress());
        kept.visit(gathered);
    };
    let ended = follow(&running, samples.kernel(), &mut channel, &mut gathered, &request.root, &mut visit)?;
    kept.take_rest(&mut gathered, &ended);
    let mut recording = gathered.finish(request, event, &ended, f64::from(hz));
    recording.calibration = calibration;
    recording.warnings.extend(program.warnings(preload.is_some(), channel.attached()));
    recording.warnings.extend(channel.doubt(&request.root));
    recording.warnings.extend(sampling_warnings(&recording, request, hz));
    kept.end(&recording);
    Ok(recording)
}

/// Where the samples of a run come from.
#[derive(Debug)]
enum Samples {
    Kernel(Sampler),
    Sigprof,
    None,
}

impl Samples {
    fn open(request: &RecordRequest, pid: u32, hz: u32) -> Result<Self, SamplerError> {
        match request.backend {
            Backend::None => Ok(Samples::None),
            Backend::Sigprof if request.preload.is_none() => Err(SamplerError::SigprofNeedsPreload),
            Backend::Sigprof => Ok(Samples::Sigprof),
            Backend::Auto | Backend::Perf => {
                open_perf(request, pid, hz).map(Samples::Kernel).or_else(|refused| Self::instead(request, refused))
            }
        }
    }

    /// What to do when the kernel gives no samples.
    fn instead(request: &RecordRequest, source: LinuxError) -> Result<Self, SamplerError> {
        if request.backend == Backend::Auto && request.preload.is_some() {
            Ok(Samples::Sigprof)
        } else {
            Err(SamplerError::PerfRefused { source })
        }
    }

    fn kernel(&mut self) -> Option<&mut Sampler> {
        if let Samples::Kernel(sampler) = self { Some(sampler) } else { None }
    }

    fn sigprof_hz(&self, hz: u32) -> u32 {
        if matches!(self, Samples::Sigprof) { hz } else { 0 }
    }

    fn event(&self) -> Event {
        match self {
            Samples::Kernel(_) => Event::CpuClock,
            Samples::Sigprof => Event::Sigprof,
            Samples::None => Event::None,
        }
    }
}

fn open_perf(request: &RecordRequest, pid: u32, hz: u32) -> Result<Sampler, LinuxError> {
    let cpus = request.root.online_cpus();
    let period_ns = 1_000_000_000 / u64::from(hz);
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
        Event::Sigprof => calibrate_sigprof(root),
        Event::None => return Calibration::UNKNOWN,
    };
    measured.unwrap_or(Calibration::UNKNOWN)
}

/// Empties the rings until the program has ended.
fn follow(
    running: &Running,
    mut perf: Option<&mut Sampler>,
    channel: &mut PreloadChannel,
    gathered: &mut Gathered,
    root: &Root,
    visit: &mut dyn FnMut(&mut Gathered),
) -> Result<Ended, SamplerError> {
    let descriptors: Vec<RawFd> = perf.iter().flat_map(|sampler| sampler.rings().map(Ring::descriptor)).collect();
    loop {
        running.wait(&descriptors, channel.tick_ms());
        // Asked first and emptied after: what the program wrote before its end is in the rings by now.
        let ended = running.ended()?;
        if let Some(sampler) = perf.as_deref_mut() {
            sampler.drain(|record| gathered.take_perf(record));
        }
        channel.drain(ended.is_some(), |time_ns, record| gathered.take_wire(time_ns, record));
        gathered.look(root);
        visit(gathered);
        if let Some(ended) = ended {
            gathered.end(monotonic_ns(), channel.lost_events(), channel.lost_samples());
            return Ok(ended);
        }
    }
}

fn sampling_warnings(recording: &Recording, request: &RecordRequest, hz: u32) -> Vec<String> {
    /// Losing fewer samples than this does not move a share by more than its own spread.
    const NOTABLE_LOSS: f64 = 0.01;
    let mut warnings = Vec::new();
    let taken = recording.samples.len() as f64;
    if hz < request.hz {
        let message = format!("the kernel allows {hz} samples per second, not {}", request.hz);
        warnings.push(format!("{message}; raise kernel.perf_event_max_sample_rate for more"));
    }
    if recording.lost as f64 > NOTABLE_LOSS * taken {
        warnings.push(format!("{} samples were lost beside {taken}; lower the rate", recording.lost));
    }
    if recording.lost_allocations > 0 {
        let lost = recording.lost_allocations;
        warnings.push(format!("{lost} allocation events were lost; some objects may be missing: raise the threshold"));
    }
    if request.backend == Backend::Auto && recording.event == Event::Sigprof {
        let reason = "perf_event_open is refused here, so samples come from SIGPROF";
        warnings.push(format!("{reason}: at most one per scheduler tick, and none in programs without the preload"));
    }
    warnings
}

impl From<&Ended> for Exit {
    fn from(ended: &Ended) -> Self {
        match (ended.code, ended.signal) {
            (_, Some(signal)) => Exit::Signal(signal),
            (code, None) => Exit::Code(code.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn refusal() -> LinuxError {
        LinuxError::new("perf_event_open", "process 1, CPU 0", io::ErrorKind::PermissionDenied.into())
    }

    fn request(backend: Backend, preload: bool) -> RecordRequest {
        let preload = preload.then(|| PathBuf::from("/lib.so"));
        RecordRequest { backend, ..RecordRequest::new(vec!["true".into()], preload) }
    }

    #[test]
    fn sigprof_steps_in_where_the_kernel_refuses() {
        let samples = Samples::instead(&request(Backend::Auto, true), refusal()).unwrap();
        assert_eq!((samples.event(), samples.sigprof_hz(997)), (Event::Sigprof, 997));
    }

    #[test]
    fn what_was_asked_for_by_name_is_not_replaced() {
        for request in [request(Backend::Perf, true), request(Backend::Auto, false)] {
            let error = Samples::instead(&request, refusal()).unwrap_err();
            assert!(matches!(error, SamplerError::PerfRefused { .. }));
            assert!(error.to_string().contains("hint:"), "{error}");
        }
        let blind = Samples::open(&request(Backend::Sigprof, false), 1, 997).unwrap_err();
        assert!(matches!(blind, SamplerError::SigprofNeedsPreload));
    }
}
