//! Where the search starts: placements from the closed form, and a coarse look at all there are.
//!
//! The closed form has two steps. First the loads: how much traffic each memory should carry at
//! least mean latency ([`crate::balance`]), given the traffic of the run so far. Then, with the
//! loads as limits, the time is linear in the fractions, and each memory in turn, nearest first, is
//! a fractional knapsack with two constraints: it holds so many bytes and should carry so much
//! traffic. Objects are taken by waiting `w` (s per ns of latency) over what they use up of both,
//! `w/(μ·size + ν·traffic)`; with `μ` alone that is Soar's rank, with `ν` alone the most
//! latency-critical come first and streams are left to be interleaved. The traffic follows from
//! the time, so the two steps are repeated.

use super::ranking::Ranking;
use super::rows::Rows;
use crate::balance::{Equal, Tier, loads};
use crate::bandwidth::path_gb_s;
use crate::context::Context;

/// Times that loads and knapsack are repeated; the traffic hardly changes after that.
const REPEATS: usize = 4;
/// What counts in the rank.
const RANKS: [Rank; 3] = [Rank::Both, Rank::Bytes, Rank::Traffic];
/// Placements up to which all of a coarseness are looked at.
const MOST_WAYS: usize = 8192;
/// Pieces that objects are cut into, from fine to coarse.
const PIECES: [u32; 3] = [4, 2, 1];
/// Coarse placements that are worth a walk.
const BEST_WAYS: usize = 16;

/// What an object uses up of a memory, by which its waiting is divided.
#[derive(Debug, Clone, Copy)]
enum Rank {
    /// Its share of the memory's bytes and its share of the memory's traffic.
    Both,
    Bytes,
    Traffic,
}

/// One placement per rank.
pub(crate) fn closed_form(context: &Context<'_>) -> Vec<Rows> {
    RANKS.iter().filter_map(|rank| fixed_point(context, *rank)).collect()
}

/// The fastest of the placements on the way to stable loads.
fn fixed_point(context: &Context<'_>, rank: Rank) -> Option<Rows> {
    let tiers: Vec<Tier> = context.nodes.iter().filter_map(|node| tier(context, *node)).collect();
    let bytes: f64 = (0..context.profile.objects.len()).map(|object| context.predictor.dram_bytes(object)).sum();
    let mut gb_s: f64 = tiers.iter().map(|tier| tier.peak_gb_s).sum();
    let mut best: Option<(f64, Rows)> = None;
    for _ in 0..REPEATS {
        let loads = loads(&tiers, gb_s, Equal::Marginal);
        let total: f64 = loads.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let limits: Vec<f64> = loads.iter().map(|load| load / total * bytes).collect();
        let rows = knapsacks(context, &limits, rank);
        let time_s = context.predictor.time_s(&context.predictor.demand(rows.iter()));
        if best.as_ref().is_none_or(|(least_s, _)| time_s < *least_s) {
            best = Some((time_s, rows));
        }
        if time_s <= 0.0 {
            break;
        }
        gb_s = bytes / time_s * 1e-9;
    }
    best.map(|(_, rows)| rows)
}

fn tier(context: &Context<'_>, node: usize) -> Option<Tier> {
    let path = context.machine.path(context.socket, node)?;
    let peak_gb_s = path_gb_s(context.machine, context.socket, node);
    Some(Tier { idle_ns: path.idle_ns.value, peak_gb_s })
}

/// Fills the memories one after the other, nearest first; `limits` are bytes of traffic.
fn knapsacks(context: &Context<'_>, limits: &[f64], rank: Rank) -> Rows {
    let mut left = vec![1.0_f64; context.profile.objects.len()];
    let mut rows = Rows::none(left.len(), context.capacity.len());
    let mut free = context.capacity.clone();
    for (node, limit) in context.nodes.iter().zip(limits) {
        let sack = Knapsack { context, node: *node, bytes: free[*node], traffic: *limit };
        free[*node] = match rank {
            Rank::Bytes => sack.fill(context.densest_in_bytes().iter().copied(), &mut left, &mut rows),
            Rank::Traffic => sack.fill(context.densest_in_traffic().iter().copied(), &mut left, &mut rows),
            Rank::Both => {
                let ranking = ranking(context, *node, *limit, &left);
                sack.fill(ranking.iter().map(|(_, object)| object), &mut left, &mut rows)
            }
        };
    }
    stow(context, &mut rows, &mut left, &mut free);
    rows
}

/// A memory that is filled: bytes that it has room for, and bytes of traffic that it should carry.
struct Knapsack<'c> {
    context: &'c Context<'c>,
    node: usize,
    bytes: f64,
    traffic: f64,
}

