//! Where each page is put when it is first touched: policies, full nodes and fallback.
//!
//! Source: Linux 6.12 `mm/mempolicy.c`, `mm/page_alloc.c` (`get_page_from_freelist`): a page goes to
//! the node that its policy names while that has more than its low watermark free, else to the next node
//! of that node's zonelist. Such a spill does not wake kswapd while any node has room.

use tierloom_model::units::{PAGE_BYTES_F64, format_bytes, round_to_u64};

use super::counters::Counters;
use super::nodes::{Node, Nodes};
use super::vma::{VmaPolicy, Weight};
use crate::error::{Result, TieringError};

/// Deals pages of one region out to nodes, in the order of first touch.
#[derive(Debug, Clone)]
pub(crate) struct Dealer {
    turns: Vec<Turn>,
    /// Turn of page number `index % round.len()`, where weights are whole.
    round: Vec<usize>,
    /// By node: free pages at which pages go on to the next.
    spills_at: Vec<f64>,
    interleaved: bool,
}

/// What one page of a round, or so many, is meant for.
#[derive(Debug, Clone)]
struct Turn {
    node: usize,
    weight: f64,
    /// Nodes to try.
    zonelist: Vec<usize>,
}

/// Most pages per round that are dealt one by one; `u8` weights of a few nodes.
const MOST_ROUND: f64 = 4096.0;

impl Dealer {
    pub(crate) fn new(policy: &VmaPolicy, nodes: &Nodes) -> Self {
        let turn = |Weight { node, pages }| Turn { node, weight: pages, zonelist: policy.zonelist(node, nodes) };
        let turns: Vec<Turn> = policy.turns().into_iter().map(turn).collect();
        let sum: f64 = turns.iter().map(|turn| turn.weight).sum();
        let whole = turns.iter().all(|turn| (turn.weight - turn.weight.round()).abs() < 1e-9) && sum <= MOST_ROUND;
        let round = if whole {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, at most 4096")]
            let times = |weight: f64| weight.round() as usize;
            turns.iter().enumerate().flat_map(|(at, turn)| vec![at; times(turn.weight)]).collect()
        } else {
            Vec::new()
        };
        let interleaved = matches!(policy, VmaPolicy::Interleave { .. });
        Self { turns, round, spills_at: nodes.list.iter().map(Node::spills_at).collect(), interleaved }
    }

    /// Turn of one page; fractional weights by the largest remainder so far.
    fn turn(&self, index: u64) -> usize {
        match self.round.len() {
            0 => self.fractional(index),
            1 => self.round[0],
            #[expect(clippy::cast_possible_truncation, reason = "less than the round")]
            all => self.round[(index % all as u64) as usize],
        }
    }

    fn fractional(&self, index: u64) -> usize {
        let sum: f64 = self.turns.iter().map(|turn| turn.weight).sum();
        let dealt = |turn: usize, count: f64| (count * self.turns[turn].weight / sum).floor();
        let (before, after) = (index as f64, index as f64 + 1.0);
        (0..self.turns.len()).find(|turn| dealt(*turn, after) > dealt(*turn, before)).unwrap_or(0)
    }

    /// Node of one page; takes it from `free`.
    pub(crate) fn one(&self, index: u64, free: &mut [f64], counters: &mut Counters) -> Option<usize> {
        let turn = self.turns.get(self.turn(index))?;
        let node = *turn.zonelist.iter().find(|node| free[**node] > self.spills_at[**node])?;
        free[node] -= 1.0;
        self.count(turn.node, node, 1.0, counters);
        Some(node)
    }

    /// Pages by node of a run of `pages`; takes them from `free`. Errs with the pages that found no
    /// room.
    pub(crate) fn many(&self, pages: f64, free: &mut [f64], counters: &mut Counters) -> Result<Vec<f64>, f64> {
        let sum: f64 = self.turns.iter().map(|turn| turn.weight).sum();
        let mut placed = vec![0.0; free.len()];
        let mut left = pages;
        while left > 1e-9 * pages {
            let room = |node: usize, free: &[f64]| free[node] - self.spills_at[node];
            let mut rates = vec![0.0; free.len()];
            let mut shares = Vec::new();
            for turn in &self.turns {
                let node = *turn.zonelist.iter().find(|node| room(**node, free) > 1e-6).ok_or(left)?;
                rates[node] += turn.weight / sum;
                shares.push((turn.node, node, turn.weight / sum));
            }
            let step = (0..free.len())
                .filter(|node| rates[*node] > 0.0)
                .map(|node| room(node, free) / rates[node])
                .fold(left, f64::min);
            for (meant, node, share) in shares {
                self.count(meant, node, share * step, counters);
            }
            for node in 0..free.len() {
                placed[node] += rates[node] * step;
                free[node] -= rates[node] * step;
            }
            left -= step;
        }
        Ok(placed)
    }

    fn count(&self, meant: usize, node: usize, pages: f64, counters: &mut Counters) {
        if meant == node {
            counters.numa_hit += pages;
            counters.numa_interleave += if self.interleaved { pages } else { 0.0 };
        } else {
            counters.numa_miss += pages;
            counters.numa_foreign += pages;
        }
    }
}

/// A region whose pages find no room.
pub(crate) fn full(region: &str, pages: f64, nodes: &Nodes) -> TieringError {
    let names: Vec<&str> = nodes.list.iter().map(|node| node.name.as_str()).collect();
    TieringError::DoesNotFit {
        region: region.to_owned(),
        missing: format_bytes(round_to_u64(pages * PAGE_BYTES_F64)),
        nodes: names.join(", "),
        hint: "allow more memories, give more fast memory, or take a machine with more".to_owned(),
    }
}
