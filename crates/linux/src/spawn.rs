//! Starts a program as a shell would, but holds it right before its `exec` until told to go.
//!
//! Between [`hold`] and [`Held::release`] the process exists and has an id, so that events can be
//! opened on it. Standard streams, working directory, process group and terminal are the caller's,
//! untouched. While the program runs, signals that somebody sends to us alone are passed on; those
//! of the terminal reach the program by themselves, and must not end us first.

mod signals;

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use crate::error::LinuxError;
use crate::root::Root;
use crate::threads::{children_of, threads_of};
use signals::Forwarding;

/// A process that waits to become its program. Dropped unreleased, it ends without a trace.
#[derive(Debug)]
pub struct Held {
    // Closed first when dropped: that ends the child, which is then reaped.
    go: OwnedFd,
    child: Unreaped,
    failed: OwnedFd,
    forwarding: Forwarding,
    program: String,
}

/// A child that somebody has to wait for: whoever drops this does.
#[derive(Debug)]
struct Unreaped(libc::pid_t);

impl Unreaped {
    /// Leaves the waiting to the caller.
    fn take(self) -> libc::pid_t {
        let pid = self.0;
        std::mem::forget(self);
        pid
    }
}

impl Drop for Unreaped {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: it is our child, and `status` an int.
        while unsafe { libc::waitpid(self.0, &raw mut status, 0) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    pid: libc::pid_t,
    ended: Option<OwnedFd>,
    _forwarding: Forwarding,
}

/// How a program ended and what it used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// Exit code, where it returned one.
    pub code: Option<i32>,
    /// Signal, where one killed it.
    pub signal: Option<i32>,
    /// User CPU time with the children that it waited for, s.
    pub user_s: f64,
    /// System CPU time with the children that it waited for, s.
    pub system_s: f64,
}

/// Forks a process that will run `command` with exactly the environment `variables`.
///
/// # Errors
/// A string holds a zero byte (`EINVAL`), or the kernel has no process or pipe left.
pub fn hold(command: &[OsString], variables: &[(OsString, OsString)]) -> Result<Held, LinuxError> {
    let program = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let arguments = c_strings(command.iter().map(OsString::as_os_str))?;
    let joined: Vec<OsString> = variables.iter().map(|(name, value)| join(name, value)).collect();
    let environment = c_strings(joined.iter().map(OsString::as_os_str))?;
    if arguments.is_empty() {
        return Err(LinuxError::new("execve", "no program", io::Error::from_raw_os_error(libc::ENOENT)));
    }
    let (arguments, environment) = (Pointers::new(&arguments), Pointers::new(&environment));
    let (wait, go) = pipe()?;
    let (failed, report) = pipe()?;
    let forwarding = Forwarding::install();
    // SAFETY: the child calls only async-signal-safe functions until it becomes another program.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(LinuxError::last("fork", program));
    }
    if pid == 0 {
        drop(go);
        forwarding.undo_in_child();
        become_program(&wait, &report, &arguments, &environment);
    }
    forwarding.to(pid);
    Ok(Held { go, child: Unreaped(pid), failed, forwarding, program })
}

/// The child's side: waits for a byte, then is the program, or says why not.
fn become_program(wait: &OwnedFd, report: &OwnedFd, arguments: &Pointers, environment: &Pointers) -> ! {
    let mut byte = 0_u8;
    // SAFETY: reads one byte into a byte; the pointers are those of C strings and end with a null;
    // `errno` is an int of this thread; the calls are async-signal-safe in glibc and musl.
    unsafe {
        if libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 {
            libc::execvpe(arguments.0[0], arguments.0.as_ptr(), environment.0.as_ptr());
            let errno = *libc::__errno_location();
            libc::write(report.as_raw_fd(), (&raw const errno).cast(), size_of::<i32>());
        }
        libc::_exit(127)
    }
}

impl Held {
    /// Process id of the program to be.
    pub fn pid(&self) -> u32 {
        self.child.0.unsigned_abs()
    }