impl Knapsack<'_> {
    /// Takes what is left of objects in some order; returns the bytes that are free then.
    fn fill(mut self, objects: impl Iterator<Item = usize>, left: &mut [f64], rows: &mut Rows) -> f64 {
        for object in objects {
            if self.bytes <= 0.0 || self.traffic <= 0.0 {
                break;
            }
            self.take(object, left, rows);
        }
        // Data without traffic is the last in any order, and needs no traffic to be left.
        for object in (0..left.len()).filter(|object| self.context.predictor.dram_bytes(*object) <= 0.0) {
            self.take(object, left, rows);
        }
        self.bytes
    }

    /// As much of an object as there is room for.
    fn take(&mut self, object: usize, left: &mut [f64], rows: &mut Rows) {
        let (size, traffic) = (self.context.size(object), self.context.predictor.dram_bytes(object));
        let share = left[object].min(ratio(self.bytes, size)).min(ratio(self.traffic, traffic));
        rows.row_mut(object)[self.node] += share;
        left[object] -= share;
        self.bytes -= share * size;
        self.traffic -= share * traffic;
    }
}

/// Puts what no limit had room for wherever there are bytes left, nearest first.
fn stow(context: &Context<'_>, rows: &mut Rows, left: &mut [f64], free: &mut [f64]) {
    for (object, left) in left.iter_mut().enumerate() {
        let row = rows.row_mut(object);
        for node in &context.nodes {
            let share = left.min(ratio(free[*node], context.size(object)));
            row[*node] += share;
            *left -= share;
            free[*node] -= share * context.size(object);
        }
        // Rounding at the brim of the last memory.
        if let Some(last) = context.nodes.last() {
            row[*last] += *left;
        }
    }
}

fn ratio(room: f64, need: f64) -> f64 {
    if need > 0.0 { (room / need).max(0.0) } else { 1.0 }
}

/// Objects of which something is left, by waiting over what they use up of a memory's bytes and traffic, most first.
fn ranking(context: &Context<'_>, node: usize, limit: f64, left: &[f64]) -> Ranking {
    let (bytes, limit) = (context.capacity[node].max(1.0), limit.max(1.0));
    let usage = |object: usize| context.size(object) / bytes + context.predictor.dram_bytes(object) / limit;
    let rank = |object: usize| context.predictor.stall_per_ns(object) / usage(object).max(f64::MIN_POSITIVE);
    let objects = (0..left.len()).filter(|object| left[*object] > 0.0);
    Ranking::new(objects.map(|object| (-rank(object), object)))
}

/// All placements of objects in quarters, halves or as wholes, fastest first: the finest of these
/// that are few enough, none where even whole objects have too many ways.
///
/// Their times do not depend on capacities, so they serve for every budget.
#[derive(Debug, Clone)]
pub(crate) struct Coarse {
    ways: Vec<Way>,
}

#[derive(Debug, Clone)]
struct Way {
    time_s: f64,
    rows: Rows,
}

impl Coarse {
    /// Looks at all placements of the finest coarseness that is affordable.
    pub(crate) fn new(context: &Context<'_>) -> Self {
        let few = |pieces: &u32| Self::of(context, *pieces);
        Self { ways: PIECES.iter().find_map(few).unwrap_or_default() }
    }

    fn of(context: &Context<'_>, pieces: u32) -> Option<Vec<Way>> {
        let choices = splits(pieces, &context.nodes, context.capacity.len());
        let objects = u32::try_from(context.profile.objects.len()).ok()?;
        let count = choices.len().checked_pow(objects).filter(|count| *count <= MOST_WAYS)?;
        let mut ways: Vec<Way> = (0..count).map(|number| Way::new(context, &choices, number)).collect();
        ways.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        Some(ways)
    }

    /// The fastest ones that fit.
    pub(crate) fn fitting(&self, context: &Context<'_>) -> Vec<Rows> {
        let fitting = self.ways.iter().filter(|way| way.fits(context));
        fitting.take(BEST_WAYS).map(|way| way.rows.clone()).collect()
    }
}

/// All rows of fractions that deal a number of pieces out to nodes.
pub(super) fn splits(pieces: u32, nodes: &[usize], memories: usize) -> Vec<Vec<f64>> {
    let mut counts = vec![vec![0; memories]];
    for _ in 0..pieces {
        counts = counts.iter().flat_map(|row| nodes.iter().map(|node| with_one_more(row, *node))).collect();
        counts.sort_unstable();
        counts.dedup();
    }
    counts.iter().map(|row| row.iter().map(|count| f64::from(*count) / f64::from(pieces)).collect()).collect()
}

fn with_one_more(row: &[u32], node: usize) -> Vec<u32> {
    let mut row = row.to_vec();
    row[node] += 1;
    row
}

impl Way {
    /// The way with this number: its digits in base `choices` are the objects' rows.
    fn new(context: &Context<'_>, choices: &[Vec<f64>], number: usize) -> Self {
        let mut digits = number;
        let mut rows = Rows::none(context.profile.objects.len(), context.capacity.len());
        for object in 0..context.profile.objects.len() {
            rows.row_mut(object).copy_from_slice(&choices[digits % choices.len()]);
            digits /= choices.len();
        }
        Self { time_s: context.predictor.time_s(&context.predictor.demand(rows.iter())), rows }
    }

    fn fits(&self, context: &Context<'_>) -> bool {
        let mut free = context.capacity.clone();
        for (object, row) in self.rows.iter().enumerate() {
            for (node, fraction) in row.iter().enumerate() {
                free[node] -= fraction * context.size(object);
            }
        }
        free.iter().all(|bytes| *bytes >= 0.0)
    }
}
