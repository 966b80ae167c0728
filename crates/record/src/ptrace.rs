//! Samples from outside, where the kernel gives none: threads that run are halted for some ten microseconds,
//! their registers are read, and they go on.
//!
//! Nothing of it is in the program: no signal, no handler, no timer, whatever it does with its own. A tracer
//! can be noticed in other ways, and each is kept away from:
//!
//! - A thread that waits is never halted: its wait could end early.
//! - A call that a halt cut short is made whole before the program sees it ([`tierloom_linux::ptrace::interrupted`]).
//! - Nobody stays attached, but for the milliseconds of a window ([`crate::bursts`]): between two ticks another tracer
//!   may come, programs with more rights may be started, job control and waiting parents see nothing. A thread that has
//!   another tracer is left to it.
//! - A process that ends is left alone, and so is a child on its way to another program (`running`).
//!
//! What remains: a thread that starts a set-user-id program in the microseconds between attaching and halting
//! starts it without those rights, unless the recorder has `CAP_SYS_PTRACE`.
//!
//! The other way that needs no rights is a signal of our own in the program. It costs 2.5 us a sample, a halt 30 to 50
//! (measured on Linux 6.18 in a virtual machine), and it cannot be hidden: programs reset all signals to default,
//! wait for any of them, run on stacks too small for another frame, and ask for their handlers by system calls that
//! nobody can stand between.
mod ahead;
mod taken;
mod windows;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tierloom_linux::LinuxError;
use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::cpus::run_soon;
use tierloom_linux::ptrace::interrupted::{Held, Remedy, Rest};
use tierloom_linux::ptrace::{Halt, Registers, Tracer, Why};
use tierloom_linux::root::Root;
use tierloom_linux::shared::{self, SharedFile};
use tierloom_wire::Region;

use crate::ahead::LookAhead;
use crate::bursts::{AGAIN_NS, Bursts, Processes};
use crate::running::{ThreadId, Threads};
use tierloom_recording::{InCopy, Lookahead, REGISTERS, Window};

pub(super) use taken::Taken;
use taken::sample;

/// Samples per second of CPU time unless asked otherwise: a halt takes some 50 us (measured on Linux 6.18 in a virtual
/// machine), so these are under 1 % of the run. A prime, as for other samples.
pub(super) const DEFAULT_HZ: u32 = 173;
/// The fastest: more would take more than a hundredth of the program's time.
pub(super) const MOST_HZ: u32 = 250;

/// The sampler: a thread of the recorder, which the kernel wants to be one and the same.
#[derive(Debug)]
pub(super) struct PtraceSampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the sampler's thread and the recorder's share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    samples: Mutex<Vec<Taken>>,
    windows: Mutex<Vec<Window>>,
    lookaheads: Mutex<Vec<Lookahead>>,
    processes: Mutex<Vec<u32>>,
    copied: Processes,
    refused: AtomicU64,
    held_ns: AtomicU64,
}

/// What to halt, and how often.
#[derive(Debug)]
pub(super) struct Target {
    /// The program: a child of this process.
    pub(super) pid: u32,
    /// Samples per second of CPU time; `None` where something else alone is wanted.
    pub(super) samples_hz: Option<u32>,
    /// Whether threads are let into copies of their code for a moment, to count what they run.
    pub(super) windows: bool,
    /// The part of their time for which is looked ahead of threads.
    pub(super) ahead: Option<f64>,
    /// Where `/proc` is.
    pub(super) root: Root,
    /// The file that the preload library in the program shares with us.
    pub(super) file: Arc<SharedFile>,
}

