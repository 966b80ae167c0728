//! Pages of other processes, the host's interleave weights, and what the kernel counts about both.
//!
//! `move_pages(2)` asks and moves; it needs the same user (`PTRACE_MODE_READ_REALCREDS` of
//! `mm/migrate.c`). Weights are files of `/sys/kernel/mm/mempolicy/weighted_interleave` (Linux 6.9),
//! which only root can write.

use std::collections::BTreeMap;
use std::fs;

use crate::error::LinuxError;
use crate::root::Root;

/// Where the host's weights are, one file a node.
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
/// File that says whether the kernel works weights out by itself (Linux 6.16); some builds spell its
/// name differently.
const AUTOMATIC: [&str; 2] = ["auto", "__auto_type"];
/// `MPOL_MF_MOVE`: pages that only this process maps.
const MOVE: i32 = 1 << 1;

/// Where pages of a process are: a node, or the negative of an error number (`ENOENT`: no page there).
///
/// # Errors
/// No such process (`ESRCH`), or one of another user (`EPERM`).
pub fn locate_pages(pid: u32, pages: &[u64]) -> Result<Vec<i32>, LinuxError> {
    call_move_pages(pid, pages, std::ptr::null())
}

/// Moves each page to its node; answers where each is then, or the negative of why it did not move.
///
/// # Errors
/// As [`locate_pages`]; a node that is not there (`ENODEV`) refuses the whole call.
pub fn move_pages(pid: u32, pages: &[u64], nodes: &[i32]) -> Result<Vec<i32>, LinuxError> {
    let count = pages.len().min(nodes.len());
    call_move_pages(pid, &pages[..count], nodes.as_ptr())
}

/// Words of a process's memory; fewer where some are not there.
///
/// # Errors
/// No such process (`ESRCH`), one that we may not look into (`EPERM`), or no such memory (`EFAULT`).
pub fn read_words(pid: u32, address: u64, count: usize) -> Result<Vec<u64>, LinuxError> {
    let mut words = vec![0_u64; count];
    let bytes = count * size_of::<u64>();
    let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes };
    // SAFETY: the kernel writes at most as many bytes as the words have, and reads the other process's.
    let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &raw const here, 1, &raw const there, 1, 0) };
    let read = usize::try_from(read)
        .map_err(|_| LinuxError::new("process_vm_readv", format!("process {pid}"), std::io::Error::last_os_error()))?;
    words.truncate(read / size_of::<u64>());
    Ok(words)
}

/// `nodes` is null, or points to as many as there are pages.
fn call_move_pages(pid: u32, pages: &[u64], nodes: *const i32) -> Result<Vec<i32>, LinuxError> {
    let mut status = vec![-libc::ENOENT; pages.len()];
    // SAFETY: `pages` and `status` have the length that is said, and so have `nodes` by the promise of
    // the two callers above; the kernel only moves pages, it does not change what is in them.
    let answer = unsafe {
        libc::syscall(libc::SYS_move_pages, pid, pages.len(), pages.as_ptr(), nodes, status.as_mut_ptr(), MOVE)
    };
    // A positive answer counts pages that stayed; each one's status says why.
    if answer < 0 { Err(LinuxError::last("move_pages", format!("process {pid}"))) } else { Ok(status) }
}

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
    write(root, &format!("{WEIGHTS}/node{node}"), &weight.to_string())
}

/// Lets the kernel work the weights out by itself again.
///
/// # Errors
/// Not root, or a kernel that cannot.
pub fn set_weights_automatic(root: &Root) -> Result<(), LinuxError> {
    let known = root.names(WEIGHTS);
    let name = AUTOMATIC.iter().find(|name| known.iter().any(|known| known == *name)).unwrap_or(&AUTOMATIC[0]);
    write(root, &format!("{WEIGHTS}/{name}"), "true")
}

/// Writes a file of `/sys` or `/sys/fs/cgroup`.
///
/// # Errors
/// It is not there, or may not be written.
pub fn write(root: &Root, path: &str, text: &str) -> Result<(), LinuxError> {
    fs::write(root.path(path), text).map_err(|error| LinuxError::new("write", path, error))
}

