//! CPU time of one thread, exact while it runs.
//!
//! `schedstat` is brought up to date at the scheduler's ticks, some milliseconds apart; reading an event asks the processor on
//! which the thread runs.

use std::fs::File;
use std::io::Read;

use super::{ANY_CPU, Attributes, SOFTWARE_TASK_CLOCK, TYPE_SOFTWARE, common, flag, open_event};
use crate::error::LinuxError;

/// CPU time of a thread since this was made.
#[derive(Debug)]
pub struct ThreadClock(File);

impl ThreadClock {
    /// Starts at zero.
    ///
    /// # Errors
    /// `perf_event_open` is refused, or the thread has ended.
    pub fn start(tid: u32) -> Result<Self, LinuxError> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            config: SOFTWARE_TASK_CLOCK,
            flags: flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::USE_CLOCKID,
            ..common()
        };
        open_event(&attributes, tid, ANY_CPU, None).map(|event| Self(File::from(event)))
    }

    /// What has passed, ns; `None` where the kernel does not tell.
    pub fn ns(&self) -> Option<u64> {
        let mut word = [0; 8];
        (&self.0).read_exact(&mut word).ok()?;
        Some(u64::from_ne_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/thread-self` is `PID/task/TID`.
    fn own_tid() -> u32 {
        let path = std::fs::read_link("/proc/thread-self").unwrap();
        path.file_name().unwrap().to_str().unwrap().parse().unwrap()
    }

    #[test]
    fn it_runs_with_the_thread_and_only_then() {
        // Nobody can say anything where the kernel refuses.
        let Ok(clock) = ThreadClock::start(own_tid()) else { return };
        let begun = clock.ns().unwrap();
        let mut idle = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = ThreadClock::start(idle.id()).unwrap();
        // Much more than it takes to start a program.
        let busy_ns = 200_000_000;
        while clock.ns().unwrap() < begun + busy_ns {}
        assert!(other.ns().unwrap() < busy_ns, "it sleeps meanwhile");
        idle.kill().unwrap();
        idle.wait().unwrap();
        let ended = other.ns().unwrap();
        assert_eq!(other.ns().unwrap(), ended, "nothing runs any more");
    }
}
