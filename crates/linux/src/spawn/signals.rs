//! Signals while a program runs: what was meant for the program gets there, and does not end us.
//!
//! A key on the terminal (Ctrl-C) signals the whole foreground group: the program has it already, we
//! do nothing. A `kill` of us alone is passed on. Everything is put back when the program has ended.

use std::sync::atomic::{AtomicI32, Ordering};

/// Signals by which people and job schedulers talk to a program.
const FORWARDED: [i32; 6] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// Nobody; the child is known only after the fork.
const NOBODY: i32 = 0;
/// Somebody owns the handlers and has no child yet.
const TAKEN: i32 = -1;

/// The program that signals are passed on to. A handler can see only a static.
static TARGET: AtomicI32 = AtomicI32::new(NOBODY);

/// Handlers are installed while this lives. A second one at the same time does nothing.
#[derive(Debug)]
pub(super) struct Forwarding(Option<Vec<Previous>>);

struct Previous {
    signal: i32,
    action: libc::sigaction,
}

impl std::fmt::Debug for Previous {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "handler of signal {}", self.signal)
    }
}

impl Forwarding {
    pub(super) fn install() -> Self {
        if TARGET.compare_exchange(NOBODY, TAKEN, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Self(None);
        }
        Self(Some(FORWARDED.iter().filter_map(|signal| replace(*signal)).collect()))
    }

    /// Names the process that signals go to from now on.
    pub(super) fn to(&self, pid: libc::pid_t) {
        if self.0.is_some() {
            TARGET.store(pid, Ordering::SeqCst);
        }
    }

    /// Gives a forked child the signals that it would have had without us. What a Rust or Python
    /// program ignores for itself (SIGPIPE, SIGXFSZ) is not for its children.
    pub(super) fn undo_in_child(&self) {
        for previous in self.0.iter().flatten() {
            // SAFETY: the action is the one that the kernel gave for this signal.
            unsafe { libc::sigaction(previous.signal, &raw const previous.action, std::ptr::null_mut()) };
        }
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            // SAFETY: SIG_DFL is a valid handler of every signal.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Installs the forwarder, except where the signal is ignored (`nohup`): that is for the program too.
fn replace(signal: i32) -> Option<Previous> {
    // SAFETY: sigaction is plain data for which zero is valid; the handler has the type that
    // SA_SIGINFO asks for and makes only async-signal-safe calls.
    unsafe {
        let mut previous: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut previous);
        if previous.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = forward as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        Some(Previous { signal, action: previous })
    }
}

extern "C" fn forward(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let target = TARGET.load(Ordering::SeqCst);
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler; kill and errno are
    // async-signal-safe. A positive code says that the kernel sent it: the terminal.
    unsafe {
        if (*info).si_code <= 0 && target > 0 {
            let errno = libc::__errno_location();
            let saved = *errno;
            libc::kill(target, signal);
            *errno = saved;
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let Some(previous) = self.0.take() else { return };
        for Previous { signal, action } in previous {
            // SAFETY: the action is the one that the kernel gave for this signal.
            unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        }
        TARGET.store(NOBODY, Ordering::SeqCst);
    }
}
