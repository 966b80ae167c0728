//! What policies see that sample misses, and the step that most of them share: rank groups by heat,
//! move hot ones up and cold ones down.

use crate::kernel::nodes::Nodes;

/// Pages per huge page, the unit in which `HeMem` and MEMTIS count.
pub(super) const HUGE: f64 = 512.0;

/// Pages that a sampler cannot tell apart by their rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Region that they belong to.
    pub region: usize,
    /// Pages on each node.
    pub pages: Vec<f64>,
    /// Reads that missed the last-level cache, per page and second.
    pub reads: f64,
    /// Lines written back, per page and second.
    pub writes: f64,
    /// Page visits, per page and second: what accessed bits show.
    pub visits: f64,
}

/// What a policy may look at.
#[derive(Debug)]
pub struct View<'a> {
    /// s from the start.
    pub now_s: f64,
    /// s since the last look.
    pub since_s: f64,
    /// Groups in the order of addresses.
    pub groups: &'a [Group],
    /// Nodes; the first is the fast one.
    pub nodes: &'a Nodes,
    /// Free pages by node.
    pub free: &'a [f64],
    /// Loaded latency by node, ns.
    pub latency_ns: &'a [f64],
}

/// Pages of a group that change their node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Move {
    /// Group.
    pub group: usize,
    /// From this node.
    pub from: usize,
    /// To this one.
    pub to: usize,
    /// So many.
    pub pages: f64,
}

impl Group {
    /// Pages on all nodes.
    pub fn all(&self) -> f64 {
        self.pages.iter().sum()
    }
}

/// Moves groups with a heat of at least `hot` up, taking room from the coldest below `cold`, until `most` pages
/// have moved; `reserve` pages of fast memory stay free.
pub(super) fn exchange(view: &View<'_>, heat: &[f64], hot: f64, cold: f64, most: f64, reserve: f64) -> Vec<Move> {
    let mut order: Vec<usize> = (0..heat.len()).filter(|group| view.groups[*group].all() > 0.0).collect();
    order.sort_by(|a, b| heat[*b].total_cmp(&heat[*a]));
    let mut moves = Vec::new();
    let mut left = most;
    let mut free = (view.free[0] - reserve).max(0.0);
    let mut victims: Vec<usize> =
        order.iter().rev().copied().filter(|g| heat[*g] < cold && view.groups[*g].pages[0] > 0.0).collect();
    victims.reverse();
    let mut victim_left = victims.last().map_or(0.0, |g| view.groups[*g].pages[0]);
    for group in order.into_iter().filter(|group| heat[*group] >= hot) {
        for from in 1..view.nodes.len() {
            let mut wanted = view.groups[group].pages[from].min(left);
            while wanted > 0.0 && left > 0.0 {
                let step = wanted.min(free);
                if step > 0.0 {
                    moves.push(Move { group, from, to: 0, pages: step });
                    (wanted, left, free) = (wanted - step, left - step, free - step);
                    continue;
                }
                let Some(victim) = victims.last().copied().filter(|victim| heat[*victim] < heat[group]) else {
                    return moves;
                };
                let step = victim_left.min(wanted).min(left);
                let to = view.nodes.list[0].demotion.unwrap_or(view.nodes.len() - 1);
                moves.push(Move { group: victim, from: 0, to, pages: step });
                (victim_left, left, free) = (victim_left - step, left - step, free + step);
                if victim_left <= 0.0 {
                    victims.pop();
                    victim_left = victims.last().map_or(0.0, |g| view.groups[*g].pages[0]);
                }
            }
        }
    }
    moves
}
