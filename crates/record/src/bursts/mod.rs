//! Windows: stretches of a thread's time in which every block that it runs is counted.
//!
//! At a tick a thread that computes is let into copies of its code (`tierloom_bursts`), which write down for a moment
//! where its operands are, then into others, which count, and taken out again some milliseconds later, or when it comes
//! to a system call. It is attached to us for so long, so whatever wants to reach it, a signal or a stop, comes to us
//! first, and finds it where it would be without us.

mod ground;
mod permission;
mod process;
mod purpose;
mod room;
mod schedule;
mod stay;
mod text;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tierloom_linux::clock::{counter_and_monotonic, is_by_counter, monotonic_ns};
use tierloom_linux::maps::{MappedRange, mapped_ranges};
use tierloom_linux::perf::ThreadClock;
use tierloom_linux::ptrace::brief::returns_by_itself;
use tierloom_linux::ptrace::interrupted::call_of;
use tierloom_linux::ptrace::{Halt, Registers, Tracer};
use tierloom_linux::root::Root;
use tierloom_linux::threads::{WatchedThread, is_gone};
use tierloom_recording::{InCopy, Outcome, REGISTERS, Window, register};

use crate::running::ThreadId;

use permission::may_enter;
pub(crate) use process::NO_CALL;
use process::{Process, Wanted};
use purpose::{PURPOSES, Purpose};
pub(crate) use schedule::{AGAIN_NS, between_windows_ns};
use schedule::{WINDOW_NS, window_ns};
use stay::{Open, Passing, Stay, WARM_NS, Warm, measured, stamp_ns, window};

/// Processes with copies, which samples are read by, too: a sample may show a thread in a copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Processes(Arc<Mutex<BTreeMap<u32, Option<Process>>>>);

impl Processes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Option<Process>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts registers of a thread that was seen in a copy to where it was in the program. What a copy had put aside
    /// then is not known any more, and is 0. Says whether it was one.
    pub(crate) fn put_in_program(&self, pid: u32, registers: &mut [u64; REGISTERS]) -> InCopy {
        let mut processes = self.lock();
        let Some(Some(process)) = processes.get_mut(&pid) else { return InCopy::No };
        let copy = process.put_in_program(registers);
        process.note(registers[register::IP]);
        copy
    }

    /// A thread was seen there.
    pub(crate) fn note(&self, pid: u32, address: u64) {
        if let Some(Some(process)) = self.lock().get_mut(&pid) {
            process.note(address);
        }
    }
}

/// Windows of a program.
#[derive(Debug)]
pub(crate) struct Bursts {
    root: Root,
    processes: Processes,
    open: Option<Open>,
    windows: Vec<Window>,
    /// What is to be copied when no thread waits for it, by process.
    wanted: Vec<(u32, Purpose, Wanted)>,
    /// The last window wrote addresses down, so the next one only counts: they need fewer.
    counts_next: bool,
    /// When all began, and how long threads have waited for copies, ns.
    begun_ns: u64,
    copying_ns: u64,
    /// What code has taken us in which nobody was seen yet, ns.
    ahead_ns: u64,
    /// The processor's counter and the time, when all began; `None` where the counter is not to be trusted.
    origin: Option<(u64, u64)>,
}

impl Bursts {
    pub(crate) fn new(root: Root, processes: Processes) -> Self {
        let origin = is_by_counter(&root).then(counter_and_monotonic);
        Self {
            root,
            processes,
            open: None,
            windows: Vec::new(),
            wanted: Vec::new(),
            counts_next: false,
            begun_ns: monotonic_ns(),
            copying_ns: 0,
            ahead_ns: 0,
            origin,
        }
    }

    /// Whose window is open.
    pub(crate) fn inside(&self) -> Option<ThreadId> {
        self.open.as_ref().map(|open| open.id)
    }

    /// Time until the thread's stay is to end, ns.
    pub(crate) fn remaining_ns(&self) -> Option<u64> {
        let stay = &self.open.as_ref()?.stay;
        Some(stay.end_ns().saturating_sub(monotonic_ns()))
    }

    /// Time until something is to be done about the open window, ns.
    pub(crate) fn idle_ns(&self) -> Option<u64> {
        let stay = &self.open.as_ref()?.stay;
        let due_ns = if stay.is_cold() { stay.since_ns + WARM_NS } else { stay.end_ns() };
        Some(due_ns.saturating_sub(monotonic_ns()))
    }

    /// The windows that have ended since this was last asked.
    pub(crate) fn take_windows(&mut self) -> Vec<Window> {
        std::mem::take(&mut self.windows)
    }

