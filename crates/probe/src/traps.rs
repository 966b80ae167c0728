//! The kernel's own page migration as this machine has it, and the traps in it.
//!
//! Rules as in Linux 6.12: `mm/memory-tiers.c` (every tier up to the slowest one with a CPU is the
//! top), `kernel/sched/fair.c` (only bit 2 of `numa_balancing` promotes between tiers),
//! `mm/vmscan.c` (`demotion_enabled`).

use std::collections::BTreeMap;

use serde::Serialize;
use tierloom_linux::root::{Root, parse_list};

use crate::host::Host;
use crate::warning::Warning;

/// Bit of `numa_balancing` that promotes hot pages from slower tiers.
const TIERING_MODE: i64 = 2;

/// Settings that decide which pages move while a program runs; recorded with every result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// Nodes by memory tier, fastest (lowest number) first; empty where the kernel has no tiers.
    pub tiers: BTreeMap<u32, Vec<u32>>,
    /// `kernel.numa_balancing`.
    pub numa_balancing: Option<i64>,
    /// Whether reclaim moves pages down a tier.
    pub demotion_enabled: Option<bool>,
    /// `lru_gen/enabled`, as the kernel prints it.
    pub multi_gen_lru: Option<String>,
    /// `transparent_hugepage/enabled`, as the kernel prints it.
    pub huge_pages: Option<String>,
}

impl Migration {
    /// Reads the settings at this root.
    pub fn read(root: &Root) -> Self {
        let folder = "/sys/devices/virtual/memory_tiering";
        let tier = |name: String| {
            let number: u32 = name.strip_prefix("memory_tier")?.parse().ok()?;
            Some((number, parse_list(&root.text(&format!("{folder}/{name}/nodelist"))?)?))
        };
        Self {
            tiers: root.names(folder).into_iter().filter_map(tier).collect(),
            numa_balancing: root.number("/proc/sys/kernel/numa_balancing"),
            demotion_enabled: root.text("/sys/kernel/mm/numa/demotion_enabled").map(|text| text == "true"),
            multi_gen_lru: root.text("/sys/kernel/mm/lru_gen/enabled"),
            huge_pages: root.text("/sys/kernel/mm/transparent_hugepage/enabled"),
        }
    }

    /// What will surprise whoever relies on the kernel to move pages on this machine.
    pub fn traps(&self, host: &Host) -> Vec<Warning> {
        let slow: Vec<u32> = self.slow_nodes(host).collect();
        if slow.is_empty() {
            return Vec::new();
        }
        let mut traps: Vec<Warning> = slow.iter().filter_map(|node| self.never_promoted(*node, host)).collect();
        if let Some(mode) = self.numa_balancing {
            if mode & TIERING_MODE == 0 {
                traps.push(Warning::BalancingMode { mode });
            } else if self.demotion_enabled == Some(false) {
                traps.push(Warning::DemotionOff);
            }
        }
        if self.multi_gen_lru.as_deref().is_some_and(|mask| mask != "0x0000") {
            traps.push(Warning::MultiGenLru);
        }
        traps
    }

    /// Nodes without CPUs, but for those in a tier faster than any CPU's (HBM beside DRAM).
    fn slow_nodes(&self, host: &Host) -> impl Iterator<Item = u32> {
        let fastest_with_cpus = self.tiers_with_cpus(host).min();
        let cpu_less = host.nodes.iter().filter(|node| !node.has_cpus).map(|node| node.node);
        cpu_less.filter(move |node| self.tier_of(*node).is_none_or(|tier| Some(tier) >= fastest_with_cpus))
    }

    /// A slow node in the top: nothing is above it.
    fn never_promoted(&self, node: u32, host: &Host) -> Option<Warning> {
        let (tier, slowest_with_cpus) = (self.tier_of(node)?, self.tiers_with_cpus(host).max()?);
        (tier <= slowest_with_cpus).then_some(Warning::NeverPromoted { node, tier })
    }

    fn tier_of(&self, node: u32) -> Option<u32> {
        Some(*self.tiers.iter().find(|(_, nodes)| nodes.contains(&node))?.0)
    }

    fn tiers_with_cpus(&self, host: &Host) -> impl Iterator<Item = u32> {
        host.sockets.iter().filter_map(|socket| self.tier_of(socket.node))
    }
}
