//! Processes of the program that are there.

use std::collections::BTreeSet;

use tierloom_recording::{Change, Process};

/// Processes that have come and not gone, as far as that was told.
#[derive(Debug, Default)]
pub(super) struct Alive {
    processes: BTreeSet<u32>,
    /// Changes that are known.
    met: usize,
}

impl Alive {
    /// The program alone.
    pub(super) fn new(pid: u32) -> Self {
        Self { processes: BTreeSet::from([pid]), met: 0 }
    }

    /// Learns the changes behind those that it knows.
    pub(super) fn meet(&mut self, changes: &[Process]) {
        for process in &changes[self.met..] {
            match process.change {
                Change::Fork { .. } | Change::Exec { .. } => drop(self.processes.insert(process.pid)),
                Change::Exit => drop(self.processes.remove(&process.pid)),
            }
        }
        self.met = changes.len();
    }

    /// Up to so many of them.
    pub(super) fn some(&self, most: usize) -> impl Iterator<Item = u32> {
        self.processes.iter().copied().take(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_come_and_go() {
        let change = |pid, change| Process { time_ns: 0, pid, change };
        let mut alive = Alive::new(7);
        let changes =
            [change(8, Change::Fork { parent: 7 }), change(7, Change::Exit), change(7, Change::Fork { parent: 1 })];
        alive.meet(&changes[..2]);
        assert!(alive.some(9).eq([8]));
        alive.meet(&changes);
        assert!(alive.some(9).eq([7, 8]));
        assert!(alive.some(1).eq([7]));
    }
}
