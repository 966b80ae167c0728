//! What there is to measure: sockets, cores, caches and memory nodes, as `/sys` and `/proc` tell it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tierloom_linux::firmware;
use tierloom_linux::host::host;
use tierloom_linux::node_devices::{gpu_nodes, node_devices};
use tierloom_linux::root::Root;
use tierloom_model::MemoryKind;

use crate::memory_kinds::{FoundKind, MachineFacts, NodeFacts, memory_kinds};

/// The machine before anything is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Processor model.
    pub cpu: String,
    /// Which host it is.
    pub identity: String,
    /// Kernel release.
    pub kernel: String,
    /// Nodes with CPUs, by node number.
    pub sockets: Vec<HostSocket>,
    /// Nodes with memory, by node number.
    pub nodes: Vec<HostNode>,
}

/// The CPUs of one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostSocket {
    /// Its node.
    pub node: u32,
    /// The first hardware thread of every physical core.
    pub cores: Vec<u32>,
    /// Last-level cache of all these cores, bytes; `None` where the kernel does not say.
    pub llc_bytes: Option<u64>,
    /// Last-level cache that the first core reaches, bytes; `None` where the kernel does not say.
    pub llc_per_core_bytes: Option<u64>,
    /// Largest cache that it has before the last level, bytes; `None` where it has none or the kernel does not say.
    pub core_cache_bytes: Option<u64>,
}

/// One memory node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostNode {
    /// Its number.
    pub node: u32,
    /// All of it, bytes.
    pub capacity_bytes: u64,
    /// Free now, bytes.
    pub free_bytes: u64,
    /// Whether CPUs sit on it.
    pub has_cpus: bool,
    /// What it is made of (`memory_kinds`).
    pub kind: MemoryKind,
    /// Why we think so.
    pub kind_because: String,
}

impl Host {
    /// Reads the machine at this root; a machine without NUMA is one node.
    pub fn read(root: &Root) -> Self {
        let nodes = root.online_nodes();
        let cpus: BTreeMap<u32, Vec<u32>> = nodes.iter().map(|node| (*node, cpus_of(root, *node))).collect();
        let facts = facts(root, &cpus);
        let with_cpus = cpus.iter().filter(|(_, cpus)| !cpus.is_empty());
        let found = facts.nodes.iter().zip(memory_kinds(&facts)).filter(|(node, _)| !node.of_gpu);
        Self {
            cpu: facts.model.clone(),
            identity: host(root),
            kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
            sockets: with_cpus.map(|(node, cpus)| HostSocket::read(root, *node, cpus)).collect(),
            nodes: found.filter_map(|(node, found)| HostNode::read(root, node, found, &cpus)).collect(),
        }
    }
}

impl HostSocket {
    fn read(root: &Root, node: u32, cpus: &[u32]) -> Self {
        let caches: BTreeMap<Vec<u32>, u64> = cpus.iter().filter_map(|cpu| last_level_cache(root, *cpu)).collect();
        // A cache that spans several nodes (sub-NUMA clusters) counts by the share of its CPUs here.
        let share = |sharers: &[u32]| sharers.iter().filter(|cpu| cpus.contains(cpu)).count() as u64;
        let all = caches.iter().map(|(sharers, bytes)| bytes * share(sharers) / sharers.len() as u64);
        Self {
            node,
            cores: first_threads(root, cpus),
            llc_bytes: (!caches.is_empty()).then(|| all.sum()),
            llc_per_core_bytes: cpus.first().and_then(|cpu| Some(last_level_cache(root, *cpu)?.1)),
            core_cache_bytes: cpus.first().and_then(|cpu| caches_of(root, *cpu).rev().nth(1)).map(|(_, bytes)| bytes),
        }
    }
}

impl HostNode {
    fn read(root: &Root, facts: &NodeFacts, found: FoundKind, cpus: &BTreeMap<u32, Vec<u32>>) -> Option<Self> {
        let FoundKind { node, kind, guessed, because } = found;
        let guess = format!("a guess: {because}; edit the file if it is something else");
        Some(Self {
            node,
            capacity_bytes: facts.bytes.filter(|bytes| *bytes > 0)?,
            free_bytes: memory_info(root, node, "MemFree:").unwrap_or(0),
            has_cpus: !cpus[&node].is_empty(),
            kind,
            kind_because: if guessed { guess } else { because },
        })
    }
}

