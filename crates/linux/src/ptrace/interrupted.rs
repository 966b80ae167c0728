//! System calls that our halt cut short, made whole again.
//!
//! Halting a thread inside a system call is like sending it a signal that it ignores. Most calls then begin
//! again by themselves, unseen by the program. The others (`signal(7)`, the last two lists) show it: some fail
//! with `EINTR`, which a program need not expect that handles no signal, and a call that moves many bytes
//! through a pipe or a socket returns fewer. The former are made again; for the latter the rest is
//! asked for before the program sees the count.
//!
//! `read` and `recv` return what is there, and that may be little without us, so they are left alone,
//! but where all bytes were promised: `/dev/zero`, the random devices, `MSG_WAITALL`. So is `sendfile` with its kin,
//! which no caller expects to be whole, and `sendmsg`, whose ancillary data must not be sent twice.

use std::collections::VecDeque;

use super::{Registers, read_words};
use crate::root::Root;

/// What must be done about a call before its thread is let go.
#[derive(Debug, PartialEq)]
pub enum Remedy {
    /// Nothing: it was in user space, or its call does not show that we were there.
    None,
    /// These registers make the same call again, which has done nothing yet.
    Again(Box<Registers>),
    /// The rest of it.
    Finish(Box<Rest>),
}

/// A call that has moved some of its bytes, and what is left of it.
#[derive(Debug, PartialEq)]
pub struct Rest {
    /// Registers at its end; only the count is to change.
    registers: Registers,
    /// The same call for one piece of memory.
    call: u64,
    /// Memory that it did not get to.
    pieces: VecDeque<Piece>,
    /// Bytes moved so far.
    moved: u64,
}

/// A piece of the program's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    address: u64,
    bytes: u64,
}

/// A thread at a halt: whose, and where its registers are.
#[derive(Debug)]
pub struct Held<'a> {
    /// Where `/proc` is.
    pub root: &'a Root,
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// At the halt.
    pub registers: &'a Registers,
}

impl Held<'_> {
    /// What our halt did to the call that the thread is in, if it is in one.
    pub fn remedy(&self) -> Remedy {
        let Some(call) = call_of(self.registers) else { return Remedy::None };
        if self.registers.rax == EINTR {
            let again = FAIL_WITH_EINTR.contains(&call) && !self.has_signal();
            return if again { Remedy::Again(Box::new(made_again(self.registers, call))) } else { Remedy::None };
        }
        self.rest(call).map_or(Remedy::None, |rest| Remedy::Finish(Box::new(rest)))
    }

    fn rest(&self, call: i64) -> Option<Rest> {
        let registers = self.registers;
        let moved = registers.rax;
        let one = |address, bytes| VecDeque::from([Piece { address, bytes }]);
        let (single, mut pieces) = match call {
            libc::SYS_write if self.is_stream() => (call, one(registers.rsi, registers.rdx)),
            libc::SYS_sendto if self.is_stream() => (call, one(registers.rsi, registers.rdx)),
            libc::SYS_recvfrom if has_wait_all(registers.r10) => (call, one(registers.rsi, registers.rdx)),
            libc::SYS_read if self.is_endless() => (call, one(registers.rsi, registers.rdx)),
            libc::SYS_getrandom => (call, one(registers.rdi, registers.rsi)),
            libc::SYS_writev if self.is_stream() => (libc::SYS_write, self.vector()?),
            _ => return None,
        };
        let whole: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        // Nothing at all moved: an error, an end, or a call that begins again by itself.
        if moved == 0 || moved >= whole {
            return None;
        }
        pass(&mut pieces, moved);
        Some(Rest { registers: *registers, call: single.cast_unsigned(), pieces, moved })
    }

    /// The pieces of `writev`.
    fn vector(&self) -> Option<VecDeque<Piece>> {
        /// `UIO_MAXIOV` of the kernel.
        const MOST: u64 = 1024;
        let count = usize::try_from(self.registers.rdx.min(MOST)).ok()?;
        let words = read_words(self.pid, self.registers.rsi, 2 * count)?;
        Some(words.chunks(2).map(|pair| Piece { address: pair[0], bytes: pair[1] }).collect())
    }

    /// Whether the file of the call is one that a blocking call fills whole: no file on a disk, where a short count
    /// means that it is full.
    fn is_stream(&self) -> bool {
        let target = self.file();
        ["pipe:", "socket:", "/dev/pts/", "/dev/tty"].iter().any(|start| target.starts_with(start))
    }

    /// Whether there is always more to read.
    fn is_endless(&self) -> bool {
        ["/dev/zero", "/dev/random", "/dev/urandom"].contains(&self.file().as_str())
    }

    fn file(&self) -> String {
        let link = self.root.path(&format!("/proc/{}/fd/{}", self.pid, self.registers.rdi));
        std::fs::read_link(link).map(|target| target.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether a signal waits that this thread will take: then it, not we, ended the call.
    fn has_signal(&self) -> bool {
        let Some(status) = self.root.text(&format!("/proc/{}/task/{}/status", self.pid, self.tid)) else { return true };
        let mask = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            u64::from_str_radix(line.trim(), 16).ok()
        };
        let (Some(own), Some(shared), Some(blocked)) = (mask("SigPnd"), mask("ShdPnd"), mask("SigBlk")) else {
            return true;
        };
        (own | shared) & !blocked != 0
    }
}

