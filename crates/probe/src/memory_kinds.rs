//! What each memory node is made of, and how sure that is.
//!
//! The kernel has no such attribute. In this order: the device that the memory was onlined from; firmware's bandwidths;
//! the CPUs beside it. Where none of them tells, it is a guess, and says so. `machine import` judges trees and XML files
//! by the same rule (`machine_formats/memory_kinds.py`); `tests/machine_formats/memory_kinds.txt` has machines that both
//! must judge alike.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_linux::firmware;
use tierloom_linux::root::Root;
use tierloom_model::MemoryKind;

/// So many times the bandwidth of DRAM is that of stacked memory; hwloc's rule (`hwloc__guess_dram_hbm_tiers`).
const STACKED: u64 = 2;
/// Processors that are sold with HBM in their package, by a part of the name.
const IN_PACKAGE: [(&str, &str); 2] = [("CPU Max", "Xeon Max"), ("Xeon Phi", "Xeon Phi")];

/// What a node was onlined from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dax {
    /// An NVDIMM.
    Pmem,
    Cxl,
    /// What firmware keeps for a special purpose.
    Reserved,
    Unknown,
}

/// A machine's nodes.
pub(super) struct Kinds<'a> {
    root: &'a Root,
    model: &'a str,
    /// Nodes with memory.
    memories: BTreeSet<u32>,
    /// Nodes with CPUs that run.
    sockets: BTreeSet<u32>,
    /// Nodes that CPUs sit on, whether these run or not.
    owned: BTreeSet<u32>,
    devices: BTreeMap<u32, Dax>,
}

impl<'a> Kinds<'a> {
    pub(super) fn new(root: &'a Root, model: &'a str, memories: BTreeSet<u32>, cpus: &BTreeMap<u32, Vec<u32>>) -> Self {
        let sockets: BTreeSet<u32> = cpus.iter().filter(|(_, cpus)| !cpus.is_empty()).map(|(node, _)| *node).collect();
        let owned = cpus.keys().copied().filter(|node| sockets.contains(node) || has_linked_cpus(root, *node));
        let owned = owned.collect();
        Self { root, model, memories, sockets, owned, devices: devices(root) }
    }

    /// What a node is made of, and why we think so.
    pub(super) fn of(&self, node: u32) -> (MemoryKind, String) {
        let dax = self.dax(node);
        let (most, least) = (self.read_mb_s(node), self.slowest_dram());
        if dax == Some(Dax::Pmem) {
            return (MemoryKind::Pmem, "it was onlined from a DAX device of an NVDIMM".to_owned());
        }
        if let Some((most, least)) = most.zip(least).filter(|(most, least)| *most > STACKED * least) {
            let because = format!("firmware gives it {most} MB/s, and {least} to the slowest DRAM");
            return (MemoryKind::Hbm, because);
        }
        if dax == Some(Dax::Cxl) {
            return (MemoryKind::Cxl, "it was onlined from a DAX device, and there are CXL regions".to_owned());
        }
        if self.owned.contains(&node) {
            return (MemoryKind::Dram, "CPUs sit on its node".to_owned());
        }
        let (kind, because) = self.guess(node, dax);
        (kind, format!("a guess: {because}; edit the file if it is something else"))
    }

    fn guess(&self, node: u32, dax: Option<Dax>) -> (MemoryKind, String) {
        let sold = IN_PACKAGE.iter().find(|(part, _)| self.model.contains(part));
        if let Some((_, name)) = sold.filter(|_| matches!(dax, None | Some(Dax::Reserved))) {
            return (MemoryKind::Hbm, format!("it has no CPUs, and a {name} has HBM in its package"));
        }
        if self.sockets.iter().any(|socket| self.nearest_memory(*socket) == Some(node)) {
            let because = "it has no CPUs, and CPUs whose own node has no memory have none nearer";
            return (MemoryKind::Dram, because.to_owned());
        }
        let reserved = if dax == Some(Dax::Reserved) { ": firmware keeps it for a special purpose" } else { "" };
        (MemoryKind::Cxl, format!("it has no CPUs, and no device or figure says what it is{reserved}"))
    }

    fn dax(&self, node: u32) -> Option<Dax> {
        self.devices.get(&node).copied().filter(|_| !self.sockets.contains(&node))
    }

    /// The most that firmware tells, from the nearest CPUs.
    fn read_mb_s(&self, node: u32) -> Option<u64> {
        firmware::access(self.root, node).ok().flatten()?.read_mb_s
    }

    fn slowest_dram(&self) -> Option<u64> {
        let beside_cpus = self.owned.iter().filter(|node| self.memories.contains(node) && self.dax(**node).is_none());
        beside_cpus.filter_map(|node| self.read_mb_s(*node)).min()
    }

    /// The memory nearest to CPUs whose own node has none.
    fn nearest_memory(&self, socket: u32) -> Option<u32> {
        if self.memories.contains(&socket) {
            return None;
        }
        let far = |node: u32| self.distance(socket, node).map(|far| (far, node));
        self.memories.iter().filter_map(|node| far(*node)).min().map(|(_, node)| node)
    }

    /// From CPUs to a memory. Firmware tells the way from a memory; a matrix of distances is taken to be symmetric.
    fn distance(&self, socket: u32, node: u32) -> Option<u64> {
        let row = firmware::distances(self.root, node).unwrap_or_default();
        row.into_iter().find(|(other, _)| *other == socket).map(|(_, far)| far)
    }
}

/// Links to the CPUs of a node outlive their going offline; its list has only those that run.
fn has_linked_cpus(root: &Root, node: u32) -> bool {
    let names = root.names(&format!("/sys/devices/system/node/node{node}"));
    names.iter().any(|name| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok()))
}

/// What each node was onlined from: where in the tree of devices the DAX device is says what it is.
fn devices(root: &Root) -> BTreeMap<u32, Dax> {
    const DAX: &str = "/sys/bus/dax/devices";
    let has = |folder: &str| root.names(folder).iter().any(|name| name.starts_with("region"));
    let (cxl, nvdimm) = (has("/sys/bus/cxl/devices"), has("/sys/bus/nd/devices"));
    let device = |name: &String| {
        let node = root.number(&format!("{DAX}/{name}/target_node"))?.try_into().ok()?;
        let place = root.path(&format!("{DAX}/{name}")).read_link().unwrap_or_default();
        Some((node, dax(&place.to_string_lossy(), cxl, nvdimm)))
    };
    root.names(DAX).iter().filter_map(device).collect()
}

/// By the place of a device, and which regions there are.
fn dax(place: &str, cxl: bool, nvdimm: bool) -> Dax {
    if place.contains("/ndbus") {
        Dax::Pmem
    } else if place.contains("hmem") {
        Dax::Reserved
    } else if place.contains("decoder") || place.contains("dax_region") || cxl {
        Dax::Cxl
    } else if nvdimm {
        Dax::Pmem
    } else {
        Dax::Unknown
    }
}
