//! The recording on disk while it grows, so that a recorder that is killed loses a second at most.
//!
//! It is tried before the program starts: a place that cannot be written is an error while nothing is lost
//! yet, and a recording that was there stays until the program runs. Then portions are made of what came, and a thread of its own writes them: a slow disk holds up
//! neither the recorder nor the program. A disk that gets full is left with room for the others, and the
//! recording ends there on disk; in memory it goes on. The file is locked while it grows.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tierloom_linux::root::Root;
use tierloom_linux::spawn::Ended;
use tierloom_linux::{space, times};

use crate::collect::{Gathered, Marks, RunSoFar};
use crate::error::RecordError;
use tierloom_recording::{Beginning, Event, PORTION_RECORDS, Recording, chunk_of, ending, is_recording, magic};

/// Room that there must be before the program starts, bytes: that of ten minutes of one thread, and what is spared.
const LEAST_BYTES: u64 = 32 << 20;
/// Room that is left to others, and to the profile, bytes.
const SPARED_BYTES: u64 = 16 << 20;
/// What a recording may take on disk, bytes: by then it has taken five times as much memory.
const MOST_BYTES: u64 = 4 << 30;
/// Time to the first portion, and between two while little happens: twice as long each time, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Portions that may wait for the disk; what comes then waits in memory, where it is anyway.
const MOST_WAITING: usize = 4;

/// The file, before the program starts. Dropped unused, it leaves what there was.
#[derive(Debug)]
pub(super) struct Tried {
    path: PathBuf,
    file: Option<File>,
    /// There was none.
    is_new: bool,
}

impl Tried {
    /// Makes the file, or takes that of an earlier run; one that is `kept` has a name that somebody chose, where
    /// something else may be.
    ///
    /// # Errors
    /// [`RecordError::Output`], [`RecordError::NoSpace`], [`RecordError::BeingRecorded`],
    /// [`RecordError::NotARecording`].
    pub(super) fn open(path: &Path, kept: bool) -> Result<Self, RecordError> {
        let refused = |source| RecordError::Output { path: path.to_owned(), source };
        let is_new = !path.exists();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(refused)?;
        if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
            return Err(RecordError::BeingRecorded { path: path.to_owned() });
        }
        if kept && !may_be_replaced(&file) {
            return Err(RecordError::NotARecording { path: path.to_owned() });
        }
        let tried = Self { path: path.to_owned(), file: Some(file), is_new };
        let free_bytes = tried.file.as_ref().and_then(space::free_bytes);
        if let Some(free_bytes) = free_bytes.filter(|free| *free < LEAST_BYTES) {
            let (free_mib, least_mib) = (free_bytes >> 20, LEAST_BYTES >> 20);
            return Err(RecordError::NoSpace { path: path.to_owned(), free_mib, least_mib });
        }
        Ok(tried)
    }

    /// The program runs: from here on the file stays.
    fn begin(mut self, beginning: &Beginning<'_>) -> Option<Journal> {
        let file = self.file.take()?;
        file.set_len(0).ok()?;
        Journal::start(file, [magic(), chunk_of(&beginning.payload())].concat())
    }
}

/// A file that is empty, or a recording of whatever version.
fn may_be_replaced(mut file: &File) -> bool {
    let mut start = Vec::new();
    let read = file.take(magic().len() as u64).read_to_end(&mut start).is_ok() && file.rewind().is_ok();
    read && (start.is_empty() || is_recording(&start))
}

