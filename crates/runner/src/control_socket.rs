//! How a running program gets a new plan: a socket at which the process that started it answers.
//!
//! That process knows the program's objects, so it does the work; whoever asks only finds the socket, by
//! the memory that the program has mapped, and waits. One JSON line each way. The socket's name is in no
//! file system: nothing stays when we are killed, and no permissions have to be right. The kernel says
//! who is at the other end, and only the same user is listened to, or answered.
//!
//! Whoever asks slowly, much, or many at once holds nobody: nothing here waits, a line has a length and a
//! time, and so many are listened to at once.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tierloom_linux::maps::mapped_ranges;
use tierloom_linux::peers;
use tierloom_linux::root::Root;
use tierloom_linux::shared;

use crate::error::RunError;
use crate::new_plan::Applied;

/// Name of the socket behind the name of the shared memory.
const SUFFIX: &str = ".control";
/// From the connection to the end of the request, and from there to the end of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request: several times a plan whose rules fill all the room that there is for them.
const LONGEST: usize = 4 << 20;
/// Who is listened to at once; others wait for their turn.
const MOST_CLIENTS: usize = 16;
/// Bytes that are read from one client at a visit.
const AT_ONCE: usize = 64 << 10;

/// What is asked: a plan for a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) pid: u32,
    /// The plan, TOML.
    pub(super) plan: String,
    /// Which node of this machine each memory is that the plan uses.
    pub(super) nodes: std::collections::BTreeMap<String, u32>,
}

/// What comes back: what was done, or why nothing was.
pub(super) type Answer = Result<Applied, String>;

/// The side that answers.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    clients: Vec<Client>,
}

/// Somebody who asks.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    until: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    /// What came of the line so far.
    Asking(Vec<u8>),
    /// What is left of the answer.
    Answering(Vec<u8>),
}

/// Whether a client stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    Yes,
    No,
}

impl Control {
    /// Opens the socket of this shared memory; `None` where that cannot be: then the program runs without.
    pub(super) fn open(shared: &str) -> Option<Self> {
        let listener = UnixListener::bind_addr(&address(shared).ok()?).ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Self { listener, clients: Vec::new() })
    }

    /// To wait for requests.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let asking = self.clients.iter().filter(|client| matches!(client.state, State::Asking(_)));
        let listener = (self.clients.len() < MOST_CLIENTS).then(|| self.listener.as_raw_fd());
        asking.map(|client| client.stream.as_raw_fd()).chain(listener).collect()
    }

    /// Takes what has come in by now, answers what is complete, and waits for nothing.
    pub(super) fn serve(&mut self, now: Instant, mut answer: impl FnMut(Request) -> Answer) {
        self.welcome(now);
        self.clients.retain_mut(|client| client.visit(now, &mut answer) == Stays::Yes);
    }

    fn welcome(&mut self, now: Instant) {
        while self.clients.len() < MOST_CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else { return };
            if peers::is_same_user(&stream) && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, until: now + PATIENCE, state: State::Asking(Vec::new()) });
            }
        }
    }
}

impl Client {
    fn visit(&mut self, now: Instant, answer: &mut impl FnMut(Request) -> Answer) -> Stays {
        if now >= self.until {
            return Stays::No;
        }
        if let State::Asking(line) = &mut self.state {
            let told = match take(&self.stream, line) {
                Taken::More => return Stays::Yes,
                Taken::Nothing => return Stays::No,
                Taken::Line => answered(line, answer),
                Taken::TooLong => Err(format!("the request is longer than {} MiB", LONGEST >> 20)),
            };
            let Ok(bytes) = line_of(&told) else { return Stays::No };
            self.until = now.max(Instant::now()) + PATIENCE;
            self.state = State::Answering(bytes);
        }
        self.send()
    }

    /// Who asked may have gone away; that is its business.
    fn send(&mut self) -> Stays {
        let State::Answering(bytes) = &mut self.state else { return Stays::Yes };
        match self.stream.write(bytes) {
            Ok(sent) if sent == bytes.len() => Stays::No,
            Ok(sent) => {
                bytes.drain(..sent);
                Stays::Yes
            }
            Err(error) if is_later(&error) => Stays::Yes,
            Err(_) => Stays::No,
        }
    }
}

/// What has come in of a line.
enum Taken {
    More,
    Line,
    Nothing,
    TooLong,
}

