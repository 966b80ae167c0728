//! What halted threads are about to do, interpreted here while they wait: for a known share of the program's time.
//!
//! Nothing is done to the thread or its memory, which is only read; not even pages come that it has not got: what is not
//! there ends it.

mod tally;

use std::collections::BTreeMap;

use tierloom_interpreter as interpreter;
use tierloom_interpreter::{Bytes, Machine};
use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::pagemap::PageMap;
use tierloom_linux::ptrace::{Registers, Tracer, read_bytes};
use tierloom_linux::root::Root;
use tierloom_model::units::{PAGE_BYTES, round_to_u64};
use tierloom_recording::Lookahead;

use crate::running::ThreadId;
use tally::Ahead;

/// Instructions that are looked at in one go: many loops end within them, and others wait for the thread meanwhile. Assumed.
const MOST_INSTRUCTIONS: u64 = 10_000;
/// A thread waits for no longer than this, ns. Assumed.
const LONGEST_NS: u64 = 500_000;
/// What halting takes of a thread's time besides, ns (measured on Linux 6.18 in a virtual machine).
const HALT_NS: u64 = 50_000;
/// How much the last one weighs in the mean cost of one. Assumed.
const WEIGHT: f64 = 0.1;

/// Looks ahead of threads.
#[derive(Debug)]
pub(super) struct LookAhead {
    root: Root,
    share: f64,
    /// What one takes of a thread's time, ns.
    cost_ns: f64,
    /// When the next one is due, where threads are halted for other reasons, too, ns.
    pub(super) next_ns: u64,
}

impl LookAhead {
    /// For so much of the time.
    pub(super) fn new(root: Root, share: f64) -> Self {
        Self { root, share, cost_ns: (HALT_NS + LONGEST_NS) as f64, next_ns: 0 }
    }

    /// Mean time from one to the next, ns.
    pub(super) fn between_ns(&self) -> u64 {
        round_to_u64(self.cost_ns / self.share)
    }

    /// What a thread that halted in its own code is about to do; `None` where nothing can be told.
    pub(super) fn look(&mut self, tracer: &Tracer, id: ThreadId, registers: &Registers) -> Option<Lookahead> {
        let begun_ns = monotonic_ns();
        let memory = Memory::of(&self.root, id.pid)?;
        let mut machine = Machine::new(held(tracer, id.tid, registers), memory);
        let goes_on = || monotonic_ns() < begun_ns + LONGEST_NS;
        let ahead = Ahead::of(&mut machine, MOST_INSTRUCTIONS, goes_on);
        let took_ns = HALT_NS + monotonic_ns().saturating_sub(begun_ns);
        self.cost_ns += WEIGHT * (took_ns as f64 - self.cost_ns);
        (ahead.instructions > 0).then_some(Lookahead {
            time_ns: begun_ns,
            pid: id.pid,
            tid: id.tid,
            address: registers.rip,
            stack_pointer: registers.rsp,
            instructions: ahead.instructions,
            counts: ahead.counts,
            branches: ahead.branches,
            touches: ahead.touches,
        })
    }
}

/// All that a thread holds.
fn held(tracer: &Tracer, tid: u32, r: &Registers) -> interpreter::Registers {
    let general =
        [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    let held = interpreter::Registers::new(general, r.eflags, r.rip, [r.fs_base, r.gs_base]);
    match tracer.vectors(tid) {
        Some(vectors) => held.with_vectors(&vectors.registers, vectors.masks),
        None => held,
    }
}

/// Memory of a process, as far as it has pages.
struct Memory {
    pid: u32,
    pages: PageMap,
    present: BTreeMap<u64, bool>,
}

impl Memory {
    fn of(root: &Root, pid: u32) -> Option<Self> {
        Some(Self { pid, pages: PageMap::open(root, pid)?, present: BTreeMap::new() })
    }
}

impl Bytes for Memory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let (page, pages) = (address / PAGE_BYTES, &self.pages);
        let is_present = *self.present.entry(page).or_insert_with(|| pages.is_present(page) == Some(true));
        is_present && read_bytes(self.pid, address, into) == into.len()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_has_no_page_is_not_read() {
        const BYTES: usize = 64 << 20;
        // Of zeroes, which the allocator takes fresh from the kernel: no page is there before it is written.
        let mut memory = vec![0_u8; BYTES];
        memory[0] = 7;
        let start = memory.as_ptr() as u64;
        let mut here = Memory::of(&Root::default(), std::process::id()).unwrap();
        let mut line = [0; 16];
        assert!(here.read(start, &mut line) && line[0] == 7);
        assert!(!here.read(start + BYTES as u64 / 2, &mut line));
        assert!(!here.read(0, &mut line));
    }

    /// Whether a process has a handler for `SIGUSR1`.
    fn catches(pid: u32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
        u64::from_str_radix(caught, 16).unwrap() & 1 << 9 != 0
    }

    #[test]
    fn a_thread_that_was_halted_goes_on_as_if_nobody_had_looked() {
        let mut child = Command::new("sh").args(["-c", "trap 'exit 7' USR1; while :; do :; done"]).spawn().unwrap();
        while !catches(child.id()) {
            std::thread::yield_now();
        }
        let (tracer, id) = (Tracer::new(), ThreadId { pid: child.id(), tid: child.id() });
        let mut ahead = LookAhead::new(Root::default(), 0.02);
        let mut told = 0;
        while told < 1_000 {
            tracer.hold(id.tid).unwrap();
            let halt = tracer.wait_for(id.tid);
            let registers = tracer.registers(id.tid).unwrap();
            told += ahead.look(&tracer, id, &registers).map_or(0, |seen| seen.instructions);
            tracer.let_go(halt);
        }
        Command::new("kill").args(["-USR1", &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn what_one_costs_decides_how_often_there_is_one() {
        let ahead = LookAhead::new(Root::default(), 0.02);
        assert_eq!(ahead.between_ns(), 50 * (HALT_NS + LONGEST_NS));
    }
}