impl Rest {
    /// Registers that make the call for the next piece; `None` where nothing is left.
    pub fn next_call(&self) -> Option<Registers> {
        let piece = self.pieces.front()?;
        let mut registers = made_again(&self.registers, self.call.cast_signed());
        if self.call.cast_signed() == libc::SYS_getrandom {
            (registers.rdi, registers.rsi) = (piece.address, piece.bytes);
        } else {
            (registers.rsi, registers.rdx) = (piece.address, piece.bytes);
        }
        Some(registers)
    }

    /// Whether this is the entry of the call rather than its end: it has no result yet.
    pub fn is_entered(&self, registers: &Registers) -> bool {
        /// What the kernel puts there until then.
        const NO_RESULT: u64 = (-(libc::ENOSYS as i64)).cast_unsigned();
        registers.rax == NO_RESULT
    }

    /// The call for a piece ended with this: whether there is more to do.
    pub fn moved(&mut self, result: u64) -> bool {
        if failed(result) || result == 0 {
            return false;
        }
        self.moved += result;
        pass(&mut self.pieces, result);
        !self.pieces.is_empty()
    }

    /// Registers at the end of the whole call.
    pub fn end(&self) -> Registers {
        Registers { rax: self.moved, ..self.registers }
    }
}

/// The kernel's `-EINTR`.
const EINTR: u64 = (-(libc::EINTR as i64)).cast_unsigned();
/// Bytes of the instruction `syscall`.
const SYSCALL_BYTES: u64 = 2;

/// Calls that fail with `EINTR` when they are halted, having done nothing; `connect` and `close` are not among
/// them, which go on behind it. Those of sockets do so where they have a timeout.
const FAIL_WITH_EINTR: [i64; 15] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_io_getevents,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// The system call that a halted thread is in; `None` in user space, where the kernel keeps -1.
pub fn call_of(registers: &Registers) -> Option<i64> {
    let call = registers.orig_rax.cast_signed();
    (call >= 0).then_some(call)
}

/// The thread back at the instruction that makes this call.
fn made_again(registers: &Registers, call: i64) -> Registers {
    let (rax, rip) = (call.cast_unsigned(), registers.rip.wrapping_sub(SYSCALL_BYTES));
    // Without a call that it is in, the kernel has nothing of its own to begin again.
    Registers { rax, rip, orig_rax: u64::MAX, ..*registers }
}

/// Whether the result of a call is an error number (`MAX_ERRNO` of the kernel's `err.h`, and those that it keeps
/// for itself).
fn failed(result: u64) -> bool {
    (-4095..0).contains(&result.cast_signed())
}

fn has_wait_all(flags: u64) -> bool {
    flags & (libc::MSG_WAITALL as u64) != 0
}

