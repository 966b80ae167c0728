//! What a machine's `/proc` and `/sys` tell about its memory without measuring anything.
//!
//! The root is the machine itself or a recorded tree (a folder with `proc` and `sys` in it, such as
//! `hwloc-gather-topology` packs). Nothing is guessed here: where firmware and kernel are silent, so
//! is the description.

use serde::Serialize;
use tierloom_linux::root::{Damaged, Root};
use tierloom_linux::{cxl, firmware};

use crate::error::ProbeError;
use crate::host::Host;
use crate::traps::Migration;
use crate::warning::Warning;

/// A machine as its kernel tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// Sockets, cores, caches, nodes.
    pub host: Host,
    /// How the kernel moves pages.
    pub migration: Migration,
    /// What firmware says of each node of `host`.
    pub firmware: Vec<Told>,
    /// CXL memory devices.
    pub cxl_devices: Vec<cxl::Device>,
    /// CXL regions.
    pub cxl_regions: Vec<cxl::Region>,
    /// Traps of the machine's tiers.
    pub warnings: Vec<Warning>,
}

/// What firmware says of one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    /// The node.
    pub node: u32,
    /// Distance to each online node, by number.
    pub distances: Vec<(u32, u64)>,
    /// Performance from the nearest initiators.
    pub access: Option<firmware::Access>,
}

/// Reads the machine at a root.
///
/// # Errors
/// There is no machine below the root, or a file of it is damaged.
pub fn describe(root: &Root) -> Result<Description, ProbeError> {
    check_lists(root)?;
    let host = Host::read(root);
    if host.nodes.is_empty() || host.sockets.is_empty() {
        return Err(ProbeError::NoMachine);
    }
    let migration = Migration::read(root);
    let firmware = host.nodes.iter().map(|node| told(root, node.node)).collect::<Result<_, Damaged>>()?;
    Ok(Description {
        warnings: migration.traps(&host),
        firmware,
        cxl_devices: cxl::devices(root)?,
        cxl_regions: cxl::regions(root)?,
        host,
        migration,
    })
}

/// A list that cannot be read would silently become one CPU or node.
fn check_lists(root: &Root) -> Result<(), Damaged> {
    firmware::list(root, "/sys/devices/system/cpu/online")?;
    let nodes = firmware::list(root, "/sys/devices/system/node/online")?;
    for node in nodes.unwrap_or_default() {
        firmware::list(root, &format!("/sys/devices/system/node/node{node}/cpulist"))?;
    }
    Ok(())
}

fn told(root: &Root, node: u32) -> Result<Told, Damaged> {
    Ok(Told { node, distances: firmware::distances(root, node)?, access: firmware::access(root, node)? })
}
