//! Execution counts of all blocks of a function from those of a few: flow conservation.
//!
//! What enters a block leaves it (Kirchhoff). Every flow that obeys this is a sum of circulations, one
//! for each edge outside a spanning tree of the graph (closed over the world outside the function).
//! The circulations are fitted to what was observed by weighted least squares: counts of clocks with
//! their small errors, densities of samples with their large ones. Edges that come out negative are
//! pulled to zero and the fit is repeated.

use std::collections::BTreeMap;

use crate::frequency::normal_equations::{NormalEquations, Row};
use tierloom_binary::cfg::{BlockId, Function, LoopId};

/// Functions with more independent circulations than this are left to the densities: the work grows
/// with the cube.
const MOST_CIRCULATIONS: usize = 150;
/// The same of functions that are solved together, which is done once and not for each.
pub(crate) const MOST_TOGETHER: usize = 400;
/// Rounds of pulling negative edges to zero, and of those the first ones, which let edges go again.
const ROUNDS: usize = 30;
const LETTING_GO: usize = 15;
/// A negative edge is pulled to zero, give or take this share of what it was.
const PULLED: f64 = 0.01;
/// Give or take at least this share of what flows there: a weight without bound would drown all others in
/// rounding.
const LEAST_PULLED: f64 = 1e-4;

/// Control flow of functions that are counted together, each with a world outside of its own.
pub(crate) struct FlowNetwork {
    edges: Vec<Edge>,
    nodes: usize,
    /// By function: the number of its first block.
    first: Vec<usize>,
    /// Flows that conservation leaves open: one for each edge outside a spanning tree.
    circulations: Vec<Vec<(usize, f64)>>,
    /// How many there are, even where they are not kept because they are too many.
    open: usize,
}

impl FlowNetwork {
    pub(crate) fn of(functions: &[&Function]) -> Self {
        let mut net = Self { edges: Vec::new(), nodes: 0, first: Vec::new(), circulations: Vec::new(), open: 0 };
        let mut depths = Vec::new();
        for function in functions {
            let first = net.nodes;
            let own = edges(function);
            depths.extend(own.iter().map(|edge| depth(function, *edge)));
            net.edges.extend(own.into_iter().map(|(from, to)| (from + first, to + first)));
            net.first.push(first);
            net.nodes += function.blocks.len() + 1;
        }
        let tree = Tree::span(&net.edges, &depths, net.nodes);
        let chords: Vec<usize> = (0..net.edges.len()).filter(|edge| !tree.used[*edge]).collect();
        net.open = chords.len();
        if net.open <= MOST_TOGETHER {
            net.circulations = chords.into_iter().map(|chord| tree.close(&net.edges, chord)).collect();
        }
        net
    }

    /// Whether it is small enough to be solved.
    pub(crate) fn is_small(&self) -> bool {
        self.open <= MOST_CIRCULATIONS
    }

    /// Number of a function's block.
    pub(crate) fn block(&self, function: usize, block: BlockId) -> usize {
        self.first[function] + block.index()
    }

    /// The part of a solution that belongs to a function: its blocks, then its outside.
    pub(crate) fn own<'a>(&self, function: usize, solution: &'a [f64]) -> &'a [f64] {
        &solution[self.first[function]..self.first.get(function + 1).copied().unwrap_or(self.nodes)]
    }

    pub(crate) fn circulations(&self) -> usize {
        self.open
    }
}

/// Something known of a sum of block and edge counts, with one standard deviation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    /// Blocks with their coefficients, by their numbers in the network.
    pub(crate) blocks: Vec<(usize, f64)>,
    /// Edges with their coefficients; the outside has the number of blocks as its number.
    pub(crate) edges: Vec<(Edge, f64)>,
    pub(crate) value: f64,
    pub(crate) deviation: f64,
}

impl Observation {
    /// A block ran this often.
    pub(crate) fn block(block: BlockId, value: f64, deviation: f64) -> Self {
        Self { blocks: vec![(block.index(), 1.0)], edges: Vec::new(), value, deviation }
    }

    /// The function was entered this often.
    pub(crate) fn entered(function: &Function, value: f64, deviation: f64) -> Self {
        Self { blocks: Vec::new(), edges: vec![((function.blocks.len(), 0), 1.0)], value, deviation }
    }

