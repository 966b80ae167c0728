//! How long work takes: where the time that the traffic is given equals the time that it takes.
//!
//! `T = compute + Σ wait·latency(T)`, and no less than the roofline: the law of the placement
//! predictor, so that both answer alike where nothing migrates (`tests/tiering` holds them to it).

use tierloom_contention::{Bracket, Flow, Traffic, Work, increasing_root};

use crate::kernel::nodes::Nodes;

/// Relative width at which the time is good enough.
const TOLERANCE: f64 = 1e-10;
/// Nearest distance from a wall that is looked at, relative to it.
const NEAREST: f64 = 1e-10;

/// Time of some work and what the nodes did meanwhile.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settled {
    /// Seconds.
    pub(crate) time_s: f64,
    /// Latency by node, ns.
    pub(crate) latency_ns: Vec<f64>,
}

/// Solves for the time of computing and of each node's work; infinite where a node cannot be reached.
pub(crate) fn settle(nodes: &Nodes, compute_s: f64, cells: &[Work]) -> Settled {
    let mut traffic = vec![Traffic::default(); nodes.fabric.memories()];
    for (node, work) in nodes.list.iter().zip(cells) {
        traffic[node.memory] = work.traffic();
    }
    let flow = nodes.fabric.flow(traffic.into_iter());
    let waits = || nodes.list.iter().zip(cells).filter(|(_, work)| work.wait > 0.0);
    let needed = |seconds: f64| {
        compute_s + waits().map(|(node, work)| work.wait * flow.latency_ns(node.memory, seconds)).sum::<f64>()
    };
    let time_s = solve(flow.least_s().max(needed(f64::INFINITY)), needed);
    Settled { time_s, latency_ns: nodes.list.iter().map(|node| latency_ns(&flow, node.memory, time_s)).collect() }
}

/// Latency at the settled time; a hundredth short of full where only write-backs fill a station.
fn latency_ns(flow: &Flow<'_>, memory: usize, time_s: f64) -> f64 {
    if time_s == 0.0 {
        return flow.latency_ns(memory, f64::INFINITY);
    }
    let latency_ns = flow.latency_ns(memory, time_s);
    if latency_ns.is_finite() { latency_ns } else { flow.latency_ns(memory, time_s / 0.99) }
}

/// The fixed point at or above a floor.
fn solve(floor: f64, needed: impl Fn(f64) -> f64) -> f64 {
    if floor == 0.0 || !floor.is_finite() {
        return floor;
    }
    // Multiplied by the distance from the floor, where latency may have a pole.
    let left_over = |seconds: f64| (seconds - needed(seconds)) * (seconds - floor);
    let low = floor * (1.0 + NEAREST);
    let at_low = left_over(low);
    if at_low >= 0.0 {
        return floor;
    }
    // The function falls, so its value at a time that is too short is a time that is long enough.
    let mut short = low;
    let mut gap = 1e-6;
    while !needed(short).is_finite() && gap < 1.0 {
        short = floor * (1.0 + gap);
        gap *= 10.0;
    }
    let high = needed(short).max(short);
    increasing_root(Bracket { low, at_low, high, at_high: left_over(high) }, TOLERANCE, left_over)
}