fn take(mut stream: &UnixStream, line: &mut Vec<u8>) -> Taken {
    let mut bytes = vec![0; AT_ONCE];
    let got = match stream.read(&mut bytes) {
        Ok(0) => return Taken::Nothing,
        Ok(got) => got,
        Err(error) if is_later(&error) => return Taken::More,
        Err(_) => return Taken::Nothing,
    };
    let end = bytes[..got].iter().position(|byte| *byte == b'\n');
    line.extend_from_slice(&bytes[..end.unwrap_or(got)]);
    match end {
        _ if line.len() > LONGEST => Taken::TooLong,
        Some(_) => Taken::Line,
        None => Taken::More,
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn answered(line: &[u8], answer: &mut impl FnMut(Request) -> Answer) -> Answer {
    serde_json::from_slice(line).map_err(|error| format!("the request is none: {error}")).and_then(answer)
}

fn address(shared: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{shared}{SUFFIX}"))
}

fn line_of(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Asks for a plan to be applied to a running program, and waits until it is.
pub(super) fn ask(root: &Root, request: &Request) -> Result<Answer, RunError> {
    let not_placed = |problem: String, hint| RunError::NotPlaced { pid: request.pid, problem, hint };
    let mapped = mapped_ranges(root, request.pid);
    if mapped.is_empty() {
        return Err(not_placed(
            "there is no such process, or it is another user's".to_owned(),
            "give the id of a program that runs now",
        ));
    }
    let mut names: Vec<&str> = mapped.iter().filter_map(|range| shared::name_of(&range.path)).collect();
    names.dedup();
    if names.is_empty() {
        return Err(not_placed(
            "it does not run under tierloom".to_owned(),
            "start it with `tierloom run`, with any plan",
        ));
    }
    // Anybody may call a mapping so; the one with a socket is meant.
    let mut refused = io::Error::from(ErrorKind::NotFound);
    for name in names {
        match connect(name).and_then(|stream| exchange(&stream, request)) {
            Ok(answer) => return Ok(answer),
            Err(error) => refused = error,
        }
    }
    Err(not_placed(
        format!("nobody answers for it: {refused}"),
        "it was started by `tierloom profile`, or the `tierloom run` that started it has ended",
    ))
}

/// The socket of a shared memory, if the same user is behind it; root may ask anybody.
fn connect(name: &str) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&address(name)?)?;
    if peers::is_same_user(&stream) || peers::is_root() { Ok(stream) } else { Err(ErrorKind::PermissionDenied.into()) }
}

fn exchange(mut stream: &UnixStream, request: &Request) -> io::Result<Answer> {
    stream.write_all(&line_of(request)?)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::thread;

    use super::*;

    /// A socket of its own for each test.
    fn open(test: &str) -> (Control, String) {
        let name = format!("tierloom-test-{}-{test}", std::process::id());
        (Control::open(&name).unwrap(), name)
    }

    fn asked() -> Request {
        Request { pid: 7, plan: "x\n".to_owned(), nodes: BTreeMap::from([("a".to_owned(), 1)]) }
    }

    fn answer_of(stream: &UnixStream) -> Option<Answer> {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    #[test]
    fn a_question_gets_its_answer() {
        let (mut control, name) = open("answer");
        let stream = connect(&name).unwrap();
        (&stream).write_all(&line_of(&asked()).unwrap()).unwrap();
        control.serve(Instant::now(), |request| {
            assert_eq!(request, asked());
            Err("no".to_owned())
        });
        assert_eq!(answer_of(&stream), Some(Err("no".to_owned())));
        control.serve(Instant::now(), |_| unreachable!("nobody asked"));
        assert!(control.clients.is_empty());
        drop(control);
        assert!(connect(&name).is_err(), "the socket has gone with its maker");
    }

    #[test]
    fn who_drips_holds_nobody_and_is_left_after_a_while() {
        let (mut control, name) = open("drip");
        let (slow, quick) = (connect(&name).unwrap(), connect(&name).unwrap());
        let begun = Instant::now();
        for second in 0..4 {
            (&slow).write_all(b"{").unwrap();
            control.serve(begun + Duration::from_secs(second), |_| unreachable!("it is not complete"));
        }
        (&quick).write_all(&line_of(&asked()).unwrap()).unwrap();
        control.serve(begun + Duration::from_secs(4), |_| Err("yes".to_owned()));
        assert_eq!(answer_of(&quick), Some(Err("yes".to_owned())));
        assert_eq!(control.clients.len(), 1);
        control.serve(begun + PATIENCE, |_| unreachable!("its time is over"));
        assert!(control.clients.is_empty() && answer_of(&slow).is_none());
    }

    #[test]
    fn a_request_without_an_end_is_refused_and_not_kept() {
        let (mut control, name) = open("flood");
        let stream = connect(&name).unwrap();
        let sender = thread::spawn(move || {
            let block = vec![b' '; 1 << 20];
            let sent = (0..100).take_while(|_| (&stream).write_all(&block).is_ok()).count();
            (sent, answer_of(&stream))
        });
        while !sender.is_finished() {
            control.serve(Instant::now(), |_| unreachable!("there is no request"));
            assert!(control.clients.iter().all(
                |client| matches!(&client.state, State::Asking(line) | State::Answering(line) if line.len() <= LONGEST + AT_ONCE)
            ));
        }
        let (sent, _) = sender.join().unwrap();
        assert!(sent < 6, "{sent} MiB were taken");
    }

    #[test]
    fn many_at_once_all_get_their_answers() {
        let (mut control, name) = open("many");
        let ask = || {
            let name = name.clone();
            thread::spawn(move || exchange(&connect(&name).unwrap(), &asked()).unwrap())
        };
        let asking: Vec<_> = (0..40).map(|_| ask()).collect();
        while asking.iter().any(|one| !one.is_finished()) {
            control.serve(Instant::now(), |_| Err("done".to_owned()));
            assert!(control.clients.len() <= MOST_CLIENTS);
            thread::yield_now();
        }
        assert!(asking.into_iter().all(|one| one.join().unwrap() == Err("done".to_owned())));
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
