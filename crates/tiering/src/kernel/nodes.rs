//! The machine as the page allocator sees it: nodes, watermarks, zonelists and memory tiers.
//!
//! Sources: Linux 6.12 `mm/page_alloc.c` (`__setup_per_zone_wmarks`, `calculate_min_free_kbytes`),
//! `mm/memory-tiers.c` (`mt_perf_to_adistance`, `establish_demotion_targets`).

use tierloom_contention::Fabric;
use tierloom_model::units::PAGE_BYTES;
use tierloom_model::{Load, Machine, MemoryKind, Path};

use crate::error::{Result, TieringError};

/// Abstract distance of DRAM: four and a half chunks of 128 (`MEMTIER_ADISTANCE_DRAM`).
const DRAM_DISTANCE: f64 = 576.0;
/// Abstract distances of one tier differ by less than this power of two (`MEMTIER_CHUNK_BITS`).
const CHUNK_BITS: u32 = 7;
/// `vm.watermark_scale_factor`: gap between watermarks, in ten-thousandths of the node.
const WATERMARK_SCALE: f64 = 10.0;
/// Free pages that stand on the list of a CPU that allocates, where watermarks do not see them: a
/// refill of `63 << PCP_BATCH_SCALE_MAX` (`nr_pcp_alloc`, since 6.7). The CPU whose refill took the node to its
/// watermark has all of it left, others anything from none to all.
const REFILL: f64 = 2016.0;
/// The same before: `pcp->batch`. Such lists are given back by other nodes' CPUs alone (`refresh_cpu_vm_stats`).
const OLD_REFILL: f64 = 63.0;
/// s after which they become fewer: a list's limit (4580 pages in the recorded guest) loses an eighth a second
/// (`decay_pcp_high`) and is below what it holds after six.
const DECAY_S: f64 = 6.0;
/// Left of a list after a second of that. It stops at a limit of its own, but what is left there goes into promotions:
/// seen in a guest, whose lists fell from 1038 pages to 157 while as many moved.
const DECAYS_TO: f64 = 7.0 / 8.0;
/// All CPUs' lists together hold at most this part of a zone (`MIN_PERCPU_PAGELIST_HIGH_FRACTION`).
const LISTS_MOST: f64 = 8.0;
/// Pages of 4 KiB in a GiB.
const PAGES_IN_GIB: f64 = 262_144.0;

/// How a kernel sorts nodes into tiers, and where it demotes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TierRule {
    /// 6.7 and later: by the latency and bandwidth that the firmware states.
    #[default]
    Hmat,
    /// 6.0 and before, Tiering-0.8 and TPP: nodes without CPUs are slow, and each is what one other node demotes
    /// to: the first by number that is nearest to it (`establish_migrate_target` marks it as used).
    Cpuless,
    /// 6.1 to 6.6 with memory that the firmware maps as ordinary: all nodes are one tier.
    OneTier,
}

/// Free pages at which the allocator and kswapd change what they do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Watermarks {
    /// Only urgent allocations below.
    pub min: f64,
    /// Allocation goes to the next node below.
    pub low: f64,
    /// kswapd stops here; promotions need this much free.
    pub high: f64,
    /// kswapd stops here in tiering mode.
    pub promo: f64,
}

/// A memory node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name of the memory.
    pub name: String,
    /// Position of the memory in the machine: the node's number, because machines stand in the kernel's order.
    pub memory: usize,
    /// Pages that the kernel manages and the program may take.
    pub pages: f64,
    /// Watermarks, pages.
    pub marks: Watermarks,
    /// Tier number: smaller is faster.
    pub tier: u32,
    /// In a tier that counts as top: none below holds CPUs.
    pub top: bool,
    /// Where its pages are demoted to.
    pub demotion: Option<usize>,
    /// CPUs that touch the program's pages first.
    pub touched_by: f64,
    /// Whether its CPUs' lists are long and are given back in time, as since 6.7.
    pub long_lists: bool,
}

/// All nodes that a program may use, and the paths to them.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// In the order of distance from the threads: the first is local.
    pub list: Vec<Node>,
    /// By node: where the allocator looks for a page that is meant for it.
    pub zonelists: Vec<Vec<usize>>,
    /// The socket's paths, one entry a memory of the machine.
    pub fabric: Fabric,
}

