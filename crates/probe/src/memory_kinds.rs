//! What each memory of a machine is made of, and how sure that is: the one rule, for this machine and for every
//! description of another.
//!
//! The kernel has no such attribute. In this order: what the description says; the device that the memory was onlined
//! from; firmware's bandwidths; the CPUs beside it. Where none of them tells, the kind is a guess, and is called one.
//! `tests/machine_formats/memory_kinds.txt` has machines and what their memories are.

use serde::{Deserialize, Serialize};
use tierloom_linux::node_devices::NodeDevice;
use tierloom_model::MemoryKind;

/// So many times the bandwidth of DRAM is that of stacked memory; hwloc's rule (`hwloc__guess_dram_hbm_tiers`).
const STACKED: u64 = 2;
/// Processors that are sold with HBM in their package, by a part of the name, or family and model in hexadecimal.
const IN_PACKAGE: [(&str, &str); 3] = [("CPU Max", "Xeon Max"), ("Xeon Phi", "Xeon Phi"), ("06/57", "Xeon Phi")];

/// A machine as far as the kinds of its memories follow from it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFacts {
    /// Processor model.
    pub model: String,
    /// Its memory nodes, those without memory among them.
    pub nodes: Vec<NodeFacts>,
    /// Nodes with CPUs that can be used.
    pub sockets: Vec<u32>,
    /// Nodes that CPUs belong to, whether these run or not.
    pub owners: Vec<u32>,
    /// Whether there are CPUs that belong to none of them.
    pub hidden_cpus: bool,
    /// From a socket, to a node, how far.
    pub distances: Vec<(u32, u32, u64)>,
}

/// One node of it.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFacts {
    /// Its number.
    pub node: u32,
    /// What the description says it is.
    pub said: Option<MemoryKind>,
    /// What it was onlined from.
    pub device: Option<NodeDevice>,
    /// The most that firmware tells from anywhere.
    pub read_mb_s: Option<u64>,
    /// Whether the kernel itself says that CPUs sit on it; descriptions may give a node the CPUs nearest to it.
    pub has_cpus: bool,
    /// Whether it is a GPU's.
    pub of_gpu: bool,
    /// Bytes, if they are known.
    pub bytes: Option<u64>,
}

/// What a memory is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundKind {
    /// The node.
    pub node: u32,
    /// Its kind.
    pub kind: MemoryKind,
    /// Whether nothing tells, and this is the likeliest.
    pub guessed: bool,
    /// Why.
    pub because: String,
}

/// What every node of a machine is made of, in the order of its nodes.
pub fn memory_kinds(machine: &MachineFacts) -> Vec<FoundKind> {
    machine.nodes.iter().map(|node| machine.kind(node)).collect()
}

impl MachineFacts {
    fn kind(&self, node: &NodeFacts) -> FoundKind {
        let known = self.known(node);
        let guessed = known.is_none();
        let (kind, because) = known.unwrap_or_else(|| self.likeliest(node));
        FoundKind { node: node.node, kind, guessed, because }
    }

    fn known(&self, node: &NodeFacts) -> Option<(MemoryKind, String)> {
        if let Some(kind) = node.said {
            return Some((kind, "its description says so".to_owned()));
        }
        if node.device == Some(NodeDevice::Pmem) {
            return Some((MemoryKind::Pmem, "it was onlined from a DAX device of an NVDIMM".to_owned()));
        }
        if let Some(because) = self.stacked(node) {
            return Some((MemoryKind::Hbm, because));
        }
        if node.device == Some(NodeDevice::Cxl) {
            return Some((MemoryKind::Cxl, "it was onlined from a DAX device, and there are CXL regions".to_owned()));
        }
        let of_cpus = node.has_cpus || self.owners.contains(&node.node);
        of_cpus.then(|| (MemoryKind::Dram, "CPUs sit on its node".to_owned()))
    }

    /// Why it is stacked memory, if it is by firmware's bandwidths.
    fn stacked(&self, node: &NodeFacts) -> Option<String> {
        let (most, least) = node.read_mb_s.zip(self.slowest_dram_mb_s())?;
        let gb_s = |mb_s: u64| mb_s as f64 / 1e3;
        (most > STACKED.saturating_mul(least))
            .then(|| format!("firmware gives it {} GB/s, and {} to the slowest DRAM", gb_s(most), gb_s(least)))
    }

