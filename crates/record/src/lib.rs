//! Runs a program and writes down what its memory and its CPU time were used for.
//!
//! The program runs unchanged, with the caller's standard streams; the recorder sits beside it and
//! empties two kinds of rings: the kernel's (samples, mappings, processes) and the preload library's
//! (allocations, stacks). Where the kernel gives no samples, threads are halted to take them (`ptrace`). Whatever
//! happens to the program, what was recorded until then is kept.

mod ahead;
mod alive;
mod builds;
mod bursts;
mod clocks;
mod collect;
pub mod error;
pub mod file;
mod journal;
mod maps;
mod pace;
mod processor;
mod ptrace;
mod recorder;
mod request;
mod residents;
mod running;
mod samples;
pub mod skid;
mod skid_note;
mod stack_tops;
mod warnings;

use tierloom_launch::channel::PreloadChannel;
use tierloom_launch::program::{self, Program};
use tierloom_linux::spawn;
use tierloom_model::Warning;
use tierloom_recording::Recording;

pub use error::RecordError;
use journal::{Kept, Tried};
pub use processor::processor;
use recorder::Recorder;
pub use request::{Backend, DEFAULT_HZ, Progress, RecordRequest};
pub use tierloom_launch::DEFAULT_MIN_BYTES;

/// Runs the program to its end and returns what was seen; `progress` is called about 50 times a second.
///
/// A program that fails, crashes or is killed is recorded all the same: see [`Recording::exit`].
///
/// # Errors
/// The program cannot be started, the request makes no sense, or the machine lacks something.
pub fn record(request: &RecordRequest, progress: &mut dyn FnMut(Progress)) -> Result<Recording, RecordError> {
    let program = Program::find(&request.command)?;
    request.check()?;
    let preload = request.preload.as_deref().map(program::existing).transpose()?;
    let tried = request.journal.as_deref().map(|path| Tried::open(path, request.keep)).transpose()?;
    let channel = PreloadChannel::create(request.min_bytes, 0, &request.root)?;
    let variables = program::environment(&request.variables, preload, channel.path());
    let held = spawn::hold(&request.command, &variables)?;
    let mut recorder = Recorder::beside(request, held.pid(), channel)?;
    let running = held.release().map_err(|refused| program.not_executable(refused))?;
    let mut kept = Kept::begin(tried, &recorder.beginning(), &request.root, recorder.hz());
    let ended = recorder.follow(&running, &mut |gathered| {
        progress(gathered.progress());
        kept.visit(gathered);
    })?;
    kept.take_rest(recorder.gathered(), &ended);
    let mut recording = recorder.finish(&ended, &program);
    if !kept.end(&recording) && request.keep {
        recording.warnings.push(Warning::KeptInPart);
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_makes_no_sense_is_refused() {
        for hz in [0, 10_001] {
            let request = RecordRequest { hz: Some(hz), ..RecordRequest::new(vec!["true".into()], None) };
            assert!(matches!(record(&request, &mut |_| ()), Err(RecordError::Rate { .. })));
        }
    }
}