impl Watermarks {
    /// What the kernel sets for a node of `pages` when its share of `vm.min_free_kbytes` is `min`.
    pub fn of(min: f64, pages: f64) -> Self {
        let gap = (min / 4.0).max(pages * WATERMARK_SCALE / 10_000.0).floor();
        Self { min, low: min + gap, high: min + 2.0 * gap, promo: min + 3.0 * gap }
    }
}

/// `vm.min_free_kbytes` as pages: `4·sqrt(memory in KiB)`, from 128 KiB to 256 MiB.
fn min_free_pages(pages: f64) -> f64 {
    (pages * 4.0 * 16.0).sqrt().floor().clamp(128.0, 262_144.0) / 4.0
}

impl Nodes {
    /// The nodes at these positions of the machine, seen from a socket; `fast_bytes` limits the
    /// nearest one.
    ///
    /// # Errors
    /// [`TieringError`] when the socket is not there or no node is named.
    pub fn new(
        machine: &Machine,
        socket: usize,
        memories: &[usize],
        fast_bytes: Option<u64>,
        rule: TierRule,
    ) -> Result<Self> {
        let fabric = Fabric::new(machine, socket)?;
        let mut near = machine.memories_by_distance(socket);
        near.retain(|memory| memories.contains(memory));
        let Some(first) = near.first().copied() else {
            return Err(TieringError::request(
                "nodes",
                "no memory may be used",
                "name at least one that the socket reaches",
            ));
        };
        let pages = |memory: usize| {
            let bytes = machine.memories[memory].capacity_bytes.value;
            let bytes = if memory == first { fast_bytes.map_or(bytes, |fast| fast.min(bytes)) } else { bytes };
            (bytes / PAGE_BYTES) as f64
        };
        let total: f64 = near.iter().map(|memory| pages(*memory)).sum();
        let min_free = min_free_pages(total);
        let tier = |memory: usize| tier_of(machine, first, memory, rule);
        let with_cpus = near.iter().filter(|memory| has_cpus(machine, **memory));
        let last_top = with_cpus.map(|memory| tier(*memory)).max().unwrap_or_else(|| tier(first));
        let node = |memory: &usize| Node {
            name: machine.memories[*memory].name.clone(),
            memory: *memory,
            pages: pages(*memory),
            marks: Watermarks::of((min_free * pages(*memory) / total).floor(), pages(*memory)),
            tier: tier(*memory),
            top: tier(*memory) <= last_top,
            demotion: None,
            touched_by: 1.0,
            long_lists: rule == TierRule::Hmat,
        };
        let mut nodes = Self { list: near.iter().map(node).collect(), zonelists: Vec::new(), fabric };
        nodes.zonelists = (0..near.len()).map(|node| nodes.zonelist(machine, node)).collect();
        match rule {
            TierRule::Cpuless => nodes.take_demotion_targets(machine),
            TierRule::Hmat | TierRule::OneTier => nodes.find_demotion_targets(),
        }
        Ok(nodes)
    }

    /// Nodes in the order in which the allocator tries them for a page meant for `node`: by distance
    /// from the socket that the node hangs on, as SLIT distances do.
    fn zonelist(&self, machine: &Machine, node: usize) -> Vec<usize> {
        let distance = |other: &usize| idle_ns(machine, self.list[node].memory, self.list[*other].memory);
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by(|a, b| (*a != node).cmp(&(*b != node)).then(distance(a).total_cmp(&distance(b))));
        order
    }

    /// The nearest node of the next lower tier.
    fn find_demotion_targets(&mut self) {
        for node in 0..self.list.len() {
            let below = self.list.iter().map(|other| other.tier).filter(|tier| *tier > self.list[node].tier).min();
            let target = self.zonelists[node].iter().find(|other| Some(self.list[**other].tier) == below);
            self.list[node].demotion = target.copied().filter(|_| below.is_some());
        }
    }

    /// The same before 6.1, for all nodes of the machine, because one that the program does not use takes its part.
    fn take_demotion_targets(&mut self, machine: &Machine) {
        let targets = targets_by_number(machine);
        for node in 0..self.list.len() {
            let target = targets[self.list[node].memory];
            self.list[node].demotion = self.list.iter().position(|other| Some(other.memory) == target);
        }
    }

    /// Whether the nearest node is the kernel's node 0.
    pub(crate) fn near_is_node0(&self) -> bool {
        self.list[0].memory == 0
    }