impl Drop for Tried {
    fn drop(&mut self) {
        if self.file.is_some() && self.is_new {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// The file while the program runs.
#[derive(Debug)]
struct Journal {
    sender: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<File>>,
    state: Arc<State>,
    marks: Marks,
    since: Instant,
    pause: Duration,
}

/// The file of a run, if it has one, and what a portion says of that run.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    journal: Option<Journal>,
    root: &'a Root,
    pid: u32,
    event: Event,
    hz: f64,
}

impl<'a> Kept<'a> {
    /// The program was let go.
    pub(super) fn begin(tried: Option<Tried>, beginning: &Beginning<'_>, root: &'a Root, hz: f64) -> Self {
        let journal = tried.and_then(|tried| tried.begin(beginning));
        Self { journal, root, pid: beginning.pid, event: beginning.event, hz }
    }

    /// Hands on what came, if it is time.
    pub(super) fn visit(&mut self, gathered: &Gathered) {
        let (root, pid, event, hz) = (self.root, self.pid, self.event, self.hz);
        if let Some(journal) = &mut self.journal {
            journal.visit(gathered, || run_so_far(times::of_process(root, pid), event, hz));
        }
    }

    /// The program has ended: hands on the rest.
    pub(super) fn take_rest(&mut self, gathered: &Gathered, ended: &Ended) {
        let run = run_so_far((ended.user_s, ended.system_s), self.event, self.hz);
        if let Some(journal) = &mut self.journal {
            journal.take_rest(gathered, run);
        }
    }

    /// Ends the file, once all of it is written; whether all of it was.
    pub(super) fn end(self, recording: &Recording) -> bool {
        self.journal.is_some_and(|journal| journal.end(recording))
    }
}

fn run_so_far((user_s, system_s): (f64, f64), event: Event, hz: f64) -> RunSoFar {
    RunSoFar { cpu_s: user_s + system_s, system_s, event, hz }
}

/// What recorder and writer know of each other.
#[derive(Debug, Default)]
struct State {
    waiting: AtomicUsize,
    /// There is no room, or the disk refuses: nothing more is written.
    stopped: AtomicBool,
}

impl Journal {
    fn start(file: File, first: Vec<u8>) -> Option<Self> {
        let (sender, receiver) = channel();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let writer = thread::Builder::new().name("tierloom-writer".to_owned());
        let writer = writer.spawn(move || write_all(file, &receiver, &shared)).ok()?;
        let (marks, since, pause) = (Marks::default(), Instant::now(), FIRST_PAUSE);
        let journal = Self { sender: Some(sender), writer: Some(writer), state, marks, since, pause };
        journal.send(first);
        Some(journal)
    }

    /// Hands on what came, if it is time and the disk keeps up. `run` is asked only then.
    fn visit(&mut self, gathered: &Gathered, run: impl FnOnce() -> RunSoFar) {
        let much = gathered.marks().records_since(&self.marks) >= PORTION_RECORDS;
        let is_time = much || self.since.elapsed() >= self.pause;
        if is_time && self.state.waiting.load(Ordering::Acquire) < MOST_WAITING && !self.has_stopped() {
            self.take(gathered, run());
            self.since = Instant::now();
            self.pause = LONGEST_PAUSE.min(2 * self.pause);
        }
    }

    fn take(&mut self, gathered: &Gathered, run: RunSoFar) {
        let (portion, behind) = gathered.since(&self.marks, run);
        let bytes = chunk_of(&portion.payload());
        self.marks = behind;
        self.send(bytes);
    }

    /// Hands on the rest: the program has ended.
    fn take_rest(&mut self, gathered: &Gathered, run: RunSoFar) {
        while !self.has_stopped() {
            self.take(gathered, run);
            if gathered.marks() == self.marks {
                return;
            }
        }
    }

    /// Ends the file; whether it is whole.
    fn end(mut self, recording: &Recording) -> bool {
        self.send(chunk_of(&ending(recording)));
        self.sender = None;
        // With the file, which the writer gives back, goes its lock.
        self.writer.take().is_some_and(|writer| writer.join().is_ok()) && !self.has_stopped()
    }

    fn send(&self, bytes: Vec<u8>) {
        if let Some(sender) = &self.sender {
            self.state.waiting.fetch_add(1, Ordering::AcqRel);
            // A writer that is gone has said so in `stopped`.
            sender.send(bytes).ok();
        }
    }

    fn has_stopped(&self) -> bool {
        self.state.stopped.load(Ordering::Acquire)
    }
}

/// The writer's side: every chunk whole, or none from there on.
fn write_all(file: File, receiver: &Receiver<Vec<u8>>, state: &State) -> File {
    let mut length = file.metadata().map_or(0, |status| status.len());
    for bytes in receiver {
        if !state.stopped.load(Ordering::Acquire) {
            if length < MOST_BYTES && is_room(&file, bytes.len() as u64) && (&file).write_all(&bytes).is_ok() {
                length += bytes.len() as u64;
            } else {
                file.set_len(length).ok();
                state.stopped.store(true, Ordering::Release);
            }
        }
        state.waiting.fetch_sub(1, Ordering::AcqRel);
    }
    file
}

fn is_room(file: &File, bytes: u64) -> bool {
    space::free_bytes(file).is_none_or(|free| free >= SPARED_BYTES + bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_recording::Calibration;

    const RUN: RunSoFar = RunSoFar { cpu_s: 1.0, system_s: 0.0, event: Event::CpuClock, hz: 100.0 };

    fn beginning<'a>(command: &'a [String], processor: &'a tierloom_recording::Processor) -> Beginning<'a> {
        let (event, calibration) = (Event::CpuClock, Calibration::UNKNOWN);
        let (sample_cost_ns, longest_interval_ns) = (0.0, 0.0);
        Beginning {
            command,
            pid: 5,
            start_ns: 7,
            event,
            calibration,
            sample_cost_ns,
            longest_interval_ns,
            processor,
            unrecorded: &[],
        }
    }

    fn path(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("journal-{test}-{}", std::process::id()))
    }

    #[test]
    fn what_was_handed_on_is_there_when_the_recorder_is_not() {
        let path = path("cut");
        let command = ["a".to_owned()];
        let mut journal = Tried::open(&path, true)
            .unwrap()
            .begin(&beginning(&command, &tierloom_recording::Processor::default()))
            .unwrap();
        let mut gathered = Gathered::new(5, 7, None);
        for time_ns in 0..2 * PORTION_RECORDS as u64 {
            gathered.take_fault(tierloom_linux::perf::Fault { pid: 5, time_ns, instruction: 0, address: time_ns });
        }
        journal.visit(&gathered, || RUN);
        assert!(matches!(Tried::open(&path, true), Err(RecordError::BeingRecorded { .. })));
        journal.sender = None;
        journal.writer.take().unwrap().join().unwrap();
        let read = crate::file::load(&path).unwrap();
        assert_eq!((read.command.as_slice(), read.faults.len(), read.exit), (&command[..], PORTION_RECORDS, None));
        assert!(matches!(read.warnings[0], tierloom_model::Warning::Stopped { .. }), "{:?}", read.warnings);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_was_tried_and_not_used_leaves_nothing() {
        let path = path("tried");
        drop(Tried::open(&path, true).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, magic()).unwrap();
        drop(Tried::open(&path, true).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), magic(), "an earlier recording stays until the program runs");
        std::fs::write(&path, "notes of mine").unwrap();
        assert!(matches!(Tried::open(&path, true), Err(RecordError::NotARecording { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"notes of mine");
        assert!(Tried::open(&path, false).is_ok(), "in a folder of ours it is no recording that was damaged");
        std::fs::remove_file(&path).unwrap();
        let error = Tried::open(Path::new("/proc/no/file"), true).unwrap_err();
        assert!(matches!(error, RecordError::Output { .. }) && error.to_string().contains("hint:"));
    }

    #[test]
    fn a_disk_that_refuses_keeps_whole_chunks_only() {
        let state = State::default();
        state.waiting.store(2, Ordering::Release);
        let (sender, receiver) = channel();
        sender.send(vec![1; 100]).unwrap();
        sender.send(vec![2; 100]).unwrap();
        drop(sender);
        write_all(OpenOptions::new().write(true).open("/dev/full").unwrap(), &receiver, &state);
        assert!(state.stopped.load(Ordering::Acquire));
        assert_eq!(state.waiting.load(Ordering::Acquire), 0);
    }
}