    /// Lets it go.
    ///
    /// # Errors
    /// The program could not be executed: `ENOENT`, `EACCES`, `ENOEXEC`, ...
    pub fn release(self) -> Result<Running, LinuxError> {
        let mut errno = 0_i32;
        // SAFETY: one byte is read from a byte; at most four are written to an int. The other end of
        // `failed` closes with the child's exec, so the read ends.
        let got = unsafe {
            libc::write(self.go.as_raw_fd(), b"!".as_ptr().cast(), 1);
            read_all(self.failed.as_raw_fd(), (&raw mut errno).cast(), size_of::<i32>())
        };
        let Held { child, forwarding, program, .. } = self;
        if got == size_of::<i32>() {
            return Err(LinuxError::new("execve", program, io::Error::from_raw_os_error(errno)));
        }
        let pid = child.take();
        Ok(Running { pid, ended: open_pidfd(pid), _forwarding: forwarding })
    }
}

impl Running {
    /// Sleeps until the program ends, one of `descriptors` is readable, or this time is over.
    pub fn wait(&self, descriptors: &[RawFd], timeout_ms: i32) {
        let ended = self.ended.iter().map(AsRawFd::as_raw_fd);
        let mut polled: Vec<libc::pollfd> = descriptors
            .iter()
            .copied()
            .chain(ended)
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: `polled` is an array of this many entries.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout_ms) };
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Kills it, with the processes that it has started and that have not left it.
    pub fn kill(&self, root: &Root) {
        let mut family = vec![self.pid()];
        let mut at = 0;
        while let Some(&pid) = family.get(at) {
            family.extend(threads_of(root, pid).into_iter().flat_map(|tid| children_of(root, pid, tid)));
            at += 1;
        }
        for pid in family {
            // SAFETY: plain numbers; the program is ours until it is reaped, and the others were its children just now.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
        }
    }

    /// How it ended, once it has.
    ///
    /// # Errors
    /// Somebody else reaped the child.
    pub fn ended(&self) -> Result<Option<Ended>, LinuxError> {
        if !self.has_ended()? {
            return Ok(None);
        }
        let mut status = 0;
        // SAFETY: rusage is plain numbers, for which zero is valid.
        let mut used: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to values of the types that the call fills.
        let pid = unsafe { libc::wait4(self.pid, &raw mut status, libc::WNOHANG, &raw mut used) };
        if pid < 0 {
            return Err(LinuxError::last("wait4", format!("process {}", self.pid)));
        }
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        let ended = Ended { code, signal, user_s: seconds(used.ru_utime), system_s: seconds(used.ru_stime) };
        Ok((pid == self.pid).then_some(ended))
    }

    /// Asked without taking the answer: where another thread of ours traces the program, `wait4` would also
    /// answer that it halted, whatever its options (`wait_task_stopped` of the kernel's `exit.c`).
    fn has_ended(&self) -> Result<bool, LinuxError> {
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: siginfo_t is plain data for which zero is valid; the call fills it.
        let (refused, code) = unsafe {
            let mut seen: libc::siginfo_t = std::mem::zeroed();
            (libc::waitid(libc::P_PID, self.pid(), &raw mut seen, flags) != 0, seen.si_code)
        };
        if refused {
            return Err(LinuxError::last("waitid", format!("process {}", self.pid)));
        }
        Ok(matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED))
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

/// Becomes readable when the process ends (Linux 5.3); without it `wait` just sleeps its time.
fn open_pidfd(pid: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: two plain numbers.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the kernel just returned this descriptor, so nobody else owns it.
    i32::try_from(file).ok().filter(|file| *file >= 0).map(|file| unsafe { OwnedFd::from_raw_fd(file) })
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LinuxError> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(LinuxError::last("pipe2", "start of a program"));
    }
    // SAFETY: the kernel just returned these descriptors, so nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Reads until `bytes` are there or the other end is closed.
///
/// # Safety
/// `into` has room for `bytes`.
unsafe fn read_all(file: RawFd, into: *mut u8, bytes: usize) -> usize {
    let mut got = 0;
    while got < bytes {
        // SAFETY: `got < bytes`, so the rest fits by the caller's promise.
        let read = unsafe { libc::read(file, into.add(got).cast(), bytes - got) };
        let interrupted = read < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        match usize::try_from(read) {
            Ok(0) => break,
            Ok(read) => got += read,
            Err(_) if interrupted => {}
            Err(_) => break,
        }
    }
    got
}