    /// So many CPUs touch the program's pages first.
    pub(crate) fn touched_by(&mut self, cpus: u32) {
        self.list.iter_mut().for_each(|node| node.touched_by = f64::from(cpus.max(1)));
    }

    /// Number of nodes.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none; never true for nodes made by [`Nodes::new`].
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Position of a node by name.
    ///
    /// # Errors
    /// [`TieringError::BadRequest`] with the names that are known.
    pub fn find(&self, name: &str) -> Result<usize> {
        self.list.iter().position(|node| node.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.list.iter().map(|node| node.name.as_str()).collect();
            TieringError::request(
                "node",
                format!("`{name}` is not in use"),
                format!("use one of: {}", known.join(", ")),
            )
        })
    }

    /// The slow nodes' names; empty where every node is in the top tier and mode 2 does nothing.
    pub fn slow(&self) -> Vec<&str> {
        self.list.iter().filter(|node| !node.top).map(|node| node.name.as_str()).collect()
    }
}

impl Node {
    /// Free pages at which allocation goes on to the next node.
    pub(crate) fn spills_at(&self) -> f64 {
        self.marks.low + self.on_cpu_lists(0.0)
    }

    /// Free pages that no watermark sees, so long after the first touch of everything.
    pub(crate) fn on_cpu_lists(&self, now_s: f64) -> f64 {
        let refill = if self.long_lists { REFILL } else { OLD_REFILL };
        let held = (refill * f64::midpoint(1.0, self.touched_by)).min(self.pages / LISTS_MOST);
        let decays_s = now_s - DECAY_S;
        if !self.long_lists || decays_s <= 0.0 {
            return held;
        }
        held * DECAYS_TO.powf(decays_s)
    }

    /// Free pages over the promotion watermark above which a node counts as not yet filled
    /// (`pgdat_free_space_enough`).
    pub fn plenty(&self) -> f64 {
        self.marks.promo + PAGES_IN_GIB.max(self.pages / 16.0)
    }
}

/// DIMMs and stacked memory sit on a socket with cores; CXL, persistent memory and devices do not.
fn has_cpus(machine: &Machine, memory: usize) -> bool {
    matches!(machine.memories[memory].kind, MemoryKind::Dram | MemoryKind::Lpddr | MemoryKind::Hbm)
}

/// `576 · latency/latency₀ · bandwidth₀/bandwidth`, in chunks of 128; nodes with CPUs are DRAM.
fn tier_of(machine: &Machine, first: usize, memory: usize, rule: TierRule) -> u32 {
    let dram = tier_of_distance(DRAM_DISTANCE);
    match rule {
        _ if has_cpus(machine, memory) => dram,
        TierRule::OneTier => dram,
        TierRule::Cpuless => dram + 1,
        TierRule::Hmat => {
            let (Some(path), Some(base)) = (home_path(machine, memory), home_path(machine, first)) else { return dram };
            let latency = path.idle_ns.value / base.idle_ns.value;
            tier_of_distance(DRAM_DISTANCE * latency * (stated_gb_s(base) / stated_gb_s(path)))
        }
    }
}

/// `__set_migration_target_nodes`: from the nodes with CPUs downwards, in the order of their numbers, each to the nearest
/// that is nobody's target yet.
fn targets_by_number(machine: &Machine) -> Vec<Option<usize>> {
    let all = 0..machine.memories.len();
    let mut pass: Vec<usize> = all.clone().filter(|memory| has_cpus(machine, *memory)).collect();
    let mut left: Vec<usize> = all.clone().filter(|memory| !pass.contains(memory)).collect();
    let mut targets = vec![None; all.len()];
    while !pass.is_empty() {
        for node in &pass {
            let distance = |other: &&usize| idle_ns(machine, *node, **other);
            targets[*node] = left.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).copied();
            left.retain(|other| Some(*other) != targets[*node]);
        }
        pass = pass.iter().filter_map(|node| targets[*node]).collect();
        pass.sort_unstable();
    }
    targets
}

/// From the socket that one node hangs on to another.
fn idle_ns(machine: &Machine, node: usize, other: usize) -> f64 {
    let home = machine.socket_index(&machine.memories[node].socket).unwrap_or(0);
    machine.path(home, other).map_or(f64::INFINITY, |path| path.idle_ns.value)
}