/// What the kinds of the memories follow from. Every CPU of a kernel that runs is some node's: none is hidden.
fn facts(root: &Root, cpus: &BTreeMap<u32, Vec<u32>>) -> MachineFacts {
    let sockets: Vec<u32> = cpus.iter().filter(|(_, cpus)| !cpus.is_empty()).map(|(node, _)| *node).collect();
    let owns = |node: &u32| sockets.contains(node) || has_linked_cpus(root, *node);
    let owners: Vec<u32> = cpus.keys().copied().filter(owns).collect();
    let (devices, gpus) = (node_devices(root), gpu_nodes(root));
    let node_facts = |node: &u32| NodeFacts {
        node: *node,
        said: None,
        device: devices.get(node).copied().filter(|_| !sockets.contains(node)),
        read_mb_s: firmware::access(root, *node).ok().flatten().and_then(|access| access.read_mb_s),
        has_cpus: owners.contains(node),
        of_gpu: gpus.contains(node),
        bytes: memory_info(root, *node, "MemTotal:"),
    };
    let model = cpu_model(root);
    let nodes = cpus.keys().map(node_facts).collect();
    let distances = cpus.keys().flat_map(|node| ways_to(root, *node)).collect();
    MachineFacts { model, nodes, sockets, owners, hidden_cpus: false, distances }
}

/// From others to a memory. Firmware tells the way from it; a matrix of distances is taken to be symmetric.
fn ways_to(root: &Root, node: u32) -> Vec<(u32, u32, u64)> {
    let row = firmware::distances(root, node).unwrap_or_default();
    row.into_iter().map(|(other, far)| (other, node, far)).collect()
}

/// Links to the CPUs of a node outlive their going offline; its list has only those that run.
fn has_linked_cpus(root: &Root, node: u32) -> bool {
    let names = root.names(&format!("/sys/devices/system/node/node{node}"));
    names.iter().any(|name| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok()))
}

/// CPUs of a node.
pub(super) fn cpus_of(root: &Root, node: u32) -> Vec<u32> {
    let folder = format!("/sys/devices/system/node/node{node}");
    match root.cpus(&format!("{folder}/cpulist"), &format!("{folder}/cpumap")) {
        Some(cpus) => cpus,
        None if node == 0 => root.online_cpus(),
        None => Vec::new(),
    }
}

fn cpu_model(root: &Root) -> String {
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// The lowest-numbered hardware thread of each core.
fn first_threads(root: &Root, cpus: &[u32]) -> Vec<u32> {
    let siblings = |cpu: u32| {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
        let told = root.cpus(&format!("{folder}/thread_siblings_list"), &format!("{folder}/thread_siblings"));
        told.filter(|siblings| !siblings.is_empty()).unwrap_or_else(|| vec![cpu])
    };
    let mut cores = BTreeSet::new();
    cpus.iter().copied().filter(|cpu| cores.insert(siblings(*cpu))).collect()
}

/// CPUs that share this CPU's largest data cache, and its bytes.
fn last_level_cache(root: &Root, cpu: u32) -> Option<(Vec<u32>, u64)> {
    caches_of(root, cpu).next_back()
}

/// By level, the CPUs that share a CPU's data caches, and their bytes.
fn caches_of(root: &Root, cpu: u32) -> impl DoubleEndedIterator<Item = (Vec<u32>, u64)> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let indexes = root.names(&folder).into_iter().filter(|name| name.starts_with("index"));
    let caches = indexes.filter_map(|index| {
        let read = |key: &str| root.text(&format!("{folder}/{index}/{key}"));
        let level: u32 = read("level")?.parse().ok()?;
        let of = |key: &str| format!("{folder}/{index}/{key}");
        let sharers = root.cpus(&of("shared_cpu_list"), &of("shared_cpu_map")).filter(|cpus| !cpus.is_empty())?;
        let cache = (sharers, size(&read("size")?)?);
        (read("type")? != "Instruction").then_some((level, cache))
    });
    caches.collect::<BTreeMap<u32, (Vec<u32>, u64)>>().into_values()
}

/// A cache size such as `32768K`.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? * unit)
}

/// A line of a node's `meminfo`, or of a machine without NUMA's, in bytes.
fn memory_info(root: &Root, node: u32, key: &str) -> Option<u64> {
    let text = root.text(&format!("/sys/devices/system/node/node{node}/meminfo"));
    let text = text.or_else(|| root.text("/proc/meminfo"))?;
    let line = text.lines().find_map(|line| line.split_once(key))?;
    Some(line.1.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}