/// Counters of `/proc/vmstat` whose names begin with one of these.
pub fn vmstat(root: &Root, prefixes: &[&str]) -> BTreeMap<String, u64> {
    let text = root.text("/proc/vmstat").unwrap_or_default();
    let counter = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        let wanted = prefixes.iter().any(|prefix| name.starts_with(prefix));
        Some((name.to_owned(), value.trim().parse().ok().filter(|_| wanted)?))
    };
    text.lines().filter_map(counter).collect()
}

/// Free memory of a node, bytes (`nodeN/meminfo`).
pub fn node_free_bytes(root: &Root, node: u32) -> Option<u64> {
    let text = root.text(&format!("/sys/devices/system/node/node{node}/meminfo"))?;
    let line = text.lines().find(|line| line.contains("MemFree:"))?;
    let kib: u64 = line.split_whitespace().rev().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Bytes of the huge pages that the kernel gives any large anonymous range by itself; 0 = it waits to
/// be asked (`madvise`), or has none.
pub fn automatic_huge_bytes(root: &Root) -> u64 {
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let always = root.text(&format!("{folder}/enabled")).is_some_and(|text| text.contains("[always]"));
    let bytes = root.number(&format!("{folder}/hpage_pmd_size")).and_then(|bytes| u64::try_from(bytes).ok());
    if always { bytes.unwrap_or(2 << 20) } else { 0 }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_process_are_read_and_no_others() {
        let words: Vec<u64> = (0..5000).collect();
        let own = std::process::id();
        assert_eq!(read_words(own, words.as_ptr() as u64, words.len()).unwrap(), words);
        assert!(read_words(own, 8, 1).is_err());
    }
    use crate::pages::Pages;

    #[test]
    fn our_own_pages_are_found_and_stay() {
        let mut pages = Pages::new(1, None).unwrap();
        let first = pages.as_mut_slice().as_ptr().addr() as u64;
        let addresses: Vec<u64> = (0..4).map(|page| first + page * 4096).collect();
        let Ok(nodes) = locate_pages(0, &addresses) else { return };
        assert!(nodes.iter().all(|node| *node >= 0), "{nodes:?}");
        assert_eq!(move_pages(0, &addresses, &nodes).unwrap(), nodes);
        assert_eq!(locate_pages(0, &[0]).unwrap(), [-libc::EFAULT]);
        assert!(locate_pages(u32::MAX >> 1, &addresses).is_err());
    }

    #[test]
    fn a_recorded_host_has_weights_and_counters() {
        let folder = std::env::temp_dir().join(format!("tierloom-memory-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let file = folder.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put(&format!("{WEIGHTS}/node0"), "3\n");
        put(&format!("{WEIGHTS}/node1"), "1\n");
        put(&format!("{WEIGHTS}/auto"), "false\n");
        put("/proc/vmstat", "nr_free_pages 5\nnuma_hit 7\npgpromote_success 9\n");
        put("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 9 kB\nNode 1 MemFree:    12 kB\n");
        put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
        put("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
        let root = Root::at(&folder);
        assert_eq!(host_weights(&root), BTreeMap::from([(0, 3), (1, 1)]));
        assert_eq!(weights_are_automatic(&root), Some(false));
        set_host_weight(&root, 1, 9).unwrap();
        set_weights_automatic(&root).unwrap();
        assert_eq!((host_weights(&root)[&1], weights_are_automatic(&root)), (9, Some(true)));
        let counters = BTreeMap::from([("numa_hit".to_owned(), 7), ("pgpromote_success".to_owned(), 9)]);
        assert_eq!(vmstat(&root, &["numa_", "pgpromote_"]), counters);
        assert_eq!(node_free_bytes(&root, 1), Some(12 * 1024));
        assert_eq!(automatic_huge_bytes(&root), 2 << 20);
        assert_eq!(most_mappings(&root), 65530);
        put("/proc/meminfo", "MemFree: 1 kB\nMemAvailable:   100 kB\n");
        assert_eq!(headroom_bytes(&root), 100 * 1024);
        put("/proc/self/cgroup", "0::/a/b\n");
        put("/sys/fs/cgroup/a/b/memory.max", "max\n");
        put("/sys/fs/cgroup/a/b/memory.current", "5000\n");
        put("/sys/fs/cgroup/a/memory.max", "9000\n");
        put("/sys/fs/cgroup/a/memory.current", "6000\n");
        assert_eq!(headroom_bytes(&root), 3000, "the group above has less left than the machine");
        fs::remove_dir_all(folder).unwrap();
    }
}
