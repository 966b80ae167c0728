//! This machine's memories as seen from the CPUs that a program may run on.

use std::collections::BTreeSet;

use tierloom_linux::firmware::{self, Access};
use tierloom_linux::root::{Damaged, Root};
use tierloom_model::HostMemory;

use crate::error::ProbeError;
use crate::host::{Host, HostNode, cpus_of};

/// Reads the memory nodes at a root for a program that may run on these CPUs; on all where there are none.
///
/// # Errors
/// There is no machine below the root, or firmware's figures are damaged.
pub fn host_memories(root: &Root, cpus: &[u32]) -> Result<Vec<HostMemory>, ProbeError> {
    let host = Host::read(root);
    if host.nodes.is_empty() {
        return Err(ProbeError::NoMachine);
    }
    let sockets: BTreeSet<u32> = host.sockets.iter().map(|socket| socket.node).collect();
    let runs_on = |node: &u32| cpus_of(root, *node).iter().any(|cpu| cpus.contains(cpu));
    let homes: BTreeSet<u32> = sockets.iter().copied().filter(runs_on).collect();
    let seen = Seen { root, homes: if homes.is_empty() { sockets.clone() } else { homes }, sockets };
    Ok(host.nodes.iter().map(|node| seen.memory(node)).collect::<Result<_, Damaged>>()?)
}

/// The machine from some of its sockets.
struct Seen<'a> {
    root: &'a Root,
    /// Nodes whose CPUs the program may run on.
    homes: BTreeSet<u32>,
    /// Nodes with CPUs.
    sockets: BTreeSet<u32>,
}

impl Seen<'_> {
    fn memory(&self, node: &HostNode) -> Result<HostMemory, Damaged> {
        let access = firmware::access(self.root, node.node)?;
        let distances = self.distances(node.node)?;
        let told = access.as_ref().filter(|access| self.homes.iter().all(|home| access.initiators.contains(home)));
        Ok(HostMemory {
            node: node.node,
            kind: node.kind,
            near: self.near(node, access.as_ref(), &distances),
            capacity_bytes: node.capacity_bytes,
            distance: self.distance(&distances),
            latency_ns: told.and_then(|access| access.read_latency_ns).map(|ns| ns as f64),
            gb_s: told.and_then(|access| access.read_mb_s.into_iter().chain(access.write_mb_s).min()).map(gb_s),
        })
    }

    /// Distances to nodes with CPUs. Firmware tells the way from a memory; a matrix of distances is taken
    /// to be symmetric.
    fn distances(&self, node: u32) -> Result<Vec<(u32, u64)>, Damaged> {
        let all = firmware::distances(self.root, node)?;
        Ok(all.into_iter().filter(|(other, _)| self.sockets.contains(other)).collect())
    }

    /// The distance from wherever the program may run, if it is one.
    fn distance(&self, distances: &[(u32, u64)]) -> Option<u64> {
        let mut from_homes = distances.iter().filter(|(other, _)| self.homes.contains(other)).map(|(_, far)| *far);
        let first = from_homes.next()?;
        from_homes.all(|far| far == first).then_some(first)
    }

    fn near(&self, node: &HostNode, access: Option<&Access>, distances: &[(u32, u64)]) -> Option<bool> {
        let hangs_on = self.hangs_on(node, access, distances);
        if hangs_on.is_empty() {
            return None;
        }
        let here = self.homes.intersection(&hangs_on).count();
        match (here == self.homes.len(), here) {
            (true, _) => Some(true),
            (false, 0) => Some(false),
            _ => None,
        }
    }

    /// Sockets that a memory hangs on: its own CPUs', else those that firmware calls its initiators, else the
    /// nearest, if that is known.
    fn hangs_on(&self, node: &HostNode, access: Option<&Access>, distances: &[(u32, u64)]) -> BTreeSet<u32> {
        if node.has_cpus {
            return BTreeSet::from([node.node]);
        }
        if self.sockets.len() == 1 {
            return self.sockets.clone();
        }
        let initiators = access.map(|access| access.initiators.iter().copied().collect()).unwrap_or_default();
        let told: BTreeSet<u32> = self.sockets.intersection(&initiators).copied().collect();
        let least = distances.iter().map(|(_, far)| *far).min();
        let nearest = distances.iter().filter(|(_, far)| Some(*far) == least).map(|(other, _)| *other);
        if told.is_empty() { nearest.collect() } else { told }
    }
}

/// MB/s as GB/s.
fn gb_s(mb_s: u64) -> f64 {
    mb_s as f64 * 1e-3
}
