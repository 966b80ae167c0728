//! The device that a memory node was onlined from, and whose memory it is.
//!
//! The kernel has no attribute that says what a node is made of. Where in the tree of devices its DAX device is says it
//! (`drivers/dax/`: below an NVDIMM bus, a CXL region, or memory that firmware reserves, `hmem`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::{Deserialize, Serialize};

use crate::root::Root;

const DAX: &str = "/sys/bus/dax/devices";
const NVIDIA: &str = "/proc/driver/nvidia/gpus";

/// What a node was onlined from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeDevice {
    /// A CXL region.
    Cxl,
    /// An NVDIMM.
    Pmem,
    /// Memory that firmware reserves for a special purpose.
    Reserved,
    /// A DAX device of something else.
    Unknown,
}

/// Devices by the number of the node that was made of them.
pub fn node_devices(root: &Root) -> BTreeMap<u32, NodeDevice> {
    let node = |name: &String| root.number(&format!("{DAX}/{name}/target_node"))?.try_into().ok();
    root.names(DAX).iter().filter_map(|name| Some((node(name)?, device(root, name)))).collect()
}

fn device(root: &Root, name: &str) -> NodeDevice {
    let link = fs::read_link(root.path(&format!("{DAX}/{name}"))).unwrap_or_default();
    let place = link.to_string_lossy();
    let has_regions = |bus: &str| {
        let names = root.names(&format!("/sys/bus/{bus}/devices"));
        names.iter().any(|name| name.starts_with("region"))
    };
    match () {
        () if place.contains("/ndbus") => NodeDevice::Pmem,
        () if place.contains("hmem") => NodeDevice::Reserved,
        () if place.contains("decoder") || place.contains("dax_region") || has_regions("cxl") => NodeDevice::Cxl,
        () if has_regions("nd") => NodeDevice::Pmem,
        () => NodeDevice::Unknown,
    }
}

/// Nodes that are the memory of a GPU, as NVIDIA's driver tells.
pub fn gpu_nodes(root: &Root) -> BTreeSet<u32> {
    let status = |gpu: &String| root.text(&format!("{NVIDIA}/{gpu}/numa_status"));
    let node = |text: String| text.split_once("Node:")?.1.split_whitespace().next()?.parse().ok();
    root.names(NVIDIA).iter().filter_map(status).filter_map(node).collect()
}
