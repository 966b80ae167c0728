//! Discovery and traps on recorded machines.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tierloom_linux::root::Root;
use tierloom_model::MemoryKind;
use tierloom_probe::{Host, Migration, Warning};

/// A folder with a recorded machine's `/proc` and `/sys`.
struct Recorded(PathBuf);

impl Recorded {
    /// Unpacks the recording and then `changes`, lines of the same kind.
    #[expect(clippy::unwrap_used, reason = "a fixture that cannot be unpacked ends the test")]
    fn machine(name: &str, changes: &str) -> Self {
        let recorded = Self::empty();
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(format!("{name}.txt"));
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().chain(changes.lines()).for_each(|line| recorded.write(line));
        recorded
    }

    fn empty() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("tierloom-probe-{}-{number}", std::process::id())))
    }

    /// A file of a line `PATH = CONTENT`, or a link of `PATH -> PLACE`; what begins otherwise is none.
    #[expect(clippy::unwrap_used, reason = "a fixture that cannot be unpacked ends the test")]
    fn write(&self, line: &str) {
        if !line.starts_with('/') {
            return;
        }
        let link = line.split_once(" -> ");
        let (path, value) = link.or_else(|| line.split_once('=')).unwrap();
        let path = self.0.join(path.trim().trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if link.is_some() {
            std::os::unix::fs::symlink(value, path).unwrap();
        } else {
            std::fs::write(path, value.trim().replace("\\n", "\n").replace("\\0", "\0") + "\n").unwrap();
        }
    }

    /// Where it is.
    fn root(&self) -> Root {
        Root::at(&self.0)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn one_node_has_one_socket_and_one_cache() {
    let host = Host::read(&Recorded::machine("one-node", "").root());
    assert_eq!((host.cpu.as_str(), host.kernel.as_str()), ("AMD EPYC", "6.18.44"));
    let [socket] = &host.sockets[..] else { panic!("{:?}", host.sockets) };
    assert_eq!((socket.node, &socket.cores[..]), (0, &[0, 1][..]));
    assert_eq!((socket.llc_bytes, socket.llc_per_core_bytes), (Some(32 << 20), Some(32 << 20)));
    let [node] = &host.nodes[..] else { panic!("{:?}", host.nodes) };
    assert_eq!((node.capacity_bytes, node.free_bytes), (5_859_540 * 1024, 4_228_884 * 1024));
    assert_eq!((node.kind, node.has_cpus), (MemoryKind::Dram, true));
}

#[test]
fn hardware_threads_of_a_core_are_one_core() {
    let host = Host::read(&Recorded::machine("two-nodes-cxl", "").root());
    let cores: Vec<&[u32]> = host.sockets.iter().map(|socket| &socket.cores[..]).collect();
    assert_eq!(cores, [[0, 1], [2, 3]]);
}

#[test]
fn caches_add_up_and_a_shared_one_counts_by_its_share() {
    let host = Host::read(&Recorded::machine("two-nodes-cxl", "").root());
    let caches: Vec<_> = host.sockets.iter().map(|socket| (socket.llc_bytes, socket.llc_per_core_bytes)).collect();
    assert_eq!(caches, [(Some(16 << 20), Some(8 << 20)), (Some(8 << 20), Some(16 << 20))]);
}

#[test]
fn a_node_without_cpus_is_a_memory_and_no_socket() {
    let host = Host::read(&Recorded::machine("two-nodes-cxl", "").root());
    assert_eq!(host.sockets.len(), 2);
    let cxl = &host.nodes[2];
    assert_eq!((cxl.node, cxl.has_cpus, cxl.kind), (2, false, MemoryKind::Cxl));
    assert!(cxl.kind_because.contains("CXL regions"), "{}", cxl.kind_because);
}

#[test]
fn a_node_that_no_device_explains_is_called_a_guess() {
    let recorded = Recorded::machine("two-nodes-cxl", "/sys/bus/dax/devices/dax0.0/target_node = 7");
    assert!(Host::read(&recorded.root()).nodes[2].kind_because.starts_with("a guess"));
}

#[test]
fn an_empty_root_is_one_node_without_memory() {
    let host = Host::read(&Root::at("/nonexistent"));
    assert_eq!((host.sockets.len(), host.nodes.len(), host.sockets[0].llc_bytes), (1, 0, None));
}

fn traps(name: &str, changes: &str) -> Vec<Warning> {
    let recorded = Recorded::machine(name, changes);
    Migration::read(&recorded.root()).traps(&Host::read(&recorded.root()))
}

#[test]
fn one_node_has_no_traps() {
    assert_eq!(traps("one-node", "/sys/kernel/mm/lru_gen/enabled = 0x0007"), []);
}

#[test]
fn settings_that_move_no_page_are_told() {
    assert_eq!(traps("two-nodes-cxl", ""), [Warning::BalancingMode { mode: 1 }, Warning::MultiGenLru]);
}

#[test]
fn promotion_without_demotion_is_told() {
    let tiering = "/proc/sys/kernel/numa_balancing = 2\n/sys/kernel/mm/lru_gen/enabled = 0x0000";
    assert_eq!(traps("two-nodes-cxl", tiering), [Warning::DemotionOff]);
    let both = format!("{tiering}\n/sys/kernel/mm/numa/demotion_enabled = true");
    assert_eq!(traps("two-nodes-cxl", &both), []);
}

#[test]
fn a_slow_node_in_the_tier_of_the_cpus_is_never_promoted() {
    let one_tier = "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist = 0-2\n\
                    /sys/devices/virtual/memory_tiering/memory_tier37/nodelist =";
    assert_eq!(traps("two-nodes-cxl", one_tier)[0], Warning::NeverPromoted { node: 2, tier: 4 });
}

#[test]
fn a_tier_above_the_slowest_one_with_cpus_is_never_promoted() {
    let slow_cpus = "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist = 0\n\
                     /sys/devices/virtual/memory_tiering/memory_tier50/nodelist = 1";
    assert_eq!(traps("two-nodes-cxl", slow_cpus)[0], Warning::NeverPromoted { node: 2, tier: 37 });
}

#[test]
fn a_tier_faster_than_the_cpus_is_no_trap() {
    let hbm = "/sys/devices/virtual/memory_tiering/memory_tier2/nodelist = 2\n\
               /sys/devices/virtual/memory_tiering/memory_tier37/nodelist =";
    assert_eq!(traps("two-nodes-cxl", hbm), []);
}

#[test]
fn without_tiers_a_node_without_cpus_is_slow() {
    let old_kernel = "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist =\n\
                      /sys/devices/virtual/memory_tiering/memory_tier37/nodelist =";
    assert_eq!(traps("two-nodes-cxl", old_kernel)[0], Warning::BalancingMode { mode: 1 });
}

#[test]
fn every_setting_is_recorded() {
    let migration = Migration::read(&Recorded::machine("two-nodes-cxl", "").root());
    assert_eq!(migration.tiers, [(4, vec![0, 1]), (37, vec![2])].into());
    assert_eq!((migration.numa_balancing, migration.demotion_enabled), (Some(1), Some(false)));
    assert_eq!(migration.multi_gen_lru.as_deref(), Some("0x0007"));
}

const FIRMWARE: &str = "/sys/devices/system/node/node0/distance = 10 21 24\n\
    /sys/devices/system/node/node1/distance = 21 10 28\n\
    /sys/devices/system/node/node2/distance = 24 28 10\n\
    /sys/devices/system/node/node2/access1/initiators/node0 =\n\
    /sys/devices/system/node/node2/access1/initiators/read_latency = 250\n\
    /sys/devices/system/node/node2/access1/initiators/read_bandwidth = 30000\n\
    /sys/devices/system/node/node2/access1/initiators/write_bandwidth = 20000";

/// Kind, whether it is near, distance, latency and bandwidth.
type Seen = (MemoryKind, Option<bool>, Option<u64>, Option<f64>, Option<f64>);

/// Each node, for a program on some CPUs.
#[expect(clippy::unwrap_used, reason = "a recording that cannot be read ends the test")]
fn seen_from(cpus: &[u32], changes: &str) -> Vec<Seen> {
    let recorded = Recorded::machine("two-nodes-cxl", changes);
    let memories = tierloom_probe::host_memories(&recorded.root(), cpus).unwrap();
    memories.into_iter().map(|at| (at.kind, at.near, at.distance, at.latency_ns, at.gb_s)).collect()
}

#[test]
fn memories_are_seen_from_the_socket_of_the_program() {
    let (dram, cxl) = (MemoryKind::Dram, MemoryKind::Cxl);
    let first = [
        (dram, Some(true), Some(10), None, None),
        (dram, Some(false), Some(21), None, None),
        (cxl, Some(true), Some(24), Some(250.0), Some(20.0)),
    ];
    assert_eq!(seen_from(&[0, 5], FIRMWARE), first);
    let second = [
        (dram, Some(false), Some(21), None, None),
        (dram, Some(true), Some(10), None, None),
        (cxl, Some(false), Some(28), None, None),
    ];
    assert_eq!(seen_from(&[2], FIRMWARE), second);
}

#[test]
fn what_differs_between_sockets_is_not_known_for_a_program_on_both() {
    for cpus in [&[0, 2][..], &[]] {
        let seen = seen_from(cpus, FIRMWARE);
        assert!(seen.iter().all(|(_, near, distance, ..)| near.is_none() && distance.is_none()), "{seen:?}");
    }
    let silent: Vec<Option<bool>> = seen_from(&[0], "").into_iter().map(|(_, near, ..)| near).collect();
    assert_eq!(silent, [Some(true), Some(false), None], "nothing says on which socket the card hangs");
}

#[test]
fn a_node_more_than_twice_as_fast_as_dram_is_stacked_memory() {
    let fast = "/sys/devices/system/node/node0/access1/initiators/node0 =\n\
                /sys/devices/system/node/node0/access1/initiators/read_bandwidth = 200000\n\
                /sys/devices/system/node/node2/access1/initiators/node0 =\n\
                /sys/devices/system/node/node2/access1/initiators/read_bandwidth = 400001";
    assert_eq!(seen_from(&[0], fast)[2].0, MemoryKind::Hbm);
}

/// The machines of `memory_kinds.txt`: what each holds, by lines.
#[expect(clippy::unwrap_used, reason = "a table that cannot be read ends the test")]
fn machines() -> Vec<(String, Vec<String>)> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/machine_formats/memory_kinds.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let mut parts = text.split("\n== ");
    let common: Vec<String> = parts.next().unwrap().lines().map(str::to_owned).collect();
    let machine = |part: &str| {
        let (name, lines) = part.split_once('\n').unwrap();
        (name.to_owned(), common.iter().cloned().chain(lines.lines().map(str::to_owned)).collect())
    };
    parts.map(machine).collect()
}

#[test]
fn memories_are_what_the_table_says_they_are() {
    for (name, lines) in machines() {
        let recorded = Recorded::empty();
        for line in &lines {
            recorded.write(line);
        }
        let host = Host::read(&recorded.root());
        for answer in lines.iter().filter(|line| line.starts_with("is ") || line.starts_with("guess ")) {
            let words: Vec<&str> = answer.split(' ').collect();
            let node = host.nodes.iter().find(|node| node.node.to_string() == words[1]).unwrap();
            let kind = serde_json::to_value(node.kind).unwrap();
            let is_guess = if node.kind_because.starts_with("a guess") { "guess" } else { "is" };
            assert_eq!((is_guess, kind.as_str().unwrap()), (words[0], words[2]), "{name}: {node:?}");
        }
    }
}

#[test]
fn memory_of_a_gpu_is_no_programs() {
    let gpu = "/proc/driver/nvidia/gpus/0000:01:00.0/numa_status = Node: 2";
    let host = Host::read(&Recorded::machine("two-nodes-cxl", gpu).root());
    assert_eq!(host.nodes.iter().map(|node| node.node).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn masks_and_numbers_with_gaps_are_read() {
    let old = Recorded::empty();
    for line in [
        "/sys/devices/system/node/node0/cpumap = 00000000,0000000f\\0",
        "/sys/devices/system/node/node0/meminfo = Node 0 MemTotal: 1048576 kB",
        "/sys/devices/system/node/node4/cpumap = 00000000,000000f0\\0",
        "/sys/devices/system/node/node4/meminfo = Node 4 MemTotal: 1048576 kB",
        "/sys/devices/system/node/node0/distance = 10 21\\0",
        "/sys/devices/system/node/node4/distance = 21 10\\0",
    ] {
        old.write(line);
    }
    let memories = tierloom_probe::host_memories(&old.root(), &[5]).unwrap();
    assert_eq!(memories.iter().map(|at| (at.node, at.distance)).collect::<Vec<_>>(), [(0, Some(21)), (4, Some(10))]);
    assert_eq!(Host::read(&old.root()).sockets.iter().map(|socket| socket.cores.len()).collect::<Vec<_>>(), [4, 4]);
}
