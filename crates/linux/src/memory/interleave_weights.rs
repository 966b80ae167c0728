//! The host's weights of weighted interleave: files of `/sys/kernel/mm/mempolicy/weighted_interleave` (Linux 6.9),
//! which only root can write.

use std::collections::BTreeMap;

use crate::error::LinuxError;
use crate::root::Root;

/// Where the host's weights are, one file a node.
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
/// File that says whether the kernel works weights out by itself (Linux 6.16); some builds spell its
/// name differently.
const AUTOMATIC: [&str; 2] = ["auto", "__auto_type"];

/// Weights of the host's nodes, as the kernel would use them now; none before Linux 6.9.
pub fn host_weights(root: &Root) -> BTreeMap<u32, u32> {
    let weight = |name: &String| {
        let node = name.strip_prefix("node")?.parse().ok()?;
        Some((node, u32::try_from(root.number(&format!("{WEIGHTS}/{name}"))?).ok()?))
    };
    root.names(WEIGHTS).iter().filter_map(weight).collect()
}

/// Whether the kernel works the weights out by itself; `None` where it cannot.
pub fn weights_are_automatic(root: &Root) -> Option<bool> {
    let text = AUTOMATIC.iter().find_map(|name| root.text(&format!("{WEIGHTS}/{name}")))?;
    Some(["1", "true", "Y", "y"].contains(&text.as_str()))
}

/// Sets the weight of a node for the whole host.
///
/// # Errors
/// Not root, no such node, or a weight that is not 1 to 255.
pub fn set_host_weight(root: &Root, node: u32, weight: u32) -> Result<(), LinuxError> {
    root.write(&format!("{WEIGHTS}/node{node}"), &weight.to_string())
}

/// Lets the kernel work the weights out by itself again.
///
/// # Errors
/// Not root, or a kernel that cannot.
pub fn set_weights_automatic(root: &Root) -> Result<(), LinuxError> {
    let known = root.names(WEIGHTS);
    let name = AUTOMATIC.iter().find(|name| known.iter().any(|known| known == *name)).unwrap_or(&AUTOMATIC[0]);
    root.write(&format!("{WEIGHTS}/{name}"), "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::recorded::Recorded;

    #[test]
    fn weights_of_a_recorded_host_are_read_and_set() {
        let host = Recorded::new("weights");
        host.put(&format!("{WEIGHTS}/node0"), "3\n");
        host.put(&format!("{WEIGHTS}/node1"), "1\n");
        host.put(&format!("{WEIGHTS}/auto"), "false\n");
        let root = host.root();
        assert_eq!(host_weights(&root), BTreeMap::from([(0, 3), (1, 1)]));
        assert_eq!(weights_are_automatic(&root), Some(false));
        set_host_weight(&root, 1, 9).unwrap();
        set_weights_automatic(&root).unwrap();
        assert_eq!((host_weights(&root)[&1], weights_are_automatic(&root)), (9, Some(true)));
    }
}
