//! CXL memory devices and regions as the kernel lists them (Documentation/ABI/testing/sysfs-bus-cxl).

use serde::Serialize;

use crate::root::{Damaged, Root};

/// A CXL memory device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Device {
    /// `mem0`, `mem1`, …
    pub name: String,
    /// Volatile capacity, bytes.
    pub volatile_bytes: u64,
    /// Persistent capacity, bytes.
    pub persistent_bytes: u64,
    /// Serial number as the kernel prints it.
    pub serial: Option<String>,
    /// Node of the CPUs that it hangs on; -1 where the kernel does not know.
    pub near_node: Option<i64>,
}

/// A stretch of CXL memory over one or several devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Region {
    /// `region0`, `region1`, …
    pub name: String,
    /// `ram` or `pmem`.
    pub mode: Option<String>,
    /// Bytes.
    pub bytes: u64,
    /// Devices that it is interleaved over.
    pub interleave_ways: Option<u64>,
    /// Bytes that lie on one device before the next one follows.
    pub interleave_bytes: Option<u64>,
    /// Node that its memory becomes or would become as system RAM.
    pub target_node: Option<u64>,
}

const FOLDER: &str = "/sys/bus/cxl/devices";

/// The memory devices, by name.
///
/// # Errors
/// A file holds no number.
pub fn devices(root: &Root) -> Result<Vec<Device>, Damaged> {
    let names = numbered(root, FOLDER, "mem");
    let device = |name: String| {
        let at = |key: &str| format!("{FOLDER}/{name}/{key}");
        Ok(Device {
            volatile_bytes: root.count(&at("ram/size"))?.unwrap_or(0),
            persistent_bytes: root.count(&at("pmem/size"))?.unwrap_or(0),
            serial: root.text(&at("serial")),
            near_node: root.number(&at("numa_node")),
            name,
        })
    };
    names.into_iter().map(device).collect()
}

/// The regions, by name.
///
/// # Errors
/// A file holds no number.
pub fn regions(root: &Root) -> Result<Vec<Region>, Damaged> {
    let region = |name: String| {
        let at = |key: &str| format!("{FOLDER}/{name}/{key}");
        Ok(Region {
            mode: root.text(&at("mode")),
            bytes: root.count(&at("size"))?.unwrap_or(0),
            interleave_ways: root.count(&at("interleave_ways"))?,
            interleave_bytes: root.count(&at("interleave_granularity"))?,
            target_node: target_node(root, &name)?,
            name,
        })
    };
    numbered(root, FOLDER, "region").into_iter().map(region).collect()
}

/// The node of `regionN`: that of `daxN.0`, which the kernel names after it (drivers/cxl/core/region.c).
fn target_node(root: &Root, region: &str) -> Result<Option<u64>, Damaged> {
    let dax = region.replace("region", "dax");
    root.count(&format!("/sys/bus/dax/devices/{dax}.0/target_node"))
}

fn numbered(root: &Root, folder: &str, prefix: &str) -> Vec<String> {
    let number = |name: &String| name.strip_prefix(prefix)?.parse::<u32>().ok();
    let mut names: Vec<String> = root.names(folder).into_iter().filter(|name| number(name).is_some()).collect();
    names.sort_by_key(number);
    names
}
