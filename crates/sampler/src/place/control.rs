//! How a running program gets a new plan: a socket beside the file that both map,
//! at which the process that started it answers.
//!
//! That process knows the program's objects, so it does the work; whoever asks only finds the socket,
//! by the file that the program has mapped, and waits. One JSON line each way. Only the same user can
//! open the socket.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tierloom_linux::maps::mapped_ranges;
use tierloom_linux::root::Root;
use tierloom_linux::shared;

use super::apply::Applied;
use crate::error::SamplerError;

/// Name of the socket behind the name of the shared file.
const SUFFIX: &str = ".control";
/// How long a request may take to come in: it is one line.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked: a plan for a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) pid: u32,
    /// The plan, TOML.
    pub(super) plan: String,
    /// Nodes whose number here is not their position in the plan.
    pub(super) nodes: std::collections::BTreeMap<String, u32>,
}

/// What comes back: what was done, or why nothing was.
pub(super) type Answer = Result<Applied, String>;

/// The side that answers.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Opens the socket beside the shared file; `None` where that cannot be: then the program runs without.
    pub(super) fn open(shared: &Path) -> Option<Self> {
        let path = socket_of(shared);
        let listener = UnixListener::bind(&path).ok()?;
        let control = Self { listener, path };
        fs::set_permissions(&control.path, fs::Permissions::from_mode(0o600)).ok()?;
        control.listener.set_nonblocking(true).ok()?;
        Some(control)
    }

    /// To wait for requests.
    pub(super) fn descriptor(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    /// Answers one request, if there is one.
    pub(super) fn serve(&self, answer: impl FnOnce(Request) -> Answer) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        if stream.set_nonblocking(false).is_err() || stream.set_read_timeout(Some(PATIENCE)).is_err() {
            return;
        }
        let mut line = String::new();
        if BufReader::new(&stream).read_line(&mut line).is_err() {
            return;
        }
        let answer =
            serde_json::from_str(&line).map_err(|error| format!("the request is none: {error}")).and_then(answer);
        // Who asked may have gone away; that is its business.
        send(&stream, &answer).ok();
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

fn socket_of(shared: &Path) -> PathBuf {
    let mut name = shared.as_os_str().to_owned();
    name.push(SUFFIX);
    PathBuf::from(name)
}

fn send(mut stream: &UnixStream, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    stream.write_all(line.as_bytes())
}

/// Asks for a plan to be applied to a running program, and waits until it is.
pub(super) fn ask(root: &Root, request: &Request) -> Result<Answer, SamplerError> {
    let not_placed = |problem: String, hint| SamplerError::NotPlaced { pid: request.pid, problem, hint };
    let mapped = mapped_ranges(root, request.pid);
    if mapped.is_empty() {
        return Err(not_placed(
            "there is no such process, or it is another user's".to_owned(),
            "give the id of a program that runs now",
        ));
    }
    // Anybody may call a file so; the one with a socket beside it is meant.
    let files: Vec<&Path> = mapped.iter().map(|range| Path::new(&range.path)).filter(|path| is_shared(path)).collect();
    let shared = files.iter().find(|file| socket_of(file).exists()).or(files.first()).ok_or_else(|| {
        not_placed("it does not run under tierloom".to_owned(), "start it with `tierloom run`, with any plan")
    })?;
    let gone = |error: std::io::Error| {
        not_placed(
            format!("nobody answers for it: {error}"),
            "it was started by `tierloom profile`, or the `tierloom run` that started it has ended",
        )
    };
    let stream = UnixStream::connect(socket_of(shared)).map_err(gone)?;
    send(&stream, request).map_err(gone)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).map_err(gone)?;
    serde_json::from_str(&line).map_err(|error| gone(error.into()))
}

fn is_shared(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(shared::PREFIX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_question_gets_its_answer_and_the_socket_goes_away() {
        let shared = std::env::temp_dir().join(format!("tierloom-control-{}", std::process::id()));
        let control = Control::open(&shared).unwrap();
        let path = control.path.clone();
        let asked = Request { pid: 7, plan: "x\n".to_owned(), nodes: BTreeMap::from([("a".to_owned(), 1)]) };
        let stream = UnixStream::connect(&path).unwrap();
        send(&stream, &asked).unwrap();
        control.serve(|request| {
            assert_eq!(request, asked);
            Err("no".to_owned())
        });
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), Err("no".to_owned()));
        control.serve(|_| unreachable!("nobody asked"));
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn programs_that_are_not_ours_are_told_so() {
        let ask_about = |pid| {
            let request = Request { pid, plan: String::new(), nodes: BTreeMap::new() };
            ask(&Root::default(), &request).unwrap_err().to_string()
        };
        assert!(ask_about(std::process::id()).contains("tierloom run"));
        assert!(ask_about(u32::MAX).contains("no such process"));
    }
}
