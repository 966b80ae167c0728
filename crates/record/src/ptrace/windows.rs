//! What the session does about windows: threads are let in, let back, and taken out.

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::ptrace::{Halt, Registers, Why};

use super::{Session, before_call};
use crate::bursts::{AGAIN_NS, Bursts, NO_CALL, between_windows_ns};
use crate::running::ThreadId;

impl Session<'_> {
    /// Mean time between windows, or between other reasons to halt a thread, ns.
    pub(super) fn between_windows_ns(&self) -> u64 {
        if let Some(ahead) = self.ahead.as_ref().filter(|_| self.bursts.is_none()) {
            return ahead.between_ns();
        }
        between_windows_ns(monotonic_ns().saturating_sub(self.begun_ns))
    }

    /// The thread whose window is open.
    pub(super) fn inside(&self) -> Option<u32> {
        Some(self.bursts.as_ref()?.inside()?.tid)
    }

    /// Asks the thread of a window that has lasted long enough to halt.
    pub(super) fn end_window(&mut self) {
        let Some(bursts) = &self.bursts else { return };
        let Some(id) = bursts.inside().filter(|id| !self.asked.contains_key(&id.tid)) else { return };
        if bursts.remaining_ns() != Some(0) && !self.is_leaving(id.pid) {
            return;
        }
        match self.tracer.interrupt(id.tid) {
            Ok(()) => drop(self.asked.insert(id.tid, (id, monotonic_ns()))),
            // Its id is that of another thread now, which became another program.
            Err(_) => self.bursts.iter_mut().for_each(|bursts| bursts.forget(id.tid)),
        }
    }

    /// Lets a halted thread into a window, or go: one whose window was just ended because its process wants to be left
    /// alone, too.
    pub(super) fn let_in(&mut self, halt: Halt, id: ThreadId, registers: &Registers) {
        let is_leaving = self.is_leaving(id.pid);
        let stands_for_ns = self.between_windows_ns();
        let now_ns = monotonic_ns();
        let is_due = !is_leaving && (self.period_ns.is_none() || now_ns >= self.next_window_ns);
        let Some(bursts) = self.bursts.as_mut().filter(|_| is_due) else { return self.tracer.let_go(halt) };
        let entered = bursts.let_in(&self.tracer, id, registers, stands_for_ns);
        self.next_window_ns = now_ns + self.jittered(stands_for_ns);
        if matches!(entered, Ok(None)) {
            let again_ns = self.jittered(AGAIN_NS.min(stands_for_ns));
            self.next_tick_ns = self.next_tick_ns.min(now_ns + again_ns);
            self.next_window_ns = self.next_window_ns.min(now_ns + again_ns);
        }
        let Some(bursts) = &mut self.bursts else { return };
        match entered {
            Ok(None) => self.tracer.let_go(halt),
            Ok(Some(inside)) => {
                let run = self.tracer.set_registers(id.tid, &inside).and_then(|()| self.tracer.run_to_call(id.tid));
                if run.is_err() {
                    bursts.forget(id.tid);
                }
            }
            Err(halt) if halt.why == Why::Ended => self.forget(halt.tid),
            Err(halt) => self.tracer.let_go(halt),
        }
    }

    /// Whether a thread that has come to a call stays in its window: what it lacked is copied now. One that was asked to
    /// halt does not: at any stop the kernel forgets that it was asked (`ptrace_stop` of `kernel/signal.c`).
    pub(super) fn stays_in(&mut self, halt: Halt, registers: &Registers) -> bool {
        if halt.why == Why::Interrupted {
            return self.goes_on_to_count(halt.tid, registers);
        }
        if halt.why != Why::Call {
            return false;
        }
        let is_leaving = self.bursts.as_ref().and_then(Bursts::inside).is_some_and(|id| self.is_leaving(id.pid));
        if is_leaving || self.asked.contains_key(&halt.tid) {
            return false;
        }
        let Some(bursts) = &mut self.bursts else { return false };
        if bursts.passes_exit() || bursts.enters(registers) {
            return self.tracer.run_to_call(halt.tid).is_ok();
        }
        let next = if bursts.is_inside_call() {
            bursts.come_back(registers)
        } else {
            bursts.let_back(registers).or_else(|| bursts.pass(registers))
        };
        let Some(next) = next else { return false };
        self.tracer.set_registers(halt.tid, &next).and_then(|()| self.tracer.run_to_call(halt.tid)).is_ok()
    }

    /// Whether a thread that we halted stays because it is to be counted now.
    fn goes_on_to_count(&mut self, tid: u32, registers: &Registers) -> bool {
        let is_leaving = self.asked.get(&tid).is_none_or(|(id, _)| self.is_leaving(id.pid));
        let Some(bursts) = self.bursts.as_mut().filter(|_| !is_leaving) else { return false };
        let Some(inside) = bursts.go_on_to_count(registers) else { return false };
        self.asked.remove(&tid);
        self.tracer.set_registers(tid, &inside).and_then(|()| self.tracer.run_to_call(tid)).is_ok()
    }

    /// Whatever halted the thread of a window ends it: what comes next finds the thread in its program.
    pub(super) fn take_out(&mut self, halt: Halt, registers: &Registers) {
        let asked = self.asked.remove(&halt.tid);
        let is_fault = self.tracer.is_fault(halt);
        let is_at_end = self.bursts.as_ref().is_some_and(Bursts::is_at_end_of_call);
        let program = self.bursts.as_mut().and_then(|bursts| bursts.take_out(registers, is_fault));
        let moved = program.filter(|program| program != registers);
        if let Some(program) = moved {
            // It fails only where the thread was killed.
            let _killed = self.tracer.set_registers(halt.tid, &program);
            if is_fault {
                // If it is the program's own it happens again there, and is told with the program's address.
                return self.tracer.let_go_on(halt.tid);
            }
        }
        if let (Some(asked), Why::Call, None) = (asked, halt.why, moved)
            && !is_at_end
            && self.step_back(halt.tid, registers)
        {
            self.asked.insert(halt.tid, asked);
            return;
        }
        self.tracer.let_go(halt);
    }

    /// A thread that we asked to halt is about to make a call, which would be cut short by our asking. It halts before
    /// the call instead, in its own code.
    pub(super) fn step_back(&self, tid: u32, at_entry: &Registers) -> bool {
        let before = before_call(at_entry);
        let skipped = Registers { orig_rax: NO_CALL, ..before };
        self.tracer.set_registers(tid, &skipped).and_then(|()| self.tracer.go_on(tid)).is_ok()
    }
}