impl PtraceSampler {
    /// Begins to sample a program that is held before its start, which is tried first.
    ///
    /// # Errors
    /// The kernel does not let us trace it.
    pub(super) fn start(target: Target) -> Result<Self, LinuxError> {
        let shared = Arc::new(Shared::default());
        let (tell, told) = mpsc::channel();
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("ptrace".to_owned())
                .spawn(move || run(target, &shared, &tell))
                .map_err(|source| LinuxError::new("clone", "the sampler's thread", source))?
        };
        let sampler = Self { shared, thread: Some(thread) };
        answer(&told)?;
        Ok(sampler)
    }

    /// Another process of the program is there, if it is what it says.
    pub(super) fn add_process(&self, pid: u32) {
        locked(&self.shared.processes).push(pid);
    }

    /// The samples since this was last asked.
    pub(super) fn drain(&self) -> Vec<Taken> {
        std::mem::take(&mut *locked(&self.shared.samples))
    }

    /// The windows that have ended since this was last asked.
    pub(super) fn drain_windows(&self) -> Vec<Window> {
        std::mem::take(&mut *locked(&self.shared.windows))
    }

    /// What was seen ahead of threads since this was last asked.
    pub(super) fn drain_lookaheads(&self) -> Vec<Lookahead> {
        std::mem::take(&mut *locked(&self.shared.lookaheads))
    }

    /// Puts registers that were seen in a copy of the program's code to where the thread was in the program.
    pub(super) fn put_in_program(&self, pid: u32, registers: &mut [u64; REGISTERS]) -> InCopy {
        self.shared.copied.put_in_program(pid, registers)
    }

    /// For how long threads that had halted waited for us so far, ns.
    pub(super) fn held_ns(&self) -> u64 {
        self.shared.held_ns.load(Ordering::Relaxed)
    }

    /// How often a thread that ran could not be halted: another tracer had it, or it is not ours.
    pub(super) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

impl Drop for PtraceSampler {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has nothing to say here: the samples so far are kept.
            let _ended = thread.join();
        }
    }
}

fn locked<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(told: &Receiver<Result<(), LinuxError>>) -> Result<(), LinuxError> {
    told.recv().unwrap_or_else(|_| {
        Err(LinuxError::new("ptrace", "the sampler's thread", std::io::ErrorKind::BrokenPipe.into()))
    })
}

/// The sampler's thread.
fn run(target: Target, shared: &Shared, tell: &Sender<Result<(), LinuxError>>) {
    // A thread that halts waits for us, and whoever looks at it sees that. Where it is refused we come later.
    let _refused = run_soon();
    let mut session = Session::new(target, shared);
    let tried = session.try_out();
    let possible = tried.is_ok();
    // Whoever asked waits for it.
    let _told = tell.send(tried);
    while possible && !shared.stop.load(Ordering::Relaxed) {
        session.wait();
        session.tick();
    }
}

/// Everything that the sampler's thread has.
struct Session<'a> {
    tracer: Tracer,
    target: Target,
    /// From one sample to the next, ns.
    period_ns: Option<u64>,
    threads: Threads,
    shared: &'a Shared,
    /// Threads that were asked to halt, and when.
    asked: BTreeMap<u32, (ThreadId, u64)>,
    /// Threads that finish a call.
    finishing: BTreeMap<u32, (ThreadId, Box<Rest>)>,
    /// Windows, and whose is open.
    bursts: Option<Bursts>,
    ahead: Option<LookAhead>,
    /// When the next tick is due, ns.
    next_tick_ns: u64,
    /// When the next window is, and when all began.
    next_window_ns: u64,
    begun_ns: u64,
    jitter: u64,
}

impl<'a> Session<'a> {
    fn new(target: Target, shared: &'a Shared) -> Self {
        let period_ns = target.samples_hz.map(|hz| 1_000_000_000 / u64::from(hz.max(1)));
        let threads = Threads::new(target.root.clone(), target.pid);
        let ahead = target.ahead.map(|share| LookAhead::new(target.root.clone(), share));
        let bursts = target.windows.then(|| Bursts::new(target.root.clone(), shared.copied.clone()));
        Self {
            tracer: Tracer::new(),
            target,
            period_ns,
            threads,
            shared,
            asked: BTreeMap::new(),
            finishing: BTreeMap::new(),
            bursts,
            ahead,
            next_tick_ns: 0,
            next_window_ns: 0,
            begun_ns: monotonic_ns(),
            jitter: 1,
        }
    }

    /// The program waits for us in a `read`, which begins again.
    fn try_out(&mut self) -> Result<(), LinuxError> {
        self.tracer.hold(self.target.pid)?;
        if let Some(halt) = self.tracer.next_halt(true).filter(|halt| halt.why != Why::Ended) {
            self.tracer.let_go(halt);
        }
        Ok(())
    }

    /// Until the next tick, or until a thread that is attached wants to be answered. Nothing is looked for before it can
    /// be there: two threads of a core share it.
    fn wait(&mut self) {
        const MOMENT: Duration = Duration::from_micros(200);
        let until_tick = Duration::from_nanos(self.next_tick_ns.saturating_sub(monotonic_ns()));
        let until_tick = if self.period_ns.is_some() || self.inside().is_none() { until_tick } else { Duration::MAX };
        match self.bursts.as_ref().and_then(Bursts::idle_ns) {
            _ if !self.finishing.is_empty() => thread::park_timeout(MOMENT),
            Some(idle_ns) => self.tracer.wait_a_moment(until_tick.min(Duration::from_nanos(idle_ns))),
            None => thread::park_timeout(until_tick),
        }
    }

