//! One step of the run: the program's work, its faults, then the kernel's threads.

use tierloom_contention::Work;

use super::protections::Moment;
use super::scale::{FIRST_STEP, LEAST_STEP, REFRESH, STEP_S};
use super::state::Cohort;
use crate::engine::page_state::PageState;
use crate::engine::settle::settle;

impl Cohort<'_> {
    /// One step, of at most the share of the phase that is left; returns the share that it did.
    pub(super) fn step(&mut self, compute_s: f64, left: f64) -> f64 {
        self.since_refresh += 1;
        if self.since_refresh >= REFRESH {
            self.refresh_sums();
        }
        let overhead_s = self.host.ledger.overhead_s();
        let cells = self.asked(overhead_s);
        self.host.settled = settle(self.host.nodes, compute_s, &cells);
        let phase_s = self.host.settled.time_s.max(1e-12);
        let work_s = (self.step_s.min(left * phase_s)).max(1e-12);
        let share = (work_s / phase_s).min(left);
        let passed_s = work_s + overhead_s;
        self.speed = share / passed_s;
        self.charge(compute_s, share, work_s);
        self.last = Moment { s: self.host.now_s, progress: self.progress };
        self.host.pass(passed_s);
        self.progress += share;
        self.reclaim_s = passed_s;
        self.fault_and_reroute(share);
        self.kernel_works();
        self.last_step_s = work_s;
        self.step_s = self.next_step_s();
        self.host.record();
        share
    }

    /// What the phase asks of the nodes: its work, and what moved in the last step, which goes on moving beside it
    /// at that rate.
    fn asked(&mut self, overhead_s: f64) -> Vec<Work> {
        let mut cells: Vec<Work> =
            self.sums.iter().zip(&self.rerouted).map(|(work, rerouted)| (*work + *rerouted).at_least_none()).collect();
        let goes_on = self.host.settled.time_s.max(1e-9) / (self.last_step_s + overhead_s);
        for (cell, copies) in cells.iter_mut().zip(self.host.ledger.take_copies()) {
            cell.read += copies.read * goes_on;
            cell.write += copies.write * goes_on;
        }
        cells
    }

    fn charge(&mut self, compute_s: f64, share: f64, work_s: f64) {
        let bytes: Vec<f64> = self.sums.iter().map(|work| work.bytes() * share).collect();
        self.host.met(&self.sums, &bytes);
        self.host.ledger.step(compute_s * share, work_s - compute_s * share, &bytes);
    }

    /// The step's faults; visits that move their page are served by its new node.
    fn fault_and_reroute(&mut self, share: f64) {
        self.rerouted.fill(Work::default());
        let served: Vec<Work> = self.sums.iter().map(|work| *work * share).collect();
        self.faults();
        self.limit_rerouted(&served);
        self.host.ledger.rerouted(&self.rerouted);
        self.rerouted.iter_mut().for_each(|work| *work = *work * (1.0 / share));
    }

    fn kernel_works(&mut self) {
        self.scan();
        let (left_s, now_s) = (self.reclaim_s, self.host.now_s);
        for node in 0..self.host.nodes.len() {
            self.reclaim(node, left_s, now_s);
        }
        self.look();
    }

    fn longest_s(&self) -> f64 {
        let moves = self.host.scanner.is_some() || self.host.rule.demotion || self.host.policy.period_s().is_some();
        if moves { STEP_S } else { self.host.ledger.every_s.max(STEP_S) }
    }

    /// Short after a scan, then longer and longer.
    fn next_step_s(&mut self) -> f64 {
        let fresh = std::mem::take(&mut self.fresh) * self.speed;
        let longer_s = (2.0 * self.step_s).min(self.longest_s());
        if fresh > 0.0 { longer_s.min((FIRST_STEP / fresh).max(STEP_S * LEAST_STEP)) } else { longer_s }
    }
}
