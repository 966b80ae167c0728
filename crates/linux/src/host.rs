//! Which host this is.

use tierloom_model::hash::mixed;

use crate::root::Root;

/// A name of this host that stays the same as long as its processors and its memory do: what was measured on it and what
/// ran on it find each other by it. Nobody can tell `/etc/machine-id` from it, which is not to be shown (`machine-id(5)`).
pub fn host(root: &Root) -> String {
    let processors = root.text("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &&str| line.starts_with("model name");
    let total = root.text("/proc/meminfo").unwrap_or_default();
    let memory = total.lines().find_map(|line| line.strip_prefix("MemTotal:")).and_then(gib).unwrap_or(0);
    let parts = [
        root.text("/etc/machine-id").unwrap_or_default(),
        processors.lines().find(named).unwrap_or_default().to_owned(),
        processors.lines().filter(named).count().to_string(),
        memory.to_string(),
    ];
    format!("{:016x}", parts.join("\n").bytes().fold(0, |hash, byte| mixed(hash ^ u64::from(byte))))
}

/// Whole GiB: the kernel's own part differs from start to start.
fn gib(total: &str) -> Option<u64> {
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib + (1 << 19)) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_again_and_from_others() {
        let folder = std::env::temp_dir().join(format!("tierloom-host-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("proc")).unwrap();
        std::fs::create_dir_all(folder.join("etc")).unwrap();
        let with = |id: &str, memory: &str| {
            std::fs::write(folder.join("etc/machine-id"), id).unwrap();
            std::fs::write(folder.join("proc/meminfo"), format!("MemTotal: {memory} kB\n")).unwrap();
            std::fs::write(folder.join("proc/cpuinfo"), "model name : a\nmodel name : a\n").unwrap();
            host(&Root::at(&folder))
        };
        assert_eq!(with("7", "16000000"), with("7", "16000123"));
        assert_ne!(with("7", "16000000"), with("8", "16000000"));
        assert_ne!(with("7", "16000000"), with("7", "32000000"));
        assert_eq!(with("7", "16000000").len(), 16);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