/// Takes bytes that were moved off the front.
fn pass(pieces: &mut VecDeque<Piece>, mut bytes: u64) {
    while let Some(piece) = pieces.front_mut() {
        let here = piece.bytes.min(bytes);
        (piece.address, piece.bytes) = (piece.address.wrapping_add(here), piece.bytes - here);
        bytes -= here;
        if piece.bytes > 0 {
            return;
        }
        pieces.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Registers at the end of a call; the rest is nought.
    fn at_end(call: i64, arguments: [u64; 3], result: u64) -> Registers {
        let [rdi, rsi, rdx] = arguments;
        Registers { orig_rax: call.cast_unsigned(), rdi, rsi, rdx, rax: result, rip: 100, ..Registers::default() }
    }

    fn remedy(registers: &Registers) -> Remedy {
        let own = std::process::id();
        Held { root: &Root::default(), pid: own, tid: own, registers }.remedy()
    }

    #[test]
    fn user_space_and_whole_calls_are_left_alone() {
        let mut registers = at_end(-1, [0; 3], 7);
        assert_eq!(remedy(&registers), Remedy::None);
        registers = at_end(libc::SYS_epoll_wait, [0; 3], 3);
        assert_eq!(remedy(&registers), Remedy::None);
        registers = at_end(libc::SYS_connect, [0; 3], EINTR);
        assert_eq!(remedy(&registers), Remedy::None);
    }

    #[test]
    fn what_failed_for_us_is_made_again() {
        let registers = at_end(libc::SYS_epoll_wait, [5, 6, 7], EINTR);
        let Remedy::Again(again) = remedy(&registers) else { panic!("it is made again") };
        assert_eq!((again.rax, again.rip, again.rdi), (libc::SYS_epoll_wait.cast_unsigned(), 98, 5));
    }

    #[test]
    fn a_pipe_gets_the_rest() {
        let (reader, writer) = std::io::pipe().unwrap();
        let file = u64::try_from(writer.as_raw_fd()).unwrap();
        let Remedy::Finish(mut rest) = remedy(&at_end(libc::SYS_write, [file, 1000, 100], 30)) else {
            panic!("there is more to write")
        };
        let next = rest.next_call().unwrap();
        assert_eq!((next.rdi, next.rsi, next.rdx, next.rip), (file, 1030, 70, 98));
        assert!(rest.moved(20));
        assert!(!rest.moved((-11_i64).cast_unsigned()), "the pipe would have to be waited for");
        assert_eq!(rest.end().rax, 50);
        assert!(!rest.moved(50));
        assert_eq!((rest.end().rax, rest.next_call()), (100, None));
        drop(reader);
    }

    #[test]
    fn a_file_on_a_disk_does_not() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let number = u64::try_from(file.as_raw_fd()).unwrap();
        assert_eq!(remedy(&at_end(libc::SYS_write, [number, 1000, 100], 30)), Remedy::None);
    }

    #[test]
    fn a_vector_goes_on_within_its_piece() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let file = u64::try_from(writer.as_raw_fd()).unwrap();
        let vector: [u64; 6] = [1000, 10, 2000, 20, 3000, 30];
        let registers = at_end(libc::SYS_writev, [file, vector.as_ptr() as u64, 3], 15);
        let Remedy::Finish(mut rest) = remedy(&registers) else { panic!("there is more to write") };
        let next = rest.next_call().unwrap();
        assert_eq!((next.rax, next.rsi, next.rdx), (libc::SYS_write.cast_unsigned(), 2005, 15));
        assert!(rest.moved(15));
        assert_eq!(rest.next_call().unwrap().rsi, 3000);
        assert!(!rest.moved(30));
        assert_eq!(rest.end().rax, 60);
    }

    #[test]
    fn noughts_never_end() {
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let number = u64::try_from(zero.as_raw_fd()).unwrap();
        assert!(matches!(remedy(&at_end(libc::SYS_read, [number, 1000, 100], 30)), Remedy::Finish(_)));
        assert!(matches!(remedy(&at_end(libc::SYS_getrandom, [1000, 100, 0], 30)), Remedy::Finish(_)));
        assert_eq!(remedy(&at_end(libc::SYS_getrandom, [1000, 100, 0], 100)), Remedy::None);
    }
}