    /// The same of a function that stands in a net.
    pub(crate) fn within(mut self, net: &FlowNetwork, function: usize) -> Self {
        let first = net.first[function];
        self.blocks.iter_mut().for_each(|(block, _)| *block += first);
        self.edges.iter_mut().for_each(|((from, to), _)| (*from, *to) = (*from + first, *to + first));
        self
    }

    /// A loop goes round this often each time it is entered; `deviation` is of its header's count.
    pub(crate) fn rounds(function: &Function, inside: LoopId, rounds: f64, deviation: f64) -> Self {
        let header = function.loops[inside].header;
        let edges = function.entries(inside).map(|from| (edge(from, header), -rounds)).collect();
        Self { blocks: vec![(header.index(), 1.0)], edges, value: 0.0, deviation }
    }
}

/// Executions of each block, by function, that fit the observations best.
pub(crate) fn solve(net: &FlowNetwork, observations: &[Observation]) -> Vec<f64> {
    let through = by_edge(&net.circulations, net.edges.len());
    let (flows, _) = fitted(net, observations, &through);
    let mut counts = vec![0.0; net.nodes];
    for (edge, flow) in net.edges.iter().zip(&flows) {
        counts[edge.1] += flow.max(0.0);
    }
    counts
}

/// One standard deviation of what [`solve`] says of each block, if each observation is as good as it says.
pub(crate) fn deviations(net: &FlowNetwork, observations: &[Observation]) -> Vec<f64> {
    let through = by_edge(&net.circulations, net.edges.len());
    let (_, system) = fitted(net, observations, &through);
    let mut into: Vec<Vec<(usize, f64)>> = vec![Vec::new(); net.nodes];
    for (edge, circulations) in net.edges.iter().zip(&through) {
        into[edge.1].extend(circulations);
    }
    system.deviations(into.into_iter().map(merged))
}

fn fitted(net: &FlowNetwork, observations: &[Observation], through: &Through) -> (Vec<f64>, NormalEquations) {
    let rows: Vec<Row> = observations.iter().map(|observation| row(observation, &net.edges, through)).collect();
    fit(&rows, net, through, scale(observations))
}

/// From and to.
pub(crate) type Edge = (usize, usize);

/// The edge from one block to another.
pub(crate) fn edge(from: BlockId, to: BlockId) -> Edge {
    (from.index(), to.index())
}

/// Circulations through an edge, with their direction.
type Through = Vec<Vec<(usize, f64)>>;

fn edges(function: &Function) -> Vec<Edge> {
    let outside = function.blocks.len();
    let mut edges: Vec<Edge> = Vec::new();
    for (id, block) in function.blocks.iter().enumerate() {
        // What nothing jumps to is padding or the landing pad of an exception: it does not run.
        if id == 0 {
            edges.push((outside, id));
        }
        let taken = block.successors.iter().filter(|to| !function.is_dead_end(BlockId::new(id), **to));
        edges.extend(taken.map(|to| (id, to.index())));
        if block.leaves || block.successors.is_empty() {
            edges.push((id, outside));
        }
    }
    edges
}

/// Loops around an edge.
fn depth(function: &Function, (from, to): Edge) -> usize {
    if from.max(to) == function.blocks.len() {
        return 0;
    }
    let (from, to) = (BlockId::new(from), BlockId::new(to));
    function.loops_around(from).filter(|around| function.loops[*around].contains(to)).count()
}

struct Tree {
    used: Vec<bool>,
    /// By node: the edge towards the root and the depth.
    up: Vec<Option<usize>>,
    depth: Vec<usize>,
}

impl Tree {
    /// A spanning tree of the edges deepest in loops (Kruskal 1956). What is outside it flows least, so
    /// that all flows are sums of smaller ones and not small differences of large ones.
    fn span(edges: &[Edge], depths: &[usize], nodes: usize) -> Self {
        let mut tree = Self { used: vec![false; edges.len()], up: vec![None; nodes], depth: vec![usize::MAX; nodes] };
        let mut group: Vec<usize> = (0..nodes).collect();
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by_key(|edge| std::cmp::Reverse(depths[*edge]));
        for edge in order {
            let (from, to) = (root(&mut group, edges[edge].0), root(&mut group, edges[edge].1));
            if from != to {
                group[from] = to;
                tree.used[edge] = true;
                neighbours[edges[edge].0].push(edge);
                neighbours[edges[edge].1].push(edge);
            }
        }
        for root in (0..nodes).rev() {
            if tree.depth[root] == usize::MAX {
                tree.hang(edges, &neighbours, root);
            }
        }
        tree
    }