    /// Lets a halted thread into copies, if that can be done: its registers for it. It must be let run to its next
    /// system call then.
    ///
    /// # Errors
    /// Something else happened to the thread meanwhile: this halt, to be answered.
    pub(crate) fn let_in(
        &mut self,
        tracer: &Tracer,
        id: ThreadId,
        registers: &Registers,
        stands_for_ns: u64,
    ) -> Result<Option<Registers>, Halt> {
        if self.open.is_some() {
            return Ok(None);
        }
        let in_call = call_of(registers).is_some();
        let entered = if in_call { None } else { self.try_in(tracer, id, registers, stands_for_ns)? };
        if entered.is_none() {
            let outcome = if in_call { Outcome::InCall } else { Outcome::NoCopy };
            self.windows.push(Window { outcome, stands_for_ns, ..window(id, registers.rip, monotonic_ns()) });
        }
        Ok(entered)
    }

    fn try_in(
        &mut self,
        tracer: &Tracer,
        id: ThreadId,
        registers: &Registers,
        stands_for_ns: u64,
    ) -> Result<Option<Registers>, Halt> {
        let may_wait = self.may_wait();
        let root = &self.root;
        let maps = mapped_ranges(root, id.pid);
        let mut processes = self.processes.lock();
        let process = current(&mut processes, root, id.pid, &maps).filter(|process| {
            process.has_code(registers.rip) && may_enter(tracer, id.pid, id.tid, registers, process.text())
        });
        let Some(process) = process else { return Ok(None) };
        process.prepare(root, tracer, id.tid, registers)?;
        let Some(thread) = WatchedThread::open(root, id.pid, id.tid) else { return Ok(None) };
        let Some(cpu_ns) = thread.cpu_ns() else { return Ok(None) };
        let purposes = if std::mem::take(&mut self.counts_next) { &[Purpose::Count][..] } else { &PURPOSES };
        for &purpose in purposes {
            if !process.has_copy(purpose, registers.rip) {
                let wanted = Wanted::Place(registers.rip);
                if !may_wait {
                    self.wanted.push((id.pid, purpose, wanted));
                    continue;
                }
                self.copying_ns += process.copy(purpose, &wanted);
            }
            let Some(inside) = process.let_in(purpose, registers) else { continue };
            let stay = Stay::new(purpose, registers.rip, self.window_ns(), cpu_ns);
            let begun_ns = stay.since_ns;
            let (stack_pointer, touches) = (registers.rsp, Vec::new());
            self.open = Some(Open { id, begun_ns, stack_pointer, stands_for_ns, touches, thread, stay });
            return Ok(Some(inside));
        }
        Ok(None)
    }

    /// Addresses were written down for long enough: the halted thread goes on to where it is counted. Its registers for
    /// that; `None` where that is not so, or cannot be.
    pub(crate) fn go_on_to_count(&mut self, registers: &Registers) -> Option<Registers> {
        let (may_wait, window_ns) = (self.may_wait(), self.window_ns());
        let open = self.open.as_mut().filter(|open| open.stay.purpose == Purpose::Log)?;
        if open.stay.passing != Passing::Nothing {
            return None;
        }
        let mut processes = self.processes.lock();
        let process = processes.get_mut(&open.id.pid)?.as_mut()?;
        let program = process.in_program(registers)?;
        if !process.has_copy(Purpose::Count, program.rip) && may_wait {
            self.copying_ns += process.copy(Purpose::Count, &Wanted::Place(program.rip));
        }
        let lacked = Process::lacked(&process.parted(Purpose::Log, registers)?);
        let (touches, cpu_ns) = (process.touches(), open.thread.cpu_ns()?);
        let inside = process.let_in(Purpose::Count, &program)?;
        self.wanted.push((open.id.pid, Purpose::Log, lacked));
        open.touches = touches;
        self.counts_next = true;
        open.stay = Stay::new(Purpose::Count, program.rip, window_ns, cpu_ns);
        Some(inside)
    }

    /// Counting begins, if it is time and has not begun: the thread runs on meanwhile.
    pub(crate) fn look(&mut self) {
        let Some(open) = self.open.as_mut().filter(|open| open.stay.is_cold()) else { return };
        let stay = &mut open.stay;
        if monotonic_ns() < stay.since_ns + WARM_NS {
            return;
        }
        let processes = self.processes.lock();
        let Some(process) = processes.get(&open.id.pid).and_then(Option::as_ref) else { return };
        if !stay.is_back(process, self.origin) {
            return;
        }
        let before = monotonic_ns();
        let counters = process.counters();
        let since_ns = u64::midpoint(before, monotonic_ns());
        let clock = ThreadClock::start(open.id.tid).ok();
        stay.warm = counters.map(|counters| Warm { since_ns, waited_ns: stay.waited_ns, counters, clock });
    }

