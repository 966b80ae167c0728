//! How far the CPU clocks of all processes are, some fifty times a second.
//!
//! Samples are of user space; when the kernel worked for the program, when it waited for something else, and when it could
//! not run because others did, is told by these.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_linux::cpus::allowed_to;
use tierloom_linux::root::Root;
use tierloom_linux::threads::threads_of;
use tierloom_linux::times::{Scheduled, of_process_alone, scheduled};
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
    scheduled: BTreeMap<(u32, u32), Scheduled>,
    queue: Queue,
}

impl Clocks {
    /// Looks, if it is time; threads were held for so long until now, ns.
    pub(super) fn look(&mut self, root: &Root, alive: &Alive, held_ns: u64, found: &mut Vec<Clock>) {
        let Some(begun) = self.pace.begin() else { return };
        let mut cpus = BTreeSet::new();
        for pid in alive.some(MOST) {
            if let Some(used_s) = of_process_alone(root, pid) {
                self.used_s.insert(pid, used_s);
            }
            for tid in threads_of(root, pid).into_iter().take(MOST) {
                // Runtimes of OpenMP bind each thread to a CPU of its own.
                cpus.extend(allowed_to(tid).unwrap_or_default());
                if let Some(scheduled) = scheduled(root, pid, tid) {
                    self.scheduled.insert((pid, tid), scheduled);
                }
            }
        }
        let queued_ns = self.queue.look(begun.time_ns, self.scheduled.values(), cpus.len() as u64);
        found.push(Clock { time_ns: begun.time_ns, held_ns, queued_ns, ..self.clock() });
        self.pace.end(&begun, BETWEEN_NS);
    }

    fn clock(&self) -> Clock {
        let ns = |seconds: f64| round_to_u64(seconds * 1e9);
        let user_s = self.used_s.values().map(|(user_s, _)| user_s).sum();
        let system_s = self.used_s.values().map(|(_, system_s)| system_s).sum();
        Clock { user_ns: ns(user_s), system_ns: ns(system_s), ..Clock::default() }
    }
}

/// How long threads had no CPU because other programs did. A program with more threads than CPUs queues for its own.
#[derive(Debug, Default)]
struct Queue {
    /// When a stretch began, and what threads had been given by then.
    begun: Option<(u64, Scheduled)>,
    /// Until then, ns.
    before_ns: u64,
    /// As told last, ns.
    told_ns: u64,
}

impl Queue {
    /// Length of a stretch, ns. The kernel brings a running thread's CPU time up to date once a tick, up to 10 ms: within 5 %
    /// of this.
    const STRETCH_NS: u64 = 200_000_000;

    /// Until now, ns: never less than it was.
    fn look<'a>(&mut self, time_ns: u64, threads: impl Iterator<Item = &'a Scheduled>, cpus: u64) -> u64 {
        let given = threads.fold(Scheduled::default(), |sum, thread| Scheduled {
            ran_ns: sum.ran_ns + thread.ran_ns,
            queued_ns: sum.queued_ns + thread.queued_ns,
        });
        let (begun_ns, before) = *self.begun.get_or_insert((time_ns, given));
        // A number that a later thread has again begins anew.
        let ran_ns = given.ran_ns.saturating_sub(before.ran_ns);
        let queued_ns = given.queued_ns.saturating_sub(before.queued_ns);
        let all_ns = (ran_ns + queued_ns).min(cpus.saturating_mul(time_ns - begun_ns));
        let to_others_ns = self.before_ns + all_ns.saturating_sub(ran_ns);
        if time_ns - begun_ns >= Self::STRETCH_NS {
            self.begun = Some((time_ns, given));
            self.before_ns = to_others_ns;
        }
        self.told_ns = self.told_ns.max(to_others_ns);
        self.told_ns
    }
}

#[cfg(test)]
mod tests {
    use tierloom_linux::clock::monotonic_ns;

    use super::*;

    /// What a queue tells after looks every 20 ms at one that is given so much of each, ns.
    fn queued_ns(ran_ns: u64, queued_ns: u64, cpus: u64) -> u64 {
        let mut queue = Queue::default();
        let look = |at: u64| {
            let given = Scheduled { ran_ns: ran_ns * at, queued_ns: queued_ns * at };
            queue.look(BETWEEN_NS * at, [given].iter(), cpus)
        };
        (0..=100).map(look).last().unwrap()
    }

    #[test]
    fn threads_that_wait_for_each_other_s_cpu_wait_for_nobody_else() {
        assert_eq!(queued_ns(40_000_000, 120_000_000, 2), 0, "eight threads, two CPUs");
        assert_eq!(queued_ns(30_000_000, 130_000_000, 2), 1_000_000_000, "and others had a quarter of them");
        assert_eq!(queued_ns(15_000_000, 5_000_000, 2), 500_000_000, "one thread");
    }

    #[test]
    fn a_number_that_a_later_thread_has_again_takes_nothing_back() {
        let mut queue = Queue::default();
        let mut look = |time_ns, ran_ns, queued_ns| queue.look(time_ns, [Scheduled { ran_ns, queued_ns }].iter(), 2);
        look(0, 50, 50);
        assert_eq!(look(100, 90, 110), 60);
        assert_eq!(look(200, 1, 2), 60);
    }

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