    fn hang(&mut self, edges: &[Edge], neighbours: &[Vec<usize>], root: usize) {
        self.depth[root] = 0;
        let mut open = std::collections::VecDeque::from([root]);
        while let Some(node) = open.pop_front() {
            for &edge in &neighbours[node] {
                let other = if edges[edge].0 == node { edges[edge].1 } else { edges[edge].0 };
                if self.depth[other] == usize::MAX {
                    self.depth[other] = self.depth[node] + 1;
                    self.up[other] = Some(edge);
                    open.push_back(other);
                }
            }
        }
    }

    /// The chord and the way back through the tree.
    fn close(&self, edges: &[Edge], chord: usize) -> Vec<(usize, f64)> {
        let (mut from, mut to) = edges[chord];
        let mut cycle = vec![(chord, 1.0)];
        // The way back runs from `to` up to the common ancestor and down to `from`.
        while from != to {
            if self.depth[to] >= self.depth[from] {
                let Some(edge) = self.up[to] else { break };
                let forward = edges[edge].0 == to;
                cycle.push((edge, if forward { 1.0 } else { -1.0 }));
                to = if forward { edges[edge].1 } else { edges[edge].0 };
            } else {
                let Some(edge) = self.up[from] else { break };
                let forward = edges[edge].1 == from;
                cycle.push((edge, if forward { 1.0 } else { -1.0 }));
                from = if forward { edges[edge].0 } else { edges[edge].1 };
            }
        }
        cycle
    }
}

/// Representative of a node's group, with the way to it made short.
fn root(group: &mut [usize], mut node: usize) -> usize {
    while group[node] != node {
        group[node] = group[group[node]];
        node = group[node];
    }
    node
}

fn by_edge(circulations: &[Vec<(usize, f64)>], edges: usize) -> Through {
    let mut through = vec![Vec::new(); edges];
    for (id, cycle) in circulations.iter().enumerate() {
        for (edge, sign) in cycle {
            through[*edge].push((id, *sign));
        }
    }
    through
}

/// A block runs as often as its incoming edges together.
fn row(observation: &Observation, edges: &[Edge], through: &Through) -> Row {
    let mut coefficients = Vec::new();
    for (block, factor) in &observation.blocks {
        for (edge, _) in edges.iter().enumerate().filter(|(_, edge)| edge.1 == *block) {
            coefficients.extend(through[edge].iter().map(|(id, sign)| (*id, sign * factor)));
        }
    }
    for (wanted, factor) in &observation.edges {
        for (edge, _) in edges.iter().enumerate().filter(|(_, edge)| *edge == wanted) {
            coefficients.extend(through[edge].iter().map(|(id, sign)| (*id, sign * factor)));
        }
    }
    let weight = 1.0 / observation.deviation.max(1e-9 * observation.value.abs()).max(1e-12).powi(2);
    Row { coefficients: merged(coefficients), value: observation.value, weight }
}

fn merged(mut coefficients: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    coefficients.sort_by_key(|(id, _)| *id);
    let mut sum: Vec<(usize, f64)> = Vec::new();
    for (id, factor) in coefficients {
        match sum.last_mut() {
            Some(last) if last.0 == id => last.1 += factor,
            _ => sum.push((id, factor)),
        }
    }
    sum.retain(|(_, factor)| *factor != 0.0);
    sum
}

/// Largest value among the observations: flows that nothing observes are held near zero on it.
fn scale(observations: &[Observation]) -> f64 {
    observations.iter().map(|observation| observation.value.abs()).fold(1.0, f64::max)
}