    /// Ends the open window of a halted thread; returns the registers that it has in the program, `None` where they are
    /// not to be had, because it was killed. `is_fault`: it halted for a fault, which may be ours.
    pub(crate) fn take_out(&mut self, registers: &Registers, is_fault: bool) -> Option<Registers> {
        let halted_ns = monotonic_ns();
        let mut open = self.open.take()?;
        let mut processes = self.processes.lock();
        let known = processes.get_mut(&open.id.pid)?;
        let process = known.as_mut()?;
        let purpose = open.stay.purpose;
        open.stay.is_back(process, self.origin);
        let program = process.in_program(registers)?;
        if purpose == Purpose::Log {
            open.touches = process.touches();
            self.counts_next = true;
        }
        if let Some(parted) = process.parted(purpose, registers) {
            self.windows.extend(measured(&mut open, process, &parted, halted_ns, self.origin));
            self.wanted.push((open.id.pid, purpose, Process::lacked(&parted)));
            // It may not read the clock (`PR_SET_TSC` of `prctl(2)`): so it did not get in, and never will.
            known.take_if(|_| is_fault && parted.stamps.0 == 0);
        }
        Some(program)
    }

    /// A thread that leaves because something was not copied goes on in copies, if that is now: its registers for it.
    pub(crate) fn let_back(&mut self, registers: &Registers) -> Option<Registers> {
        /// Each takes some hundred microseconds of a program's time, and so much more before all is copied. Assumed.
        const MOST_WAITS: u32 = 24;
        let halted_ns = monotonic_ns();
        let may_wait = self.may_wait();
        let Open { id, stay, .. } = self.open.as_mut()?;
        let is_over = stay.waits >= MOST_WAITS || halted_ns > stay.since_ns + WINDOW_NS.end || !may_wait;
        let mut processes = self.processes.lock();
        let process = processes.get_mut(&id.pid)?.as_mut()?;
        if is_over || !process.says_farewell(registers) {
            return None;
        }
        let parted = process.parted(stay.purpose, registers)?;
        let left_ns = stamp_ns(self.origin, parted.stamps.1)?;
        stay.is_back(process, self.origin);
        let lacked = Process::lacked(&parted);
        self.copying_ns += process.copy(stay.purpose, &lacked);
        // What cannot be copied, the kernel's own page of code say, would be lacking again.
        if !process.has_all(stay.purpose, &lacked) {
            return None;
        }
        let program = process.in_program(registers)?;
        let inside = process.let_back(stay.purpose, &program)?;
        stay.waits += 1;
        stay.is_at_exit = true;
        stay.left_ns = Some(left_ns);
        if stay.purpose == Purpose::Log {
            // Nobody asks how long this took.
            stay.since_ns = monotonic_ns();
        }
        Some(Registers { orig_rax: NO_CALL, ..inside })
    }

    fn window_ns(&self) -> u64 {
        window_ns(monotonic_ns().saturating_sub(self.begun_ns))
    }

    /// A thread that leaves for a call that returns by itself makes it: its registers for it.
    pub(crate) fn pass(&mut self, registers: &Registers) -> Option<Registers> {
        /// Each takes some ten microseconds of a program's time. Assumed.
        const MOST_CALLS: u32 = 200;
        let Open { id, stay, .. } = self.open.as_mut()?;
        let mut processes = self.processes.lock();
        let process = processes.get_mut(&id.pid)?.as_mut()?;
        if stay.calls >= MOST_CALLS || !process.says_farewell(registers) {
            return None;
        }
        let program = process.in_program(registers)?;
        if !process.is_call(program.rip) || !returns_by_itself(&self.root, id.pid, &program) {
            return None;
        }
        let left_ns = stamp_ns(self.origin, process.parted(stay.purpose, registers)?.stamps.1)?;
        stay.is_back(process, self.origin);
        stay.calls += 1;
        stay.is_at_exit = true;
        stay.passing = Passing::Ahead(program.rax.cast_signed());
        stay.left_ns = Some(left_ns);
        Some(Registers { orig_rax: NO_CALL, ..program })
    }

