//! A window of the run: visits, then the time that they take, then the kernel's threads for as long.

use tierloom_contention::Work;

use super::state::Exact;
use super::visit::Counts;
use crate::engine::page_state::PageState;
use crate::engine::settle::settle;
use crate::error::Result;

/// Program time per window, s: a tenth of the least scan period, and finer than any threshold.
pub(super) const WINDOW_S: f64 = 0.01;

/// One kind of visit: what it asks of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerVisit {
    pub(crate) read: Work,
    pub(crate) write: Work,
}

impl Exact<'_> {
    /// Ends a window: time passes, and the kernel's threads work.
    pub(super) fn end_window(&mut self, compute_s: f64, cells: &mut [Work]) {
        let host = &mut self.host;
        let bytes: Vec<f64> = cells.iter().map(|work| work.bytes()).collect();
        for (cell, copies) in cells.iter_mut().zip(host.ledger.take_copies()) {
            cell.read += copies.read;
            cell.write += copies.write;
        }
        host.settled = settle(host.nodes, compute_s, cells);
        host.met(cells, &bytes);
        let time_s = host.settled.time_s;
        let passed_s = time_s + host.ledger.overhead_s();
        host.ledger.step(compute_s, time_s - compute_s, &bytes);
        host.pass(passed_s);
        self.kernel_works();
        self.host.record();
    }

    fn kernel_works(&mut self) {
        self.scan();
        let now_s = self.host.now_s;
        for node in 0..self.host.nodes.len() {
            self.reclaim_until(node, now_s);
        }
        self.reclaimed_s = now_s;
        self.look();
    }

    /// Gives one node's kswapd the time until now.
    pub(super) fn reclaim_until(&mut self, node: usize, now_s: f64) {
        let seconds = (now_s - self.reclaimed_s).max(0.0);
        self.reclaim(node, seconds, now_s);
    }

    /// Visits one block of a trace, which computes for `span_s`.
    pub(crate) fn visit_block(&mut self, codes: &[u32], span_s: f64, per: PerVisit) -> Result<()> {
        let mut counts = Counts::default();
        self.visit(codes, self.host.now_s, span_s, &mut counts)?;
        let mut cells = vec![Work::default(); self.host.nodes.len()];
        for (node, cell) in cells.iter_mut().enumerate() {
            let [reads, writes] = counts.of(node);
            *cell = per.read * reads as f64 + per.write * writes as f64;
        }
        self.end_window(span_s, &mut cells);
        Ok(())
    }
}