/// Edges that come out negative are pulled to zero, all at once; one that then would rather be positive was
/// negative because of others, and is let go again. Block pivoting for least squares without negative values
/// (Portugal, Júdice and Vicente, *A comparison of block pivoting and interior-point algorithms for linear
/// least squares problems with nonnegative variables*, 1994), except that in the end nothing is let go: the
/// fit has to come to an end.
fn fit(rows: &[Row], net: &FlowNetwork, through: &Through, scale: f64) -> (Vec<f64>, NormalEquations) {
    let mut free = NormalEquations::new(net.circulations.len(), 1.0 / (1e6 * scale).powi(2));
    for row in rows {
        free.add(row.clone());
    }
    // By edge: the weight of the pull.
    let mut pulled: BTreeMap<usize, f64> = BTreeMap::new();
    let mut flows = vec![0.0; through.len()];
    let mut system = free.clone();
    for round in 0..ROUNDS {
        system.clone_from(&free);
        for (edge, weight) in &pulled {
            system.add(Row { coefficients: through[*edge].clone(), value: 0.0, weight: *weight });
        }
        let solution = system.solve();
        flows = through.iter().map(|part| part.iter().map(|(id, sign)| sign * solution[*id]).sum()).collect();
        let around = around(net, &flows);
        let counts = |edge: &usize| flows[*edge].abs() > 1e-6 * around[*edge] + 1e-3;
        let (negative, positive): (Vec<usize>, Vec<usize>) =
            (0..flows.len()).filter(counts).partition(|edge| flows[*edge] < 0.0);
        let held = pulled.len();
        if round < LETTING_GO {
            pulled.retain(|edge, _| !positive.contains(edge));
        }
        if negative.is_empty() && pulled.len() == held {
            break;
        }
        for edge in negative {
            let deviation = (PULLED * flows[edge].abs()).max(LEAST_PULLED * around[edge]);
            *pulled.entry(edge).or_default() += 1.0 / (deviation * deviation);
        }
    }
    (flows, system)
}

