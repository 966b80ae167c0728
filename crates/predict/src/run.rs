//! Where a program runs: sockets, and threads on each.

use tierloom_model::{Machine, Profile};

use crate::error::PredictError;

/// Where and how wide the program runs, or the part of it on one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Position of the socket in the machine.
    pub socket: usize,
    /// Threads, one a core.
    pub threads: u32,
}

/// Whether the machine has the cores for it.
pub(crate) fn check(machine: &Machine, profile: &Profile, runs: &[Run]) -> Result<(), PredictError> {
    if runs.is_empty() {
        return Err(PredictError::NoThreads { profile: profile.name.clone() });
    }
    for (at, run) in runs.iter().enumerate() {
        if runs[..at].iter().any(|other| other.socket == run.socket) {
            return Err(PredictError::SocketTwice { socket: machine.sockets[run.socket].name.clone() });
        }
        check_threads(machine, profile, *run)?;
    }
    Ok(())
}

fn check_threads(machine: &Machine, profile: &Profile, run: Run) -> Result<(), PredictError> {
    let socket = &machine.sockets[run.socket];
    if run.threads == 0 {
        return Err(PredictError::NoThreads { profile: profile.name.clone() });
    }
    if run.threads > socket.cores.value {
        return Err(PredictError::TooManyThreads {
            threads: run.threads,
            cores: socket.cores.value,
            socket: socket.name.clone(),
            machine: machine.name.clone(),
        });
    }
    Ok(())
}
