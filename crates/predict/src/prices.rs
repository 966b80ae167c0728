//! What a little more work in a memory costs: the gradient of the run time.
//!
//! Demand is linear in the fractions, so with the price of waits, reads and writes in each memory
//! and phase, the cost of any move is a few multiplications. A search orders its candidates by it
//! and lets [`Predictor::time_s`] decide: prices are forward differences, exact to first order, and
//! step where two memories are the bottleneck together.

use tierloom_contention::Work;

use crate::demand::Demand;
use crate::doubt::Doubt;
use crate::phase::solve;
use crate::predictor::Predictor;

/// Step of the differences, as a share of the phase's whole work: far above the solver's tolerance,
/// and fine against the shares that a placement moves (assumed).
const STEP: f64 = 1e-3;

/// Seconds per unit of work in each memory and phase, at one [`Demand`].
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// Phase by phase, socket by socket, one entry per memory; infinite in memories that cannot be reached.
    cells: Vec<Work>,
}

impl Predictor {
    /// Prices at a demand.
    pub fn prices(&self, demand: &Demand) -> Prices {
        let phases = demand.cells.chunks_exact(self.fabric.ways()).enumerate();
        Prices { cells: phases.flat_map(|(phase, cells)| self.phase_prices(phase, cells)).collect() }
    }

    /// Seconds, to first order, that moving all of an object from one memory to another costs;
    /// negative where it saves time.
    pub fn cost_of_move_s(&self, prices: &Prices, object: usize, from: usize, to: usize) -> f64 {
        let rows = prices.cells.chunks_exact(self.memories()).enumerate();
        let cost = |(row, cells): (usize, &[Work])| {
            let work = self.likely.of_row(row)[object];
            value(work, cells[to]) - value(work, cells[from])
        };
        rows.map(cost).sum()
    }

    fn phase_prices(&self, phase: usize, cells: &[Work]) -> Vec<Work> {
        let solved_s = |cells: &[Work]| solve(self.compute_s[phase], cells, &self.fabric, Doubt::NONE.latency).time_s;
        let before_s = solved_s(cells);
        let step = self.likely.whole_of_phase(phase) * STEP;
        let mut more = cells.to_vec();
        let mut price = |memory: usize, extra: Work, amount: f64| {
            if amount <= 0.0 {
                return 0.0;
            }
            more[memory] = cells[memory] + extra;
            let after_s = solved_s(&more);
            more[memory] = cells[memory];
            (after_s - before_s) / amount
        };
        let none = Work::default();
        (0..cells.len())
            .map(|memory| Work {
                wait: price(memory, Work { wait: step.wait, ..none }, step.wait),
                read: price(memory, Work { read: step.read, ..none }, step.read),
                write: price(memory, Work { write: step.write, ..none }, step.write),
            })
            .collect()
    }
}

fn value(work: Work, price: Work) -> f64 {
    let part = |amount: f64, price: f64| if amount > 0.0 { amount * price } else { 0.0 };
    part(work.wait, price.wait) + part(work.read, price.read) + part(work.write, price.write)
}
