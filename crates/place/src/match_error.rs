//! Why a plan's memories are not matched with this machine's nodes, and what to type.

use std::fmt::Write;

use thiserror::Error;
use tierloom_model::HostMemory;
use tierloom_model::units::format_bytes;

/// Why a plan's memories are not matched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MatchError {
    /// The plan has no memory of a given name.
    #[error("the plan has no node `{name}`\nhint: its nodes are {known}")]
    UnknownMemory {
        /// As given.
        name: String,
        /// Those of the plan.
        known: String,
    },
    /// A given node does not exist.
    #[error("--node {name}={node}: this machine has no node {node}\nhint: its nodes are {known}")]
    NoSuchNode {
        /// Memory of the plan.
        name: String,
        /// As given.
        node: u32,
        /// Those of this machine.
        known: String,
    },
    /// Some memories have no node here, or several.
    #[error("{}", refusal(.open, .host))]
    Refused {
        /// The memories that are left, each with what is wrong and the nodes that may be meant.
        open: Vec<Open>,
        /// This machine's nodes, for people.
        host: String,
    },
}

/// A memory without a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Name in the plan.
    pub memory: String,
    /// What is wrong.
    pub problem: String,
    /// Nodes that may be meant, or, where none is, those on which to rehearse.
    pub nodes: Vec<u32>,
}

/// This machine's nodes: `0 (dram, 64 GiB)`, …
pub(crate) fn host_text(host: &[HostMemory]) -> String {
    let node = |here: &HostMemory| {
        let near = if here.near == Some(false) { ", on another socket" } else { "" };
        format!("{} ({}{near}, {})", here.node, here.kind, format_bytes(here.capacity_bytes))
    };
    host.iter().map(node).collect::<Vec<_>>().join(", ")
}

/// A node for each memory, where there is one; memories that may be the same nodes get one each.
pub(crate) fn proposed(open: &[Open]) -> Vec<Option<u32>> {
    let node = |(index, Open { nodes, .. }): (usize, &Open)| {
        let same = open[..index].iter().filter(|before| before.nodes == *nodes).count();
        nodes.get(same % nodes.len().max(1)).copied()
    };
    open.iter().enumerate().map(node).collect()
}

/// What is wrong with each memory, and the options to type: a node for each, and which others there are.
fn refusal(open: &[Open], host: &str) -> String {
    let mut text = format!("the plan's memories do not match this machine's nodes, which are {host}");
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (Open { memory, problem, nodes }, proposed) in open.iter().zip(proposed(open)) {
        let _ = write!(text, "\n  {memory}: {problem}");
        first.extend(proposed.map(|node| format!("--node {memory}={node}")));
        let rest = nodes.iter().filter(|node| Some(**node) != proposed);
        others.extend(rest.map(|node| format!("--node {memory}={node}")));
    }
    let or =
        if others.is_empty() { String::new() } else { format!("; others that may be meant: {}", others.join(", ")) };
    let _ = write!(text, "\nhint: say which nodes to take: {}{or}", first.join(" "));
    text
}
