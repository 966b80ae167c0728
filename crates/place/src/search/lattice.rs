//! A placement that a kernel can make, kept up to date under moves.
//!
//! Every object is dealt out in rounds of at most [`MAX_ROUND`] pages, so each point of the search
//! is a set of integer weights that respects every capacity: nothing is rounded afterwards, and
//! what the search ends at is what its actions do.

use tierloom_model::Action;
use tierloom_predict::{Demand, Timed};

use super::rows::Rows;
use crate::context::Context;
use crate::weights::{MAX_ROUND, action, nearest, reduce};

/// Bytes by which a memory may be overfull from rounding; less than what counts as placed.
const ROUNDING_BYTES: f64 = 0.5;

/// Some pages of every round of an object, from one memory to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) object: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) pages: u32,
}

/// A placement on the lattice of integer weights, with its demand and its time.
#[derive(Debug, Clone)]
pub(crate) struct Lattice<'c> {
    pub(crate) context: &'c Context<'c>,
    /// Pages of a round by object and memory, object after object.
    pages: Vec<u32>,
    /// Pages of a round, by object.
    rounds: Vec<u32>,
    /// Bytes left by memory.
    free: Vec<f64>,
    timed: Timed,
}

impl<'c> Lattice<'c> {
    /// The lattice point nearest to rows of fractions that fits the capacities.
    ///
    /// `None` where rounding leaves too little room and nothing can be moved to mend it.
    pub(crate) fn near(context: &'c Context<'c>, rows: &Rows) -> Option<Self> {
        let (mut pages, mut rounds) = (Vec::new(), Vec::new());
        for row in rows.iter() {
            let weights = reduce(&nearest(row));
            let shortest: u32 = weights.iter().sum();
            // The longest round in the same proportions: the finest steps from here.
            let scale = MAX_ROUND / shortest.max(1);
            rounds.push(shortest * scale);
            pages.extend(weights.iter().map(|weight| weight * scale));
        }
        let free = context.capacity.clone();
        let timed = context.predictor.timed(context.predictor.demand(fractions(&pages, &rounds, free.len()).iter()));
        let mut lattice = Self { context, pages, rounds, free, timed };
        lattice.refill();
        lattice.repair().then_some(lattice)
    }

    /// Recomputes what moves keep up to date, without their rounding.
    fn settle(&mut self) {
        self.refill();
        self.timed = self.context.predictor.timed(self.context.predictor.demand(self.rows().iter()));
    }

    fn refill(&mut self) {
        self.free.clone_from(&self.context.capacity);
        for object in 0..self.rounds.len() {
            for node in 0..self.free.len() {
                self.free[node] -= f64::from(self.pages(object, node)) * self.page_bytes(object);
            }
        }
    }

    /// Run time, s.
    pub(crate) fn time_s(&self) -> f64 {
        self.timed.time_s()
    }

    /// Bytes in a memory.
    pub(crate) fn used_bytes(&self, node: usize) -> f64 {
        self.context.capacity[node] - self.free[node]
    }

    /// Bytes left in a memory.
    pub(crate) fn free_bytes(&self, node: usize) -> f64 {
        self.free[node] + ROUNDING_BYTES
    }

    /// What the placement asks of each memory.
    pub(crate) fn demand(&self) -> &Demand {
        self.timed.demand()
    }

    /// Pages of an object's round in a memory.
    pub(crate) fn pages(&self, object: usize, node: usize) -> u32 {
        self.pages[object * self.free.len() + node]
    }

    /// Objects that are placed.
    pub(crate) fn objects(&self) -> usize {
        self.rounds.len()
    }

    /// Pages of an object's round.
    pub(crate) fn round(&self, object: usize) -> u32 {
        self.rounds[object]
    }

    /// Bytes of an object that one page of its round stands for.
    pub(crate) fn page_bytes(&self, object: usize) -> f64 {
        self.context.size(object) / f64::from(self.rounds[object])
    }