/// C strings as `execve` wants them: pointers with a null behind the last.
struct Pointers<'a>(Vec<*const libc::c_char>, std::marker::PhantomData<&'a CString>);

impl<'a> Pointers<'a> {
    fn new(strings: &'a [CString]) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
        Self(pointers, std::marker::PhantomData)
    }
}

fn join(name: &OsStr, value: &OsStr) -> OsString {
    let mut joined = name.to_owned();
    joined.push("=");
    joined.push(value);
    joined
}

fn c_strings<'a>(strings: impl Iterator<Item = &'a OsStr>) -> Result<Vec<CString>, LinuxError> {
    let invalid = |string: &OsStr| {
        LinuxError::new("execve", string.to_string_lossy(), io::Error::from_raw_os_error(libc::EINVAL))
    };
    strings.map(|string| CString::new(string.as_bytes()).map_err(|_| invalid(string))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &[&str]) -> Result<Ended, LinuxError> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let running = hold(&command, &std::env::vars_os().collect::<Vec<_>>())?.release()?;
        loop {
            running.wait(&[], 1000);
            if let Some(ended) = running.ended()? {
                return Ok(ended);
            }
        }
    }

    #[test]
    fn exit_codes_and_signals_come_back() {
        assert_eq!(run(&["true"]).unwrap().code, Some(0));
        assert_eq!(run(&["sh", "-c", "exit 7"]).unwrap().code, Some(7));
        assert_eq!(run(&["sh", "-c", "kill -SEGV $$"]).unwrap().signal, Some(libc::SIGSEGV));
    }

    #[test]
    fn what_is_killed_takes_its_children_along() {
        let command = ["sh", "-c", "sleep 1000 & sleep 1000; exit 0"];
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let running = hold(&command, &std::env::vars_os().collect::<Vec<_>>()).unwrap().release().unwrap();
        let root = Root::default();
        let mut children = Vec::new();
        while children.len() < 2 {
            children = children_of(&root, running.pid(), running.pid());
        }
        running.kill(&root);
        let ended = loop {
            running.wait(&[], 1000);
            if let Some(ended) = running.ended().unwrap() {
                break ended;
            }
        };
        assert_eq!(ended.signal, Some(libc::SIGKILL));
        // Whoever adopted them may leave them unreaped: then they have no memory any more.
        let runs = |pid: &u32| !root.text(&format!("/proc/{pid}/cmdline")).unwrap_or_default().is_empty();
        while children.iter().any(runs) {}
    }

    #[test]
    fn what_cannot_run_says_why() {
        assert_eq!(run(&["/no/such/program"]).unwrap_err().errno(), Some(libc::ENOENT));
        assert_eq!(run(&["/etc/passwd"]).unwrap_err().errno(), Some(libc::EACCES));
        assert_eq!(run(&["a\0b"]).unwrap_err().errno(), Some(libc::EINVAL));
        assert_eq!(run(&[]).unwrap_err().errno(), Some(libc::ENOENT));
    }

    #[test]
    fn a_held_process_that_is_dropped_ends() {
        let held = hold(&["true".into()], &[]).unwrap();
        let pid = held.child.0;
        drop(held);
        let mut status = 0;
        // SAFETY: `status` is an int; the child is gone, so the call changes nothing.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) }, -1, "it was reaped");
    }

    #[test]
    fn the_program_sees_the_signals_of_a_fresh_process() {
        // Rust programs ignore SIGPIPE; a program must not inherit that: `yes` would never end.
        assert_eq!(run(&["sh", "-c", "yes | head -1 > /dev/null; exit 3"]).unwrap().code, Some(3));
        let ended = run(&["sh", "-c", "kill -PIPE $$; exit 0"]).unwrap();
        assert_eq!(ended.signal, Some(libc::SIGPIPE));
    }
}