    /// Half of a time to one and a half of it, so that ticks do not fall into step with the program.
    fn jittered(&mut self, mean_ns: u64) -> u64 {
        // The generator of Knuth's MMIX: its high bits are the good ones.
        self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        mean_ns / 2 + (self.jitter >> 33) % mean_ns
    }

    fn tick(&mut self) {
        if let Some(bursts) = &mut self.bursts {
            bursts.look();
        }
        self.end_window();
        let now = monotonic_ns();
        if now < self.next_tick_ns {
            return self.settle();
        }
        let period_ns = self.period_ns.unwrap_or_else(|| self.between_windows_ns());
        self.next_tick_ns = now + self.jittered(period_ns);
        for pid in std::mem::take(&mut *locked(&self.shared.processes)) {
            if shared::is_mapped_by(&self.target.root, pid, self.target.file.name()) {
                self.threads.add(pid);
            }
        }
        let mut due = self.threads.due(self.period_ns.unwrap_or(AGAIN_NS));
        let inside = self.inside();
        due.retain(|id| !self.asked.contains_key(&id.tid) && !self.finishing.contains_key(&id.tid));
        due.retain(|id| Some(id.tid) != inside);
        if self.period_ns.is_none() {
            // One window is open at a time, and it is anybody's.
            due = if inside.is_some() || due.is_empty() { Vec::new() } else { vec![due[self.any_of(due.len())]] };
        }
        if !due.is_empty() {
            self.tell_holding(true);
            self.hold(&due);
        }
        self.settle();
    }

    /// Asks these threads to halt, all at once.
    fn hold(&mut self, due: &[ThreadId]) {
        for id in due {
            if self.is_leaving(id.pid) {
                continue;
            }
            match self.tracer.hold(id.tid) {
                Ok(()) => drop(self.asked.insert(id.tid, (*id, monotonic_ns()))),
                Err(error) => {
                    let not_ours = error.source.kind() == ErrorKind::PermissionDenied;
                    self.shared.refused.fetch_add(u64::from(not_ours), Ordering::Relaxed);
                    self.threads.leave_alone(*id);
                }
            }
        }
    }

    /// Answers every halt; waits a little for those that were just asked for. What is slow to come, in a long call
    /// of the kernel's, is looked for again at the next tick.
    fn settle(&mut self) {
        /// Halts come within some ten microseconds, and where a processor is wanted elsewhere within milliseconds.
        const PATIENCE_NS: u64 = 2_000_000;
        const NAP: Duration = Duration::from_micros(20);
        const POLLS_WITHOUT_NAP: u32 = 10;
        let mut polls = 0;
        loop {
            if let Some(halt) = self.tracer.next_halt(false) {
                let halted_ns = monotonic_ns();
                self.answer(halt);
                self.shared.held_ns.fetch_add(monotonic_ns() - halted_ns, Ordering::Relaxed);
                continue;
            }
            let now = monotonic_ns();
            if !self.asked.values().any(|(_, since_ns)| now.saturating_sub(*since_ns) < PATIENCE_NS) {
                break;
            }
            polls += 1;
            if polls < POLLS_WITHOUT_NAP { thread::yield_now() } else { thread::sleep(NAP) }
        }
        if let Some(bursts) = &mut self.bursts {
            locked(&self.shared.windows).extend(bursts.take_windows());
            bursts.copy_wanted();
        }
        if self.asked.is_empty() && self.finishing.is_empty() && self.inside().is_none() {
            self.tell_holding(false);
        }
    }

    /// One of so many.
    fn any_of(&self, count: usize) -> usize {
        usize::try_from(self.jitter >> 40).unwrap_or(0) % count.max(1)
    }

    fn answer(&mut self, halt: Halt) {
        if halt.why == Why::Ended {
            return self.forget(halt.tid);
        }
        let Ok(registers) = self.tracer.registers(halt.tid) else { return };
        if self.inside() == Some(halt.tid) {
            if !self.stays_in(halt, &registers) {
                self.take_out(halt, &registers);
            }
            return;
        }
        let may_enter = halt.why == Why::Interrupted && !self.finishing.contains_key(&halt.tid);
        let (id, rest) = match self.finishing.remove(&halt.tid) {
            Some((id, rest)) => (id, self.go_on(halt, &registers, rest)),
            None => self.first_halt(halt, &registers),
        };
        match rest {
            Some(rest) => drop(self.finishing.insert(halt.tid, (id, rest))),
            None if may_enter => {
                self.look_ahead(id, &registers);
                self.let_in(halt, id, &registers);
            }
            None => self.tracer.let_go(halt),
        }
    }

