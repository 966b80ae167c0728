//! What a little more work in a memory costs: the gradient of the run time.
//!
//! Demand is linear in the fractions, so with the price of waits, reads and writes in each memory
//! and phase, the cost of any move is a few multiplications. A search orders its candidates by it
//! and lets [`Predictor::time_s`] decide: prices are forward differences, exact to first order, and
//! step where two memories are the bottleneck together.

use tierloom_contention::{Work, gradient};

use crate::demand::Demand;
use crate::doubt::Doubt;
use crate::phase::solve;
use crate::predictor::Predictor;

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

    /// [`Predictor::cost_of_move_s`] to each of some memories, written to their positions in `costs_s`.
    pub fn costs_of_moves_s(
        &self,
        prices: &Prices,
        object: usize,
        from: usize,
        targets: &[usize],
        costs_s: &mut [f64],
    ) {
        for to in targets {
            costs_s[*to] = 0.0;
        }
        for (row, cells) in prices.cells.chunks_exact(self.memories()).enumerate() {
            let work = self.likely.of_row(row)[object];
            let here = value(work, cells[from]);
            for to in targets {
                costs_s[*to] += value(work, cells[*to]) - here;
            }
        }
    }

    fn phase_prices(&self, phase: usize, cells: &[Work]) -> Vec<Work> {
        let time_s =
            |cells: &[Work]| solve(self.likely.compute_s[phase], cells, &self.fabric, Doubt::NONE.latency).time_s;
        gradient(cells, self.likely.whole_of_phase(phase), time_s)
    }
}

fn value(work: Work, price: Work) -> f64 {
    let part = |amount: f64, price: f64| if amount > 0.0 { amount * price } else { 0.0 };
    part(work.wait, price.wait)
        + part(work.random, price.random)
        + part(work.beside, price.beside)
        + part(work.alone, price.alone)
        + part(work.read, price.read)
        + part(work.write, price.write)
}
