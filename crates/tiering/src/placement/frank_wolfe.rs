//! The search behind `tierloom`: which share of each unit goes to which node.
//!
//! The time of a phase falls with the work on its slowest path, smooth in between; at the prices of a
//! placement (seconds per unit of waiting, reading and writing on each node) the best answer is a knapsack, solved by
//! regret per page. A line search towards that answer and prices anew, until nothing is gained
//! (Frank and Wolfe, 1956). Exchanges of two units, or of one with free room, finish it.

use tierloom_contention::{Work, gradient};

use crate::engine::settle::settle;
use crate::kernel::nodes::Nodes;

/// By unit, shares by node.
pub(crate) type Shares = Vec<Vec<f64>>;

/// Rounds of prices and line searches per start.
const ROUNDS: usize = 40;
/// Starts that are searched from, best first.
const STARTS: usize = 4;
/// Gain below which a round is the last, relative.
const ENOUGH: f64 = 1e-6;
/// Units of most weight that exchanges are tried on.
const EXCHANGED: usize = 24;

/// Units, room, and the work of the phases.
pub(crate) struct Problem<'a> {
    pub(crate) nodes: &'a Nodes,
    pub(crate) pages: Vec<f64>,
    pub(crate) room: Vec<f64>,
    pub(crate) compute_s: Vec<f64>,
    /// By phase and unit.
    pub(crate) works: Vec<Vec<Work>>,
}

impl Problem<'_> {
    fn cells(&self, phase: usize, shares: &Shares) -> Vec<Work> {
        let mut cells = vec![Work::default(); self.nodes.len()];
        for (work, row) in self.works[phase].iter().zip(shares) {
            cells.iter_mut().zip(row).for_each(|(cell, share)| *cell += *work * *share);
        }
        cells
    }

    /// Time of all phases, s.
    pub(crate) fn time_s(&self, shares: &Shares) -> f64 {
        (0..self.works.len())
            .map(|phase| settle(self.nodes, self.compute_s[phase], &self.cells(phase, shares)).time_s)
            .sum()
    }

    /// Seconds, to first order, of all of each unit on each node.
    fn costs(&self, shares: &Shares) -> Shares {
        let mut costs = vec![vec![0.0; self.nodes.len()]; self.pages.len()];
        for phase in 0..self.works.len() {
            let cells = self.cells(phase, shares);
            let prices = self.prices(phase, &cells);
            for (unit, work) in self.works[phase].iter().enumerate() {
                for (cost, price) in costs[unit].iter_mut().zip(&prices) {
                    *cost += work.wait * price.wait + work.random * price.random;
                    *cost += work.read * price.read + work.write * price.write;
                    *cost += work.beside * price.beside + work.alone * price.alone;
                }
            }
        }
        costs
    }

    fn prices(&self, phase: usize, cells: &[Work]) -> Vec<Work> {
        let whole = self.works[phase].iter().fold(Work::default(), |sum, work| sum + *work);
        gradient(cells, whole, |cells| settle(self.nodes, self.compute_s[phase], cells).time_s)
    }

    /// Cheapest shares at fixed costs: everything on its cheapest node, then what costs least per
    /// page moves on while a node is overfull.
    fn knapsack(&self, costs: &Shares) -> Shares {
        let nodes = self.nodes.len();
        let cheapest = |row: &Vec<f64>| (0..nodes).min_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0);
        let mut shares = vec![vec![0.0; nodes]; self.pages.len()];
        let mut used = vec![0.0; nodes];
        for (unit, row) in costs.iter().enumerate() {
            let node = cheapest(row);
            shares[unit][node] = 1.0;
            used[node] += self.pages[unit];
        }
        for _ in 0..nodes {
            for node in 0..nodes {
                self.relieve(node, costs, &mut shares, &mut used);
            }
        }
        shares
    }

    /// Moves units off an overfull node, least regret per page first.
    fn relieve(&self, node: usize, costs: &Shares, shares: &mut Shares, used: &mut [f64]) {
        if used[node] <= self.room[node] {
            return;
        }
        let others = (0..self.nodes.len()).filter(|to| *to != node);
        let mut moves: Vec<(f64, usize, usize)> = Vec::new();
        for to in others {
            let here = (0..self.pages.len()).filter(|unit| shares[*unit][node] > 0.0 && self.pages[*unit] > 0.0);
            moves.extend(here.map(|unit| ((costs[unit][to] - costs[unit][node]) / self.pages[unit], unit, to)));
        }
        moves.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, unit, to) in moves {
            let over = used[node] - self.room[node];
            let step = (shares[unit][node] * self.pages[unit]).min(over).min((self.room[to] - used[to]).max(0.0));
            if over <= 0.0 {
                return;
            }
            if step > 0.0 {
                shares[unit][node] = (shares[unit][node] - step / self.pages[unit]).max(0.0);
                shares[unit][to] += step / self.pages[unit];
                used[node] -= step;
                used[to] += step;
            }
        }
    }

    fn fits(&self, shares: &Shares) -> bool {
        (0..self.nodes.len()).all(|node| {
            let used: f64 = shares.iter().zip(&self.pages).map(|(row, pages)| row[node] * pages).sum();
            used <= self.room[node] * (1.0 + 1e-9) + 1e-3
        })
    }
}