    fn forget(&mut self, tid: u32) {
        if let Some(bursts) = &mut self.bursts {
            bursts.forget(tid);
        }
        self.asked.remove(&tid);
        self.finishing.remove(&tid);
        if tid != self.target.pid {
            self.tracer.forget(tid);
        }
    }

    /// Takes the sample; returns whose it is, and what is left of the call that the thread is in.
    fn first_halt(&mut self, halt: Halt, registers: &Registers) -> (ThreadId, Option<Box<Rest>>) {
        let id = self.whose(halt.tid);
        if self.period_ns.is_some() {
            locked(&self.shared.samples).extend(sample(id, registers).map(Taken::of));
            self.shared.copied.note(id.pid, registers.rip);
        }
        let held = Held { root: &self.target.root, pid: id.pid, tid: id.tid, registers };
        // A thread with a signal or a stop on its way would have ended its call there without us.
        let remedy = if halt.why == Why::Interrupted { held.remedy() } else { Remedy::None };
        match remedy {
            Remedy::Finish(rest) => (id, self.begin(halt.tid, rest)),
            Remedy::Again(again) => {
                // It fails only where the thread was killed.
                let _killed = self.tracer.set_registers(halt.tid, &again);
                (id, None)
            }
            Remedy::None => (id, None),
        }
    }

    /// A thread that became another program has the id of its process from then on, and all others are gone.
    fn whose(&mut self, tid: u32) -> ThreadId {
        self.asked.remove(&tid).map_or_else(
            || {
                self.asked.retain(|_, (id, _)| id.pid != tid);
                ThreadId { pid: tid, tid }
            },
            |(id, _)| id,
        )
    }

    /// Has the thread make the next call of the rest.
    fn begin(&self, tid: u32, rest: Box<Rest>) -> Option<Box<Rest>> {
        let next = rest.next_call()?;
        let begun = self.tracer.set_registers(tid, &next).and_then(|()| self.tracer.run_to_call(tid));
        begun.ok().map(|()| rest)
    }

    /// The next halt of a thread that finishes a call: at its entry, at its end, or because of something else, which
    /// ends it as it would have ended without us.
    fn go_on(&self, halt: Halt, registers: &Registers, mut rest: Box<Rest>) -> Option<Box<Rest>> {
        if halt.why == Why::Call {
            if rest.is_entered(registers) {
                return self.tracer.run_to_call(halt.tid).ok().map(|()| rest);
            }
            if rest.moved(registers.rax) {
                return self.begin(halt.tid, rest);
            }
        }
        let _killed = self.tracer.set_registers(halt.tid, &rest.end());
        None
    }

    fn tell_holding(&self, holds: bool) {
        if let Some(region) = Region::open(self.target.file.words()) {
            region.hold(holds);
            if !holds {
                region.forget_left(|pid| !self.threads.has(pid));
            }
        }
    }

    fn is_leaving(&self, pid: u32) -> bool {
        Region::open(self.target.file.words()).is_some_and(|region| region.is_leaving(pid))
    }
}

impl Drop for Session<'_> {
    /// Whoever is still held is let go by the kernel, with this thread. Who waits in a call that it finishes ends it
    /// here, with the count of what it has moved.
    fn drop(&mut self) {
        let now = monotonic_ns();
        if let Some(id) = self.bursts.as_ref().and_then(Bursts::inside) {
            let _ended = self.tracer.interrupt(id.tid);
            self.asked.insert(id.tid, (id, now));
        }
        for (tid, (id, rest)) in std::mem::take(&mut self.finishing) {
            let _ended = self.tracer.interrupt(tid);
            self.asked.insert(tid, (id, now));
            self.finishing.insert(tid, (id, rest));
        }
        self.settle();
        self.tell_holding(false);
    }
}

/// Registers of a thread that is at the entry of a call, before the instruction that makes it.
fn before_call(at_entry: &Registers) -> Registers {
    const INSTRUCTION_BYTES: u64 = 2;
    Registers { rax: at_entry.orig_rax, rip: at_entry.rip - INSTRUCTION_BYTES, ..*at_entry }
}
