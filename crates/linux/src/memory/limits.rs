//! How much memory a process may take, in which pages, and in how many mappings.

use crate::root::Root;

/// Bytes of memory that this process and its children may still take: what the machine has available,
/// or what the control groups around us leave (`memory.max` of cgroup v2, `memory.limit_in_bytes` of v1).
pub fn headroom_bytes(root: &Root) -> u64 {
    let groups = root.text("/proc/self/cgroup").unwrap_or_default();
    let ours = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        match controllers {
            "" => Some(("/sys/fs/cgroup", path, ["memory.max", "memory.current"])),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Some(("/sys/fs/cgroup/memory", path, ["memory.limit_in_bytes", "memory.usage_in_bytes"]))
            }
            _ => None,
        }
    });
    let left = ours.flat_map(|(mount, path, files)| headrooms(root, mount, path, files));
    left.chain(available_bytes(root)).min().unwrap_or(0)
}

/// What each group from this one up to the mount leaves.
fn headrooms(root: &Root, mount: &str, path: &str, [limit, used]: [&str; 2]) -> Vec<u64> {
    let number = |path: &str, file: &str| root.text(&format!("{mount}{path}/{file}"))?.parse::<u64>().ok();
    let mut left = Vec::new();
    let mut path = path.trim_end_matches('/');
    loop {
        if let (Some(limit), Some(used)) = (number(path, limit), number(path, used)) {
            left.push(limit.saturating_sub(used));
        }
        match path.rsplit_once('/') {
            Some((parent, _)) => path = parent,
            None => return left,
        }
    }
}

fn available_bytes(root: &Root) -> Option<u64> {
    let text = root.text("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// Mappings that a process may have (`vm.max_map_count`).
pub fn most_mappings(root: &Root) -> u64 {
    const DEFAULT: u64 = 65530;
    root.number("/proc/sys/vm/max_map_count").and_then(|count| u64::try_from(count).ok()).unwrap_or(DEFAULT)
}

/// Bytes of the huge pages that the kernel gives any large anonymous range by itself; 0 = it waits to
/// be asked (`madvise`), or has none.
pub fn automatic_huge_bytes(root: &Root) -> u64 {
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let always = root.text(&format!("{folder}/enabled")).is_some_and(|text| text.contains("[always]"));
    let bytes = root.number(&format!("{folder}/hpage_pmd_size")).and_then(|bytes| u64::try_from(bytes).ok());
    if always { bytes.unwrap_or(2 << 20) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::recorded::Recorded;

    #[test]
    fn a_recorded_host_has_huge_pages_and_a_usual_number_of_mappings() {
        let host = Recorded::new("huge");
        host.put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
        host.put("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
        assert_eq!(automatic_huge_bytes(&host.root()), 2 << 20);
        assert_eq!(most_mappings(&host.root()), 65530);
    }

    #[test]
    fn the_tightest_group_says_how_much_is_left() {
        let host = Recorded::new("headroom");
        host.put("/proc/meminfo", "MemFree: 1 kB\nMemAvailable:   100 kB\n");
        assert_eq!(headroom_bytes(&host.root()), 100 * 1024);
        host.put("/proc/self/cgroup", "0::/a/b\n");
        host.put("/sys/fs/cgroup/a/b/memory.max", "max\n");
        host.put("/sys/fs/cgroup/a/b/memory.current", "5000\n");
        host.put("/sys/fs/cgroup/a/memory.max", "9000\n");
        host.put("/sys/fs/cgroup/a/memory.current", "6000\n");
        assert_eq!(headroom_bytes(&host.root()), 3000, "the group above has less left than the machine");
    }
}
