//! How long work takes: where the time that the traffic is given equals the time that it takes.
//!
//! `T = compute + Σ wait·latency(T)`, what slow reads hold up, and no less than the roofline or what limits on lines in
//! flight need: the law of the placement predictor, so that both answer alike where nothing migrates (`tests/tiering`
//! holds them to it).

use tierloom_contention::{Flow, Traffic, Work, fixed_point, held_up_s};

use crate::kernel::nodes::Nodes;

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
    let asked = || nodes.list.iter().zip(cells);
    let needed = |seconds: f64| {
        let waits = asked().filter(|(_, work)| work.wait > 0.0);
        let waits_s: f64 = waits.map(|(node, work)| flow.wait_s(node.memory, *work, seconds)).sum();
        let random = asked().filter(|(_, work)| work.has_beside());
        let parts = random.map(|(node, work)| (*work, flow.random_ns(node.memory, seconds)));
        (compute_s + waits_s + held_up_s(parts)).max(flow.held_back(seconds).1)
    };
    let time_s = fixed_point(flow.least_s().max(needed(f64::INFINITY)), needed);
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
