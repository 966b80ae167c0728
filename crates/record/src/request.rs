//! What is asked of a recording, and what is told while it goes on.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tierloom_launch::DEFAULT_MIN_BYTES;
use tierloom_linux::root::Root;
use tierloom_recording::{Calibration, NearMemory, UnrecordedRun};

use crate::error::RecordError;

/// Samples per second of CPU time unless asked otherwise. A sample costs 13 us of a program's time in a virtual machine (measured on Linux 6.18:
/// 2.7 % in all), most of it for the timer. Loops of few per cent of a short run are known to 6 %, by half as many to 9 %.
pub const DEFAULT_HZ: u32 = 1993;

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
    /// Count what is run, in windows of some milliseconds: not finished, a program may be harmed.
    pub windows: bool,
    /// Look ahead of halted threads for so much of the program's time: not finished.
    pub ahead: Option<f64>,
    /// Where the recording is written while it grows; the file stays, whatever happens.
    pub journal: Option<PathBuf>,
    /// That file is wanted for itself: it is told when it is not whole.
    pub keep: bool,
    /// Skid of this machine; `None` measures it first, which takes a fraction of a second.
    pub calibration: Option<Calibration>,
    /// What the last-level cache holds where somebody measured it, bytes; what the kernel reports unless given.
    pub llc_bytes: Option<u64>,
    /// What the memory next to it does, where somebody measured it.
    pub memory: Option<NearMemory>,
    /// Runs of it without the recorder, before this one.
    pub unrecorded: Vec<UnrecordedRun>,
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
            windows: false,
            ahead: None,
            journal: None,
            keep: false,
            llc_bytes: None,
            memory: None,
            calibration: None,
            unrecorded: Vec::new(),
            root: Root::default(),
        }
    }

    /// # Errors
    /// [`RecordError::Rate`].
    pub(super) fn check(&self) -> Result<(), RecordError> {
        match self.hz.filter(|hz| !(1..=10_000).contains(hz)) {
            Some(hz) => Err(RecordError::Rate { hz }),
            None => Ok(()),
        }
    }

    /// Program and arguments as they are written down.
    pub(super) fn words(&self) -> Vec<String> {
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