fn tier_of_distance(distance: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "distances are small and positive")]
    let whole = distance as u32;
    whole >> CHUNK_BITS
}

/// From the nearest initiator, as `access0` in sysfs has it.
fn home_path(machine: &Machine, memory: usize) -> Option<&Path> {
    let name = &machine.memories[memory].name;
    let to = machine.paths.iter().filter(|path| &path.to == name);
    to.min_by(|a, b| a.idle_ns.value.total_cmp(&b.idle_ns.value))
}

/// Read and write bandwidth together, GB/s, as HMAT would state them.
fn stated_gb_s(path: &Path) -> f64 {
    let peak = |read_fraction: f64| match &path.load {
        Load::Form(form) => tierloom_contention::peak_gb_s(&form.peak, read_fraction),
        Load::Points(curves) => {
            let near = |a: f64| (a - read_fraction).abs();
            let nearest = curves.iter().min_by(|a, b| near(a.read_fraction).total_cmp(&near(b.read_fraction)));
            nearest.and_then(|curve| curve.points.last()).map_or(0.0, |point| point[0])
        }
    };
    peak(1.0) + peak(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/zoneinfo` of a guest with nodes of 1 and 2 GiB, Linux 6.12: its DMA32 zone of 244 314 pages
    /// has min 552, low 796, high 1040, promo 1284.
    #[test]
    fn watermarks_are_those_of_a_real_node() {
        let marks = Watermarks::of(552.0, 244_314.0);
        assert_eq!((marks.low, marks.high, marks.promo), (796.0, 1040.0, 1284.0));
        let whole = min_free_pages(3840.0 + 244_314.0 + 245_727.0 + 253_452.0);
        let (stated, ours) = (8.0 + 552.0 + 555.0 + 572.0, whole);
        assert!((ours - stated).abs() / stated < 0.03, "{ours} against {stated}");
    }

    /// The same guest: 250 ns and 30 GB/s against 100 ns and 100 GB/s is `memory_tier37`, DRAM is
    /// `memory_tier4`.
    #[test]
    fn tiers_are_those_of_a_real_machine() {
        assert_eq!(tier_of_distance(DRAM_DISTANCE), 4);
        assert_eq!(tier_of_distance(DRAM_DISTANCE * (250.0 / 100.0) * (100.0 / 30.0)), 37);
    }

    fn node(pages: f64, touched_by: f64, long_lists: bool) -> Node {
        let (name, marks) = ("n".to_owned(), Watermarks::of(1000.0, pages));
        Node { name, memory: 0, pages, marks, tier: 4, top: true, demotion: None, touched_by, long_lists }
    }

    #[test]
    fn each_cpu_that_touches_first_keeps_some_pages_on_its_list() {
        let held = |pages, cpus, now_s| node(pages, cpus, true).on_cpu_lists(now_s);
        let old = node(1e7, 3.0, false).on_cpu_lists(1e9);
        let found = [held(1e7, 1.0, 0.0), held(1e7, 3.0, 6.0), held(8000.0, 32.0, 0.0), held(1e7, 1.0, 8.0), old];
        let wanted = [2016.0, 2.0 * 2016.0, 1000.0, 2016.0 * 49.0 / 64.0, 2.0 * 63.0];
        assert!(found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9), "{found:?}");
    }

    /// What the nearest node of a socket demotes to; DRAM on both sockets, a card on the second.
    fn demotion(socket: usize, memories: &[usize], rule: TierRule) -> Option<String> {
        let machine = tierloom_fixtures::machine([64, 64, 128], [200.0, 100.0, 30.0]);
        let nodes = Nodes::new(&machine, socket, memories, None, rule).unwrap();
        nodes.list[0].demotion.map(|target| nodes.list[target].name.clone())
    }

    #[test]
    fn before_6_1_a_card_is_for_the_node_of_the_lowest_number_wherever_it_hangs() {
        for memories in [vec![0, 1, 2], vec![1, 2]] {
            assert_eq!(demotion(1, &memories, TierRule::Cpuless), None);
            assert_eq!(demotion(1, &memories, TierRule::Hmat).as_deref(), Some("cxl"));
        }
        assert_eq!(demotion(0, &[0, 2], TierRule::Cpuless).as_deref(), Some("cxl"));
    }
}
