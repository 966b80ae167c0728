//! `colloid`: Colloid on `HeMem` (SOSP'24): balance the tiers' latencies instead of filling the fast one.
//!
//! Every look compares the loaded latencies of the fast memory and of the others. Where the fast one
//! is quicker by more than 5 % it should serve more accesses, where it is slower fewer: a
//! bisection on the share `p` of accesses that it serves (the watermarks of the paper), and pages that together
//! carry the difference move.

use super::contract::Policy;
use super::heat::{HUGE, Move, View};
use super::hemem::HeMem;
use super::knobs::{Knob, knob};

const PAPER: &str = "Colloid, SOSP'24, src/colloid.c";
/// Pages of 2 MiB that move per look (code).
const MOST: f64 = 50.0;
/// Closest that the bisection's ends come before one is reset (code).
const NARROW: f64 = 0.01;

/// `HeMem`'s samples with another goal.
#[derive(Debug, Clone)]
pub(super) struct Colloid {
    samples: HeMem,
    delta: f64,
    low: f64,
    high: f64,
}

impl Default for Colloid {
    fn default() -> Self {
        Self { samples: HeMem::default(), delta: 0.05, low: 0.0, high: 1.0 }
    }
}

impl Colloid {
    /// Share of accesses to move, positive towards the fast memory.
    fn wanted(&mut self, share: f64, fast_ns: f64, slow_ns: f64) -> f64 {
        if (fast_ns - slow_ns).abs() < self.delta * fast_ns {
            return 0.0;
        }
        if fast_ns < slow_ns {
            self.low = share;
            self.high = if self.high <= share { 1.0 } else { self.high };
        } else {
            self.high = share;
            self.low = if self.low >= share { 0.0 } else { self.low };
        }
        if (self.high - self.low).abs() < NARROW {
            if fast_ns < slow_ns { self.high = 1.0 } else { self.low = 0.0 }
        }
        f64::midpoint(self.low, self.high) - share
    }
}

impl Policy for Colloid {
    fn name(&self) -> &'static str {
        "colloid"
    }

    fn about(&self) -> &'static str {
        "moves what balances the tiers' loaded latencies (Colloid on HeMem, SOSP'24)"
    }

    fn knobs(&self) -> Vec<Knob> {
        let mut all = self.samples.knobs();
        all.push(knob("delta", self.delta, PAPER));
        all
    }

    fn set(&mut self, name: &str, value: f64) -> bool {
        if name == "delta" {
            self.delta = value;
            return true;
        }
        self.samples.set(name, value)
    }

    fn period_s(&self) -> Option<f64> {
        Some(0.01)
    }

    fn sample_period(&self) -> f64 {
        self.samples.sample_period
    }

    fn shootdowns(&self) -> f64 {
        1.0 / HUGE
    }

    fn look(&mut self, view: &View<'_>) -> Vec<Move> {
        self.samples.count(view);
        let rate = |node: usize| view.groups.iter().map(|group| group.pages[node] * group.reads).sum::<f64>();
        let rates: Vec<f64> = (0..view.nodes.len()).map(rate).collect();
        let (all, slow): (f64, f64) = (rates.iter().sum(), rates[1..].iter().sum());
        if all <= 0.0 || view.nodes.len() < 2 {
            return Vec::new();
        }
        let waited: f64 = rates.iter().zip(view.latency_ns).skip(1).map(|(rate, ns)| rate * ns).sum();
        let slow_ns =
            if slow > 0.0 { waited / slow } else { view.latency_ns[1..].iter().copied().fold(f64::INFINITY, f64::min) };
        let wanted = self.wanted(rates[0] / all, view.latency_ns[0], slow_ns);
        // A look every 10 ms moves at most so many pages; fewer looks move as many in all.
        let most = (MOST * HUGE * (view.since_s / 0.01)).max(MOST * HUGE);
        shift(view, wanted, all, most)
    }

    fn limits(&self) -> Option<&'static str> {
        Some("samples are counted without noise, so a page is never taken for hot by chance")
    }
}

/// Moves groups whose accesses together make up `wanted` of all, most accessed first.
fn shift(view: &View<'_>, wanted: f64, all: f64, most: f64) -> Vec<Move> {
    let mut order: Vec<usize> = (0..view.groups.len()).filter(|group| view.groups[*group].reads > 0.0).collect();
    order.sort_by(|a, b| view.groups[*b].reads.total_cmp(&view.groups[*a].reads));
    let (mut left, mut pages) = (wanted.abs() * all, most);
    let mut free = (view.free[0] - view.nodes.list[0].marks.low).max(0.0);
    let mut moves = Vec::new();
    let mut cold = cold_pages(view);
    for group in order {
        let rate = view.groups[group].reads;
        for slow in 1..view.nodes.len() {
            let (from, to) = if wanted > 0.0 { (slow, 0) } else { (0, slow) };
            if wanted <= 0.0 && slow != view.nodes.list[0].demotion.unwrap_or(1) {
                continue;
            }
            let mut step = view.groups[group].pages[from].min(left / rate).min(pages);
            if to == 0 {
                while free < step && make_room(view, &mut cold, rate, step - free, &mut moves, &mut free) {}
                step = step.min(free);
                free -= step;
            }
            if step > 0.0 {
                moves.push(Move { group, from, to, pages: step });
                left -= step * rate;
                pages -= step;
            }
        }
    }
    moves
}

/// Pages of fast memory by group, least accessed last.
fn cold_pages(view: &View<'_>) -> Vec<(usize, f64)> {
    let mut cold: Vec<(usize, f64)> = view
        .groups
        .iter()
        .enumerate()
        .map(|(index, group)| (index, group.pages[0]))
        .filter(|(_, pages)| *pages > 0.0)
        .collect();
    cold.sort_by(|a, b| view.groups[b.0].reads.total_cmp(&view.groups[a.0].reads));
    cold
}

/// Demotes pages that are accessed less than `rate`; false where there are none.
fn make_room(
    view: &View<'_>,
    cold: &mut Vec<(usize, f64)>,
    rate: f64,
    wanted: f64,
    moves: &mut Vec<Move>,
    free: &mut f64,
) -> bool {
    let Some((group, pages)) = cold.pop().filter(|(group, _)| view.groups[*group].reads < rate) else { return false };
    let step = pages.min(wanted);
    let to = view.nodes.list[0].demotion.unwrap_or(view.nodes.len() - 1);
    moves.push(Move { group, from: 0, to, pages: step });
    *free += step;
    if pages > step {
        cold.push((group, pages - step));
    }
    true
}
