//! Memory policies of mappings, as `mbind` and `set_mempolicy` set them.
//!
//! Source: Linux 6.12 `mm/mempolicy.c` and `numa_memory_policy.rst`. Two things matter here: on
//! which node a page is put when it is first touched, and whether the NUMA scanner may protect it.
//! The scanner skips every mapping whose policy lacks `MPOL_F_MOF` (`task_numa_work`), and only the
//! built-in default and `BIND`/`PREFERRED_MANY` with `MPOL_F_NUMA_BALANCING` have it: interleaved,
//! preferred and explicitly local memory sees no hint fault at all.

use crate::kernel::nodes::Nodes;

/// A mapping's memory policy; nodes by their position in [`Nodes`].
#[derive(Debug, Clone, PartialEq)]
pub enum VmaPolicy {
    /// Built-in default: first touch, and the scanner may look.
    Default,
    /// `MPOL_LOCAL`: the same place, but nothing migrates.
    Local,
    /// `MPOL_PREFERRED`.
    Preferred(usize),
    /// `MPOL_PREFERRED_MANY`: the nearest of these with room, then any.
    PreferredMany(Vec<usize>),
    /// `MPOL_BIND`, with or without `MPOL_F_NUMA_BALANCING`.
    Bind {
        /// Allowed nodes.
        nodes: Vec<usize>,
        /// `MPOL_F_NUMA_BALANCING`.
        balancing: bool,
    },
    /// `MPOL_INTERLEAVE`, and `MPOL_WEIGHTED_INTERLEAVE` where the weights differ.
    Interleave {
        /// Nodes with their weights.
        weights: Vec<Weight>,
    },
    /// Put page by page with `move_pages`, then bound to all nodes with `MPOL_F_NUMA_BALANCING`: the only
    /// way to have interleaved memory that may migrate.
    Placed {
        /// Nodes with the shares of pages.
        weights: Vec<Weight>,
        /// Whether the scanner may look afterwards.
        balancing: bool,
    },
}

/// How many pages of a round a node gets, or which share of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight {
    /// Position of the node in [`Nodes`].
    pub node: usize,
    /// Pages, in any unit.
    pub pages: f64,
}

impl Weight {
    /// One page of a round.
    pub fn of(node: usize) -> Self {
        Self { node, pages: 1.0 }
    }
}

impl VmaPolicy {
    /// `MPOL_F_MOF`: whether the scanner may protect its pages.
    pub fn migrates_on_fault(&self) -> bool {
        match self {
            VmaPolicy::Default => true,
            VmaPolicy::Bind { balancing, .. } | VmaPolicy::Placed { balancing, .. } => *balancing,
            VmaPolicy::Local | VmaPolicy::Preferred(_) | VmaPolicy::PreferredMany(_) | VmaPolicy::Interleave { .. } => {
                false
            }
        }
    }

    /// Nodes that pages are meant for, with their weights.
    pub fn turns(&self) -> Vec<Weight> {
        match self {
            VmaPolicy::Default | VmaPolicy::Local => vec![Weight::of(0)],
            VmaPolicy::Preferred(node) => vec![Weight::of(*node)],
            VmaPolicy::Bind { nodes, .. } | VmaPolicy::PreferredMany(nodes) => {
                nodes.iter().min().map(|node| Weight::of(*node)).into_iter().collect()
            }
            VmaPolicy::Interleave { weights } | VmaPolicy::Placed { weights, .. } => {
                weights.iter().copied().filter(|weight| weight.pages > 0.0).collect()
            }
        }
    }

    /// Where a page that is meant for `node` may go, in order.
    pub fn zonelist(&self, node: usize, nodes: &Nodes) -> Vec<usize> {
        let all = &nodes.zonelists[node];
        match self {
            VmaPolicy::Bind { nodes: allowed, .. } => all.iter().copied().filter(|n| allowed.contains(n)).collect(),
            VmaPolicy::PreferredMany(first) => {
                let (wanted, others): (Vec<usize>, Vec<usize>) = all.iter().partition(|n| first.contains(n));
                wanted.into_iter().chain(others).collect()
            }
            _ => all.clone(),
        }
    }
}