    /// A thread that makes such a call has come to its entry: whether that is so.
    pub(crate) fn enters(&mut self, registers: &Registers) -> bool {
        let Some(Open { stay, .. }) = &mut self.open else { return false };
        let is_it = call_of(registers).is_some_and(|call| stay.passing == Passing::Ahead(call));
        if is_it {
            stay.passing = Passing::Inside;
        }
        is_it
    }

    /// Whether the thread is in such a call.
    pub(crate) fn is_inside_call(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.stay.passing == Passing::Inside)
    }

    /// A thread has come to the end of such a call, and goes on in copies: its registers for it.
    pub(crate) fn come_back(&mut self, registers: &Registers) -> Option<Registers> {
        /// Results by which the kernel begins a call again (`include/linux/errno.h`).
        const AGAIN: RangeInclusive<i64> = -516..=-512;
        let may_wait = self.may_wait();
        let Open { id, stay, .. } = self.open.as_mut().filter(|_| !AGAIN.contains(&registers.rax.cast_signed()))?;
        let mut processes = self.processes.lock();
        let process = processes.get_mut(&id.pid)?.as_mut()?;
        if !process.has_copy(stay.purpose, registers.rip) && may_wait {
            self.copying_ns += process.copy(stay.purpose, &Wanted::Targets(vec![registers.rip]));
        }
        let inside = process.let_back(stay.purpose, registers)?;
        stay.passing = Passing::Nothing;
        Some(Registers { orig_rax: NO_CALL, ..inside })
    }

    /// Whether a thread may wait while something is copied: for a fiftieth of the time, and a little at first, so that
    /// short programs are seen, too. Assumed.
    fn may_wait(&self) -> bool {
        const AT_FIRST_NS: u64 = 60_000_000;
        const ONE_IN: u64 = 50;
        self.copying_ns < AT_FIRST_NS + monotonic_ns().saturating_sub(self.begun_ns) / ONE_IN
    }

    /// Copies what was found lacking, and what samples show, while all threads run.
    pub(crate) fn copy_wanted(&mut self) {
        /// Who has a sample waits for it, and so does the next window. Assumed.
        const MOST_NS: u64 = 3_000_000;
        /// What nobody was seen in yet takes so much of our own time at first, and this part later. Assumed.
        const AHEAD_AT_FIRST_NS: u64 = 100_000_000;
        const AHEAD_ONE_IN: u64 = 20;
        if self.open.is_some() {
            return;
        }
        let until_ns = monotonic_ns() + MOST_NS;
        let mut processes = self.processes.lock();
        for (pid, purpose, wanted) in std::mem::take(&mut self.wanted) {
            if let Some(Some(process)) = processes.get_mut(&pid) {
                process.copy(purpose, &wanted);
            }
        }
        processes.values_mut().flatten().for_each(|process| process.copy_noted(until_ns));
        if self.ahead_ns < AHEAD_AT_FIRST_NS + monotonic_ns().saturating_sub(self.begun_ns) / AHEAD_ONE_IN {
            self.ahead_ns += processes.values_mut().flatten().map(|process| process.copy_called(until_ns)).sum::<u64>();
        }
    }

    /// Whether the thread of the window, which has halted at a call, is at the end of the one that it did not make when it
    /// was let go on; it is not any more.
    pub(crate) fn passes_exit(&mut self) -> bool {
        self.open.as_mut().is_some_and(|open| std::mem::take(&mut open.stay.is_at_exit))
    }

    /// Whether the thread of the window, if it has halted at a call, is at its end.
    pub(crate) fn is_at_end_of_call(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.stay.is_at_exit) || self.is_inside_call()
    }

    /// The thread of the open window is gone.
    pub(crate) fn forget(&mut self, tid: u32) {
        self.open.take_if(|open| open.id.tid == tid);
    }
}

/// A process as it is now; `None` where it is to be left alone, as one that shares its memory with another is, whose
/// copies it would change.
fn current<'a>(
    processes: &'a mut BTreeMap<u32, Option<Process>>,
    root: &Root,
    pid: u32,
    maps: &[MappedRange],
) -> Option<&'a mut Process> {
    let has_this_memory = |process: &Process| process.shares_memory_with(maps);
    if processes.iter().any(|(other, process)| *other != pid && process.as_ref().is_some_and(has_this_memory)) {
        return None;
    }
    if !processes.contains_key(&pid) {
        processes.retain(|other, _| !is_gone(*other, *other));
        processes.insert(pid, Process::open(root, pid, maps));
    }
    let known = processes.get_mut(&pid)?;
    if let Some(stale) = known.take_if(|process| !process.is_current(maps)) {
        *known = stale.renewed(root, maps);
    }
    known.as_mut()
}
