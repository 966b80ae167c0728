//! A window that is open: the thread's stay in copies, and what it comes to.

use tierloom_linux::clock::{counter_and_monotonic, monotonic_ns};
use tierloom_linux::perf::ThreadClock;
use tierloom_linux::threads::WatchedThread;
use tierloom_model::units::round_to_u64;
use tierloom_recording::{BlockCount, Outcome, Touch, WarmUp, Window};

use super::process::{Counters, Parted, Process};
use super::purpose::Purpose;
use super::schedule::LOG_NS;
use crate::running::ThreadId;

/// How long after a thread was let in counting begins, ns: by then caches are as warm as they were, or nearly. Where
/// time shows what is counted, of which a halt costs a share, an eighth of a window is given up. Assumed.
pub(super) const WARM_NS: u64 = 1_000_000;
/// A window in which the thread was off its processor for more than this share of the time is no measure of its pace.
const MOST_OFF: f64 = 0.02;

/// A window that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: ThreadId,
    pub(super) begun_ns: u64,
    /// Its stack pointer then.
    pub(super) stack_pointer: u64,
    pub(super) stands_for_ns: u64,
    /// Where its operands were, if that was written down and is over.
    pub(super) touches: Vec<Touch>,
    pub(super) thread: WatchedThread,
    pub(super) stay: Stay,
}

/// A stay in copies for one purpose.
#[derive(Debug)]
pub(super) struct Stay {
    pub(super) purpose: Purpose,
    pub(super) address: u64,
    pub(super) since_ns: u64,
    pub(super) length_ns: u64,
    /// Time in which it waited for us meanwhile, ns, and how often.
    pub(super) waited_ns: u64,
    pub(super) waits: u32,
    /// Calls that it made meanwhile.
    pub(super) calls: u32,
    /// When it left last, as long as nobody has looked when it came back, ns.
    pub(super) left_ns: Option<u64>,
    /// It is at the end of a call that it did not make.
    pub(super) is_at_exit: bool,
    /// A call of its own that it makes, and comes back.
    pub(super) passing: Passing,
    pub(super) cpu_ns: u64,
    /// When counting began, and what the counters held then.
    pub(super) warm: Option<Warm>,
}

/// A thread that leaves copies for a call after which it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// It does not.
    Nothing,
    /// It is on its way to this one.
    Ahead(i64),
    /// It is in it.
    Inside,
}

impl Stay {
    pub(super) fn new(purpose: Purpose, address: u64, window_ns: u64, cpu_ns: u64) -> Self {
        let length_ns = if purpose == Purpose::Log { LOG_NS } else { window_ns };
        Self {
            length_ns,
            purpose,
            address,
            since_ns: monotonic_ns(),
            waited_ns: 0,
            waits: 0,
            calls: 0,
            left_ns: None,
            is_at_exit: false,
            passing: Passing::Nothing,
            cpu_ns,
            warm: None,
        }
    }

    /// When it is to end, ns.
    pub(super) fn end_ns(&self) -> u64 {
        self.since_ns + self.length_ns
    }

    /// Whether it is to be looked at when counting begins.
    pub(super) fn is_cold(&self) -> bool {
        self.purpose == Purpose::Count && self.warm.is_none()
    }

    /// Whether the thread is back from where it waited for us; books how long it did.
    pub(super) fn is_back(&mut self, process: &Process, origin: Option<(u64, u64)>) -> bool {
        let Some(left_ns) = self.left_ns else { return true };
        if self.passing != Passing::Nothing {
            return false;
        }
        let Some(back_ns) = process.came_in(self.purpose).and_then(|stamp| stamp_ns(origin, stamp)) else {
            return false;
        };
        self.waited_ns += back_ns.saturating_sub(left_ns);
        self.left_ns = None;
        true
    }
}

/// The moment at which counting began.
#[derive(Debug)]
pub(super) struct Warm {
    pub(super) since_ns: u64,
    /// What the thread had waited for us until then, ns.
    pub(super) waited_ns: u64,
    pub(super) counters: Counters,
    /// The thread's CPU time since then, where the kernel tells.
    pub(super) clock: Option<ThreadClock>,
}

