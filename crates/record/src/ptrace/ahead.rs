//! What the session does about looking ahead of threads that it halted.

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::ptrace::interrupted::call_of;
use tierloom_linux::ptrace::{Registers, USER_CODE_64};

use super::{Session, locked};
use crate::running::ThreadId;

impl Session<'_> {
    /// Looks ahead of a halted thread, if it is time: not of one that is in a call, nor in 32-bit code.
    pub(super) fn look_ahead(&mut self, id: ThreadId, registers: &Registers) {
        let is_in_code = call_of(registers).is_none() && registers.cs == USER_CODE_64;
        if !is_in_code || self.is_leaving(id.pid) {
            return;
        }
        let now_ns = monotonic_ns();
        let is_only_reason = self.period_ns.is_none() && self.bursts.is_none();
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| is_only_reason || now_ns >= ahead.next_ns) else { return };
        let found = ahead.look(&self.tracer, id, registers);
        let between_ns = ahead.between_ns();
        locked(&self.shared.lookaheads).extend(found);
        let next_ns = now_ns + self.jittered(between_ns);
        if let Some(ahead) = &mut self.ahead {
            ahead.next_ns = next_ns;
        }
    }
}
