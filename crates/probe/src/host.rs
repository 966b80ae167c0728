//! What there is to measure: sockets, cores, caches and memory nodes, as `/sys` and `/proc` tell it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tierloom_linux::firmware;
use tierloom_linux::host::host;
use tierloom_linux::root::{Root, parse_list};
use tierloom_model::MemoryKind;

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
    /// What it is made of, as far as the kernel's devices tell.
    pub kind: MemoryKind,
    /// Why we think so.
    pub kind_because: String,
}

impl Host {
    /// Reads the machine at this root; a machine without NUMA is one node.
    pub fn read(root: &Root) -> Self {
        let nodes = root.online_nodes();
        let cpus: BTreeMap<u32, Vec<u32>> = nodes.iter().map(|node| (*node, cpus_of(root, *node))).collect();
        let with_cpus = cpus.iter().filter(|(_, cpus)| !cpus.is_empty());
        let mut memories: Vec<HostNode> =
            nodes.iter().filter_map(|node| HostNode::read(root, *node, !cpus[node].is_empty())).collect();
        find_stacked_memory(root, &mut memories);
        Self {
            cpu: cpu_model(root),
            identity: host(root),
            kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
            sockets: with_cpus.map(|(node, cpus)| HostSocket::read(root, *node, cpus)).collect(),
            nodes: memories,
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
        }
    }
}

impl HostNode {
    fn read(root: &Root, node: u32, has_cpus: bool) -> Option<Self> {
        let text = root.text(&format!("/sys/devices/system/node/node{node}/meminfo"));
        let text = text.or_else(|| root.text("/proc/meminfo"))?;
        let capacity_bytes = meminfo(&text, "MemTotal:")?;
        let (kind, because) = kind_of(root, node, has_cpus);
        let free_bytes = meminfo(&text, "MemFree:").unwrap_or(0);
        let kind_because = because.to_owned();
        (capacity_bytes > 0).then_some(Self { node, capacity_bytes, free_bytes, has_cpus, kind, kind_because })
    }
}

/// CPUs of a node.
pub(super) fn cpus_of(root: &Root, node: u32) -> Vec<u32> {
    match root.text(&format!("/sys/devices/system/node/node{node}/cpulist")) {
        Some(list) => parse_list(&list).unwrap_or_default(),
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
        let list = root.text(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        list.and_then(|list| parse_list(&list)).unwrap_or_else(|| vec![cpu])
    };
    let mut cores = BTreeSet::new();
    cpus.iter().copied().filter(|cpu| cores.insert(siblings(*cpu))).collect()
}

/// CPUs that share this CPU's largest data cache, and its bytes.
fn last_level_cache(root: &Root, cpu: u32) -> Option<(Vec<u32>, u64)> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let indexes = root.names(&folder).into_iter().filter(|name| name.starts_with("index"));
    let caches = indexes.filter_map(|index| {
        let read = |key: &str| root.text(&format!("{folder}/{index}/{key}"));
        let level: u32 = read("level")?.parse().ok()?;
        let cache = (parse_list(&read("shared_cpu_list")?)?, size(&read("size")?)?);
        (read("type")? != "Instruction").then_some((level, cache))
    });
    Some(caches.max_by_key(|(level, _)| *level)?.1)
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

/// A line of `/proc/meminfo` or of a node's `meminfo`, in bytes.
fn meminfo(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once(key))?;
    Some(line.1.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// What a node is made of: the kernel has no such attribute, but its devices give it away.
fn kind_of(root: &Root, node: u32, has_cpus: bool) -> (MemoryKind, &'static str) {
    if has_cpus {
        return (MemoryKind::Dram, "CPUs sit on its node");
    }
    let dax = root.names("/sys/bus/dax/devices");
    let from_dax =
        dax.iter().any(|name| root.number(&format!("/sys/bus/dax/devices/{name}/target_node")) == Some(node.into()));
    let has = |folder: &str| root.names(folder).iter().any(|name| name.starts_with("region"));
    match (from_dax, has("/sys/bus/cxl/devices"), has("/sys/bus/nd/devices")) {
        (true, true, _) => (MemoryKind::Cxl, "it was onlined from a DAX device, and there are CXL regions"),
        (true, false, true) => (MemoryKind::Pmem, "it was onlined from a DAX device, and there are NVDIMM regions"),
        _ => (MemoryKind::Cxl, "a guess: it has no CPUs, and no device says what it is; edit the file if it is HBM"),
    }
}

/// A node without CPUs that firmware calls faster than every node with them is stacked memory.
fn find_stacked_memory(root: &Root, nodes: &mut [HostNode]) {
    let read_mb_s = |node: &HostNode| firmware::access(root, node.node).ok().flatten()?.read_mb_s;
    let most = nodes.iter().filter(|node| node.has_cpus).filter_map(read_mb_s).max();
    for node in nodes.iter_mut().filter(|node| !node.has_cpus) {
        if most.is_some_and(|most| read_mb_s(node) > Some(most)) {
            node.kind = MemoryKind::Hbm;
            "no CPUs, and firmware gives it more bandwidth than any node with CPUs".clone_into(&mut node.kind_because);
        }
    }
}
