//! How far the CPU clocks of all processes are, some fifty times a second.
//!
//! Samples are of user space; when the kernel worked for the program, when it waited for something else, and when it could
//! not run because others did, is told by these.

use std::collections::BTreeMap;

use tierloom_linux::root::Root;
use tierloom_linux::threads::threads_of;
use tierloom_linux::times::{of_process_alone, queued_ns};
use tierloom_model::units::round_to_u64;
use tierloom_recording::Clock;

use crate::alive::Alive;
use crate::pace::Pace;

/// Time between two looks, ns: twice the tick that the kernel tells in.
const BETWEEN_NS: u64 = 20_000_000;
/// Processes that are looked at, and threads of each whose queueing is.
const MOST: usize = 64;

/// What is known of clocks.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    pace: Pace,
    /// User and system time by process, s: those that are gone stay.
    used_s: BTreeMap<u32, (f64, f64)>,
    queued_ns: BTreeMap<(u32, u32), u64>,
}

impl Clocks {
    /// Looks, if it is time; threads were held for so long until now, ns.
    pub(super) fn look(&mut self, root: &Root, alive: &Alive, held_ns: u64, found: &mut Vec<Clock>) {
        let Some(begun) = self.pace.begin() else { return };
        for pid in alive.some(MOST) {
            if let Some(used_s) = of_process_alone(root, pid) {
                self.used_s.insert(pid, used_s);
            }
            for tid in threads_of(root, pid).into_iter().take(MOST) {
                if let Some(queued_ns) = queued_ns(root, pid, tid) {
                    self.queued_ns.insert((pid, tid), queued_ns);
                }
            }
        }
        found.push(Clock { time_ns: begun.time_ns, held_ns, ..self.clock() });
        self.pace.end(&begun, BETWEEN_NS);
    }

    fn clock(&self) -> Clock {
        let ns = |seconds: f64| round_to_u64(seconds * 1e9);
        let user_s = self.used_s.values().map(|(user_s, _)| user_s).sum();
        let system_s = self.used_s.values().map(|(_, system_s)| system_s).sum();
        let queued_ns = self.queued_ns.values().sum();
        Clock { user_ns: ns(user_s), system_ns: ns(system_s), queued_ns, ..Clock::default() }
    }
}

#[cfg(test)]
mod tests {
    use tierloom_linux::clock::monotonic_ns;

    use super::*;

    #[test]
    fn clocks_of_this_process_run() {
        let (mut clocks, mut found) = (Clocks::default(), Vec::new());
        let alive = Alive::new(std::process::id());
        let until_ns = monotonic_ns() + 200_000_000;
        while monotonic_ns() < until_ns {
            clocks.look(&Root::default(), &alive, 0, &mut found);
        }
        let (first, last) = (found[0], found[found.len() - 1]);
        assert!(last.user_ns + last.system_ns > first.user_ns + first.system_ns, "{found:?}");
        assert!(found.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns && pair[0].user_ns <= pair[1].user_ns));
        assert!(found.len() <= 11);
    }
}
