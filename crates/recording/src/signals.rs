//! Signals by their names.

use std::ops::RangeInclusive;

/// Those of Linux on x86-64 (`signal(7)`), from 1 on.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Real-time signals that the C library leaves to programs (glibc keeps 32 and 33).
const REAL_TIME: RangeInclusive<i32> = 34..=64;

/// Name of a signal, as `kill -l` writes it with `SIG` in front; real-time ones by their number.
pub(crate) fn signal_name(signal: i32) -> String {
    let position = usize::try_from(signal).ok().and_then(|signal| signal.checked_sub(1));
    match position.and_then(|position| NAMES.get(position)) {
        Some(name) => (*name).to_owned(),
        None if REAL_TIME.contains(&signal) => format!("SIGRTMIN+{}", signal - REAL_TIME.start()),
        None => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_the_names_of_the_system() {
        let known = [(11, "SIGSEGV"), (27, "SIGPROF"), (31, "SIGSYS"), (1, "SIGHUP")];
        assert!(known.iter().all(|(signal, name)| signal_name(*signal) == *name));
        assert_eq!(signal_name(36), "SIGRTMIN+2");
        assert_eq!(signal_name(0), "signal 0");
    }
}