/// By edge: the largest flow through either of its ends.
fn around(net: &FlowNetwork, flows: &[f64]) -> Vec<f64> {
    let mut most = vec![0.0f64; net.nodes];
    for (edge, flow) in net.edges.iter().zip(flows) {
        most[edge.0] = most[edge.0].max(flow.abs());
        most[edge.1] = most[edge.1].max(flow.abs());
    }
    net.edges.iter().map(|edge| most[edge.0].max(most[edge.1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::nest::NEST;
    use proptest::prelude::*;

    fn close(counts: &[f64], expected: &[f64]) -> bool {
        counts.iter().zip(expected).all(|(count, right)| (count - right).abs() <= 0.002 * right.max(1.0))
    }

    #[test]
    fn two_counts_of_a_nest_give_all_five_blocks() {
        let function = Function::decode(NEST, 0x1000);
        let known = [Observation::block(BlockId::new(2), 1000.0, 1.0), Observation::block(BlockId::new(3), 50.0, 0.1)];
        let entered = Observation::block(BlockId::new(0), 2.0, 0.01);
        let counts = solve(&FlowNetwork::of(&[&function]), &[&known[..], &[entered]].concat());
        assert!(close(&counts[..5], &[2.0, 50.0, 1000.0, 50.0, 2.0]), "{counts:?}");
    }

    #[test]
    fn rounds_tie_an_inner_loop_to_its_outer_one() {
        let function = Function::decode(NEST, 0x1000);
        let inner = function.blocks[2].inner_loop.unwrap();
        let observations =
            [Observation::block(BlockId::new(3), 50.0, 0.1), Observation::rounds(&function, inner, 20.0, 1.0)];
        let counts = solve(&FlowNetwork::of(&[&function]), &observations);
        assert!(close(&counts[1..4], &[50.0, 1000.0, 50.0]), "{counts:?}");
    }

    #[test]
    fn a_caller_that_runs_once_counts_what_its_callee_loops() {
        // The callee is the nest, 20 rounds of the outer loop an entry; the caller ran 3 times in all.
        let (callee, caller) = (Function::decode(NEST, 0x1000), Function::decode(&[0x90, 0xc3], 0));
        let net = FlowNetwork::of(&[&callee, &caller]);
        let outer = callee.blocks[3].inner_loop.unwrap();
        let mut called = Observation::entered(&callee, 0.0, 0.003).within(&net, 0);
        called.blocks.push((net.block(1, BlockId::new(0)), -1.0));
        let observations = [
            Observation::entered(&caller, 3.0, 0.003).within(&net, 1),
            called,
            Observation::rounds(&callee, outer, 20.0, 0.06).within(&net, 0),
            Observation::block(BlockId::new(2), 1.2e9, 1e9).within(&net, 0),
        ];
        let counts = solve(&net, &observations);
        assert!(close(net.own(0, &counts), &[3.0, 60.0, 1.2e9, 60.0, 3.0, 3.0]), "{counts:?}");
    }

    #[test]
    fn a_branch_nobody_counted_follows_the_samples() {
        // 0: cmp; je 2 | 1: nop;nop;nop;nop | 2: dec rdi; jne 0 | 3: ret
        let code = [0x39, 0xc0, 0x74, 0x04, 0x90, 0x90, 0x90, 0x90, 0x48, 0xff, 0xcf, 0x75, 0xf3, 0xc3];
        let function = Function::decode(&code, 0);
        let observations =
            [Observation::block(BlockId::new(2), 1e6, 1e3), Observation::block(BlockId::new(1), 2.5e5, 1e5)];
        let counts = solve(&FlowNetwork::of(&[&function]), &observations);
        assert!(close(&counts[..3], &[1e6, 2.5e5, 1e6]), "{counts:?}");
    }

    #[test]
    fn an_edge_that_was_negative_because_of_another_one_is_let_go() {
        // 0: cmp; je 2 | 1: nops | 2: cmp; je 4 | 3: nops | 4: dec rdi; jne 0 | 5: ret
        let branch = [0x39, 0xc0, 0x74, 0x04, 0x90, 0x90, 0x90, 0x90];
        let code = [&branch[..], &branch[..], &[0x48, 0xff, 0xcf, 0x75, 0xeb, 0xc3]].concat();
        let function = Function::decode(&code, 0);
        // Block 1 cannot run oftener than its branch; that it seems to makes the second jump negative, too.
        let tie = Observation { edges: vec![((2, 4), 1.0)], ..Observation::block(BlockId::new(1), 180.0, 0.1) };
        let observations =
            [Observation::block(BlockId::new(0), 100.0, 0.1), Observation::block(BlockId::new(1), 200.0, 30.0), tie];
        let counts = solve(&FlowNetwork::of(&[&function]), &observations);
        assert!((counts[1] - 100.0).abs() < 1.0 && (counts[3] - 20.0).abs() < 1.0, "{counts:?}");
    }

    #[test]
    fn a_block_is_as_sure_as_what_tells_of_it() {
        let function = Function::decode(NEST, 0x1000);
        let inner = function.blocks[2].inner_loop.unwrap();
        // The outer loop ran 50 times, give or take one, and its inner loop goes round 20 times, give or take nearly none.
        let observations = [
            Observation::block(BlockId::new(3), 50.0, 1.0),
            Observation::rounds(&function, inner, 20.0, 0.01),
            Observation::block(BlockId::new(0), 2.0, 0.5),
        ];
        let found = deviations(&FlowNetwork::of(&[&function]), &observations);
        let expected = [0.5, 1.0, 20.0, 1.0, 0.5];
        let close = found.iter().zip(expected).all(|(found, right)| (found / right - 1.0).abs() < 0.01);
        assert!(close, "{found:?}");
        let unsure = Observation::rounds(&function, inner, 20.0, 500.0);
        let found = deviations(&FlowNetwork::of(&[&function]), &[observations[0].clone(), unsure]);
        assert!(found[2] > 400.0 && found[3] < 1.1, "{found:?}");
    }

    proptest! {
        /// Contradictory or not: counts are never negative, and what enters the function leaves it.
        #[test]
        fn flows_stay_flows(values in prop::collection::vec(0.0f64..1e9, 5)) {
            let function = Function::decode(NEST, 0x1000);
            let observations: Vec<_> =
                values.iter().enumerate().map(|(b, v)| Observation::block(BlockId::new(b), *v, 0.1 * v + 1.0)).collect();
            let counts = solve(&FlowNetwork::of(&[&function]), &observations);
            prop_assert!(counts.iter().all(|count| count.is_finite() && *count >= 0.0));
            let most = values.iter().copied().fold(1.0, f64::max);
            prop_assert!((counts[0] - counts[4]).abs() <= 1e-3 * most);
            prop_assert!(counts[1] <= counts[2] * 1.001 + 1e-3 * most && (counts[1] - counts[3]).abs() <= 1e-3 * most);
        }
    }
}
