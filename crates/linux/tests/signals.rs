//! A signal to us is one to the program. Alone in its process: signals are the whole process's.

#![allow(missing_docs, clippy::unwrap_used)]

use std::env;

use tierloom_linux::spawn::{Ended, hold};

/// How a script ends that sends us, its parent, a signal and then waits.
fn ended(signal: &str) -> Ended {
    let script = format!("trap 'exit 41' TERM; kill -{signal} $PPID; while :; do sleep 0.05; done");
    let variables: Vec<_> = env::vars_os().collect();
    let running = hold(&["sh".into(), "-c".into(), script.into()], &variables).unwrap().release().unwrap();
    loop {
        running.wait(&[], 1000);
        if let Some(ended) = running.ended().unwrap() {
            return ended;
        }
    }
}

#[test]
fn a_signal_is_passed_on_and_does_not_end_us() {
    assert_eq!(ended("USR1").signal, Some(libc::SIGUSR1), "the script has no trap for it");
    assert_eq!(ended("TERM").code, Some(41), "the script has a trap for it");
}
