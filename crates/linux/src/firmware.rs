//! What firmware tells about memory: distances (ACPI SLIT), latency and bandwidth (ACPI HMAT, CXL CDAT).
//!
//! The kernel publishes the performance of a node as seen from its nearest initiators only, in
//! "access classes": class 0 counts every initiator, class 1 those with CPUs
//! (Documentation/admin-guide/mm/numaperf.rst). What is not published is absent here, never guessed.

use serde::Serialize;

use crate::root::{Damaged, Root, parse_list};

/// Performance of a node from its nearest initiators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// 1: the nearest initiators with CPUs; 0: the nearest of all.
    pub class: u8,
    /// Nodes of the initiators.
    pub initiators: Vec<u32>,
    /// ns; `None` where firmware is silent.
    pub read_latency_ns: Option<u64>,
    /// ns.
    pub write_latency_ns: Option<u64>,
    /// MB/s (10^6 bytes).
    pub read_mb_s: Option<u64>,
    /// MB/s.
    pub write_mb_s: Option<u64>,
}

/// Access class 1 of a node, else class 0; `None` where the kernel has neither.
///
/// # Errors
/// A file holds no number.
pub fn access(root: &Root, node: u32) -> Result<Option<Access>, Damaged> {
    for class in [1, 0] {
        let folder = format!("/sys/devices/system/node/node{node}/access{class}/initiators");
        let names = root.names(&folder);
        let number = |key: &str| root.count(&format!("{folder}/{key}")).map(|value| value.filter(|value| *value > 0));
        if !names.is_empty() {
            return Ok(Some(Access {
                class,
                initiators: names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect(),
                read_latency_ns: number("read_latency")?,
                write_latency_ns: number("write_latency")?,
                read_mb_s: number("read_bandwidth")?,
                write_mb_s: number("write_bandwidth")?,
            }));
        }
    }
    Ok(None)
}

/// Distances from a node to others, by their numbers; 10 is the node itself. Empty where the kernel does not say, or
/// counts nodes that nothing names.
///
/// # Errors
/// The line holds something else than numbers.
pub fn distances(root: &Root, node: u32) -> Result<Vec<(u32, u64)>, Damaged> {
    let path = format!("/sys/devices/system/node/node{node}/distance");
    let Some(text) = root.text(&path) else { return Ok(Vec::new()) };
    let numbers: Option<Vec<u64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
    let row = numbers.ok_or_else(|| root.damaged(&path, &text, "a line of distances such as `10 21`"))?;
    let columns = columns(root, node, &row).unwrap_or_default();
    Ok(columns.into_iter().zip(row).collect())
}

/// The nodes of a row: those that are online, or more where it tells of some that are not. A node's own column holds the
/// least of its row, which tells the right list from another of the same length.
fn columns(root: &Root, node: u32, row: &[u64]) -> Option<Vec<u32>> {
    let own = |list: &[u32]| list.iter().position(|other| *other == node).and_then(|at| row.get(at));
    let fits = |list: &Vec<u32>| list.len() == row.len() && own(list) == row.iter().min();
    let online = root.online_nodes();
    let possible = root.text("/sys/devices/system/node/possible").and_then(|text| parse_list(&text));
    let lists = [Some(online.clone()), Some(root.node_folders()), possible];
    let found = lists.into_iter().flatten().find(fits);
    found.or_else(|| (online.len() == row.len()).then_some(online))
}

/// Numbers of a kernel list in a file; `None` where there is no such file.
///
/// # Errors
/// The file holds no list.
pub fn list(root: &Root, path: &str) -> Result<Option<Vec<u32>>, Damaged> {
    let Some(text) = root.text(path) else { return Ok(None) };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    parse_list(&text).map(Some).ok_or_else(|| root.damaged(path, &text, "a list such as `0-3,8`"))
}