/// A window that ends now.
pub(super) fn measured(
    open: &mut Open,
    process: &Process,
    parted: &Parted,
    halted_ns: u64,
    origin: Option<(u64, u64)>,
) -> Option<Window> {
    let stay = &open.stay;
    let outcome = if parted.left.is_some() { Outcome::Cut } else { Outcome::Whole };
    let (duration_ns, warm_up, counts) = match stay.purpose {
        Purpose::Log => (0, WarmUp::Counted, Vec::new()),
        Purpose::Count => {
            let cpu_ns = open.thread.cpu_ns().unwrap_or(0).saturating_sub(stay.cpu_ns);
            // One that left by itself has waited for us since.
            let end_ns = if parted.left.is_some() { stamp_ns(origin, parted.stamps.1) } else { Some(halted_ns) };
            counted(stay, process, end_ns.unwrap_or(0), (cpu_ns, outcome))?
        }
    };
    let touches = std::mem::take(&mut open.touches);
    let Open { id, stands_for_ns, stack_pointer, begun_ns, stay, .. } = &*open;
    let begun = window(*id, stay.address, *begun_ns);
    let (stands_for_ns, stack_pointer) = (*stands_for_ns, *stack_pointer);
    Some(Window { stands_for_ns, duration_ns, warm_up, outcome, counts, stack_pointer, touches, ..begun })
}

/// How long a stay was, as far as it tells the pace, ns, without its first millisecond or with it, and what was run then;
/// `None` where nobody can look.
fn counted(
    stay: &Stay,
    process: &Process,
    end_ns: u64,
    (cpu_ns, outcome): (u64, Outcome),
) -> Option<(u64, WarmUp, Vec<BlockCount>)> {
    let after = process.counters()?;
    let lasted_ns = end_ns.saturating_sub(stay.since_ns + stay.waited_ns);
    let was_on = lasted_ns.saturating_sub(cpu_ns) as f64 <= MOST_OFF * lasted_ns as f64;
    let own_ns = stay.warm.as_ref().filter(|_| !was_on).and_then(|warm| warm.clock.as_ref()?.ns());
    // Between two moments time is CPU time only where the thread was on its processor throughout.
    let from_beginning = |duration_ns| (process.beginning(), duration_ns, WarmUp::Counted);
    let (before, duration_ns, warm_up) = match (&stay.warm, own_ns) {
        (Some(Warm { since_ns, waited_ns, counters, .. }), _) if was_on && lasted_ns > 2 * WARM_NS => {
            let duration_ns = end_ns.saturating_sub(since_ns + stay.waited_ns - waited_ns);
            let run = [(&process.beginning(), counters), (counters, &after)];
            let [cold, warm] = run.map(|(before, after)| bytes(&process.counts(before, after)));
            let cold_ns = since_ns.saturating_sub(stay.since_ns + waited_ns);
            (counters.clone(), duration_ns, longer((cold_ns, cold), (duration_ns, warm)))
        }
        (Some(Warm { counters, .. }), Some(own_ns)) if own_ns > WARM_NS => (counters.clone(), own_ns, WarmUp::LeftOut),
        _ if was_on => from_beginning(lasted_ns),
        // Of less, most was spent on finding the caches cold.
        _ if outcome == Outcome::Whole && cpu_ns > 2 * WARM_NS => from_beginning(cpu_ns),
        _ => from_beginning(0),
    };
    let counts = if duration_ns == 0 { Vec::new() } else { process.counts(&before, &after) };
    Some((duration_ns, warm_up, counts))
}

/// How many bytes of code were run: a measure of work.
fn bytes(counts: &[BlockCount]) -> f64 {
    counts.iter().map(|count| count.bytes as f64 * count.executions as f64).sum()
}

/// How much longer the first stretch took than its work does at the pace of the second: time, ns, and work of each.
fn longer((cold_ns, cold): (u64, f64), (warm_ns, warm): (u64, f64)) -> WarmUp {
    if warm == 0.0 {
        return WarmUp::LeftOut;
    }
    WarmUp::Longer(cold_ns.saturating_sub(round_to_u64(warm_ns as f64 * cold / warm)))
}

/// A window of which nothing is known yet.
pub(super) fn window(id: ThreadId, address: u64, time_ns: u64) -> Window {
    let ThreadId { pid, tid } = id;
    Window {
        time_ns,
        pid,
        tid,
        address,
        stands_for_ns: 0,
        duration_ns: 0,
        warm_up: WarmUp::Counted,
        outcome: Outcome::Whole,
        counts: Vec::new(),
        stack_pointer: 0,
        touches: Vec::new(),
    }
}

/// When the processor's counter stood so, ns; `None` where it is not to be trusted.
pub(super) fn stamp_ns(origin: Option<(u64, u64)>, ticks: u64) -> Option<u64> {
    let (now, origin) = (counter_and_monotonic(), origin?);
    let ago = u128::from(now.0.saturating_sub(ticks)) * u128::from(now.1 - origin.1);
    now.1.checked_sub(u64::try_from(ago / u128::from((now.0 - origin.0).max(1))).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_costs_what_its_work_would_not_have_taken_later() {
        assert_eq!(longer((1000, 30.0), (3000, 120.0)), WarmUp::Longer(250));
        assert_eq!(longer((1000, 50.0), (3000, 120.0)), WarmUp::Longer(0), "it was faster");
        assert_eq!(longer((1000, 30.0), (3000, 0.0)), WarmUp::LeftOut);
    }
}