/// The best shares found from any of the starts and from the knapsack at rest.
pub(crate) fn best(problem: &Problem<'_>, starts: &[Shares]) -> Shares {
    let rest = vec![vec![0.0; problem.nodes.len()]; problem.pages.len()];
    let mut tried: Vec<(f64, Shares)> = starts.iter().map(|shares| (problem.time_s(shares), shares.clone())).collect();
    let greedy = problem.knapsack(&problem.costs(&rest));
    if problem.fits(&greedy) {
        tried.push((problem.time_s(&greedy), greedy));
    }
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let found = tried.into_iter().take(STARTS).map(|(time_s, shares)| refine(problem, time_s, shares));
    found.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(rest, |found| found.1)
}

fn refine(problem: &Problem<'_>, time_s: f64, shares: Shares) -> (f64, Shares) {
    let mut now = (time_s, shares);
    for _ in 0..ROUNDS {
        let before_s = now.0;
        let costs = problem.costs(&now.1);
        let target = problem.knapsack(&costs);
        if problem.fits(&target) {
            now = line_search(problem, now, &target);
        }
        if now.0 > before_s * (1.0 - ENOUGH) {
            now = exchange(problem, now, &costs);
        }
        if now.0 > before_s * (1.0 - ENOUGH) {
            break;
        }
    }
    now
}

/// The best point between here and a target, by halving the step.
fn line_search(problem: &Problem<'_>, now: (f64, Shares), target: &Shares) -> (f64, Shares) {
    let mix = |share: f64| -> Shares {
        let row = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a + (b - a) * share).collect();
        now.1.iter().zip(target).map(row).collect()
    };
    let (mut low, mut high) = (0.0, 1.0);
    let mut best = (now.0, 0.0);
    for _ in 0..24 {
        let thirds = [low + (high - low) / 3.0, high - (high - low) / 3.0];
        let times = thirds.map(|share| problem.time_s(&mix(share)));
        for (time_s, share) in times.iter().zip(thirds) {
            best = if *time_s < best.0 { (*time_s, share) } else { best };
        }
        if times[0] < times[1] { high = thirds[1] } else { low = thirds[0] }
    }
    let whole = problem.time_s(target);
    best = if whole < best.0 { (whole, 1.0) } else { best };
    if best.1 > 0.0 { (best.0, mix(best.1)) } else { now }
}

/// Swaps pages of two units between two nodes where prices say that it gains.
fn exchange(problem: &Problem<'_>, mut now: (f64, Shares), costs: &Shares) -> (f64, Shares) {
    let spread = |unit: &usize| {
        let row = &costs[*unit];
        row.iter().copied().fold(f64::NEG_INFINITY, f64::max) - row.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let mut units: Vec<usize> = (0..problem.pages.len()).collect();
    units.sort_by(|a, b| spread(b).total_cmp(&spread(a)));
    let others: Vec<usize> = units.iter().rev().take(EXCHANGED).chain(units.iter().take(EXCHANGED)).copied().collect();
    for unit in units.into_iter().take(EXCHANGED) {
        for other in &others {
            for from in 0..problem.nodes.len() {
                for to in 0..problem.nodes.len() {
                    if from != to && unit != *other {
                        now = swap(problem, now, [unit, *other], [from, to], costs);
                    }
                }
            }
        }
    }
    now
}

fn swap(
    problem: &Problem<'_>,
    now: (f64, Shares),
    [unit, other]: [usize; 2],
    [from, to]: [usize; 2],
    costs: &Shares,
) -> (f64, Shares) {
    let pages = (now.1[unit][from] * problem.pages[unit]).min(now.1[other][to] * problem.pages[other]);
    let per_page = |unit: usize, a: usize, b: usize| (costs[unit][b] - costs[unit][a]) / problem.pages[unit].max(1.0);
    if pages <= 0.0 || per_page(unit, from, to) + per_page(other, to, from) >= 0.0 {
        return now;
    }
    let mut target = now.1.clone();
    target[unit][from] -= pages / problem.pages[unit];
    target[unit][to] += pages / problem.pages[unit];
    target[other][to] -= pages / problem.pages[other];
    target[other][from] += pages / problem.pages[other];
    line_search(problem, now, &target)
}