    fn likeliest(&self, node: &NodeFacts) -> (MemoryKind, String) {
        let in_package = IN_PACKAGE.iter().find(|(part, _)| self.model.contains(part));
        if let (Some((_, name)), None | Some(NodeDevice::Reserved)) = (in_package, node.device) {
            return (MemoryKind::Hbm, format!("it has no CPUs, and a {name} has HBM in its package"));
        }
        if self.sockets.iter().any(|socket| self.nearest_memory(*socket) == Some(node.node)) {
            let because = "it has no CPUs, and CPUs whose own node has no memory have none nearer";
            return (MemoryKind::Dram, because.to_owned());
        }
        if self.hidden_cpus && node.device.is_none() && self.is_as_near_as_dram(node.node) {
            let because = "it may belong to CPUs that are not described, and is as near as other DRAM";
            return (MemoryKind::Dram, because.to_owned());
        }
        let is_reserved = node.device == Some(NodeDevice::Reserved);
        let reserved = if is_reserved { ": firmware keeps it for a special purpose" } else { "" };
        (MemoryKind::Cxl, format!("it has no CPUs, and no device or figure says what it is{reserved}"))
    }

    fn slowest_dram_mb_s(&self) -> Option<u64> {
        let beside_cpus = self.nodes.iter().filter(|node| self.owners.contains(&node.node) && node.may_be_dram());
        beside_cpus.filter_map(|node| node.read_mb_s).filter(|mb_s| *mb_s > 0).min()
    }

    fn distance(&self, socket: u32, node: u32) -> Option<u64> {
        self.distances.iter().find(|(from, to, _)| (*from, *to) == (socket, node)).map(|(.., far)| *far)
    }

    /// The memory nearest to CPUs whose own node has none.
    fn nearest_memory(&self, socket: u32) -> Option<u32> {
        let own = self.nodes.iter().find(|node| node.node == socket)?;
        let holds = |node: &&NodeFacts| !node.of_gpu && node.bytes.is_some_and(|bytes| bytes > 0);
        let far = |node: &NodeFacts| Some((self.distance(socket, node.node)?, node.node));
        let nearest = self.nodes.iter().filter(holds).filter_map(far).min();
        nearest.filter(|_| own.bytes == Some(0)).map(|(_, node)| node)
    }

    /// Whether it is no farther from any socket than the farthest DRAM of CPUs.
    fn is_as_near_as_dram(&self, node: u32) -> bool {
        let of_cpus = self.owners.iter().map(|owner| self.farthest(*owner)).max();
        of_cpus.is_some_and(|most| self.farthest(node) <= most)
    }

    /// The distance from the farthest socket but its own; 0 where nobody tells.
    fn farthest(&self, node: u32) -> u64 {
        let others = self.sockets.iter().filter(|socket| **socket != node);
        others.filter_map(|socket| self.distance(*socket, node)).max().unwrap_or(0)
    }
}

impl NodeFacts {
    fn may_be_dram(&self) -> bool {
        self.device.is_none() && matches!(self.said, None | Some(MemoryKind::Dram | MemoryKind::Lpddr))
    }
}

/// What no tree of `/sys` can show; `tests/recorded.rs` has the rest.
#[cfg(test)]
mod tests {
    use super::*;

    /// Node 0 with CPUs, and node 1 without.
    fn machine(second: NodeFacts) -> MachineFacts {
        let first = NodeFacts { has_cpus: true, read_mb_s: Some(100), bytes: Some(1 << 30), ..NodeFacts::default() };
        let second = NodeFacts { node: 1, bytes: Some(1 << 30), ..second };
        let (nodes, sockets, owners) = (vec![first, second], vec![0], vec![0]);
        MachineFacts { nodes, sockets, owners, distances: vec![(0, 0, 10), (0, 1, 20)], ..MachineFacts::default() }
    }

    fn kind(machine: &MachineFacts, node: usize) -> (MemoryKind, bool) {
        let found = &memory_kinds(machine)[node];
        (found.kind, found.guessed)
    }

    #[test]
    fn what_is_said_counts_before_everything() {
        let device = Some(NodeDevice::Pmem);
        let said = NodeFacts { said: Some(MemoryKind::Lpddr), device, read_mb_s: Some(201), ..NodeFacts::default() };
        assert_eq!(kind(&machine(said), 1), (MemoryKind::Lpddr, false));
    }

    #[test]
    fn memory_as_near_as_dram_may_belong_to_cpus_that_are_not_described() {
        let mut hidden = MachineFacts { hidden_cpus: true, ..machine(NodeFacts::default()) };
        assert_eq!(kind(&hidden, 1), (MemoryKind::Cxl, true), "20 is farther than any DRAM of CPUs");
        hidden.nodes.push(NodeFacts { node: 2, has_cpus: true, bytes: Some(1 << 30), ..NodeFacts::default() });
        hidden.owners.push(2);
        hidden.distances.push((0, 2, 20));
        assert_eq!(kind(&hidden, 1), (MemoryKind::Dram, true));
        hidden.hidden_cpus = false;
        assert_eq!(kind(&hidden, 1), (MemoryKind::Cxl, true));
    }
}