    /// Fractions by object and memory.
    pub(crate) fn rows(&self) -> Rows {
        fractions(&self.pages, &self.rounds, self.free.len())
    }

    /// What to ask of the kernel for each object.
    pub(crate) fn actions(&self) -> Vec<Action> {
        self.pages.chunks_exact(self.free.len()).map(|weights| action(self.context.machine, weights)).collect()
    }

    /// Makes moves that are known to fit if the time is then below a limit; says whether it is.
    pub(crate) fn apply_below(&mut self, moves: &[Move], limit_s: f64) -> bool {
        let Some(timed) = self.context.predictor.faster(&self.timed, self.shifted(moves), limit_s) else {
            return false;
        };
        self.shift_pages(moves);
        self.timed = timed;
        true
    }

    /// Makes moves that are known to fit.
    fn apply(&mut self, moves: &[Move]) {
        self.timed = self.context.predictor.timed(self.shifted(moves));
        self.shift_pages(moves);
    }

    fn shift_pages(&mut self, moves: &[Move]) {
        for step in moves {
            let bytes = f64::from(step.pages) * self.page_bytes(step.object);
            let nodes = self.free.len();
            self.pages[step.object * nodes + step.from] -= step.pages;
            self.pages[step.object * nodes + step.to] += step.pages;
            self.free[step.from] += bytes;
            self.free[step.to] -= bytes;
        }
    }

    /// What is asked of each memory after some moves.
    fn shifted(&self, moves: &[Move]) -> Demand {
        let mut demand = self.demand().clone();
        for step in moves {
            let share = f64::from(step.pages) / f64::from(self.rounds[step.object]);
            self.context.predictor.shift(&mut demand, step.object, step.from, step.to, share);
        }
        demand
    }

    /// Moves what rounding made too much, cheapest per byte first.
    fn repair(&mut self) -> bool {
        for round in 0..2 * self.free.len() {
            let fullest = (0..self.free.len()).min_by(|a, b| self.free[*a].total_cmp(&self.free[*b]));
            let Some(node) = fullest.filter(|node| self.free_bytes(*node) < 0.0) else {
                if round > 0 {
                    self.settle();
                }
                return true;
            };
            self.drain(node);
        }
        false
    }

    fn drain(&mut self, node: usize) {
        let prices = self.context.predictor.prices(self.demand());
        let cost = |object: usize, to: usize| {
            self.context.predictor.cost_of_move_s(&prices, object, node, to) / self.context.size(object)
        };
        let mut ways: Vec<(f64, usize, usize)> = Vec::new();
        for object in (0..self.rounds.len()).filter(|o| self.pages(*o, node) > 0 && self.context.size(*o) > 0.0) {
            let targets = self.context.nodes.iter().filter(|to| **to != node);
            ways.extend(targets.map(|to| (cost(object, *to), object, *to)));
        }
        ways.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, object, to) in ways {
            let page = self.page_bytes(object);
            let needed = whole(-(self.free_bytes(node) / page).floor());
            let pages = needed.min(whole((self.free_bytes(to) / page).floor())).min(self.pages(object, node));
            if pages > 0 {
                self.apply(&[Move { object, from: node, to, pages }]);
            }
        }
    }
}

fn fractions(pages: &[u32], rounds: &[u32], nodes: usize) -> Rows {
    let mut rows = Rows::none(rounds.len(), nodes);
    for (object, (pages, round)) in pages.chunks_exact(nodes).zip(rounds).enumerate() {
        for (fraction, pages) in rows.row_mut(object).iter_mut().zip(pages) {
            *fraction = f64::from(*pages) / f64::from(*round);
        }
    }
    rows
}

/// Pages as a whole number, from 0 to a round.
pub(crate) fn whole(pages: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let whole = pages.clamp(0.0, f64::from(MAX_ROUND)) as u32;
    whole
}
