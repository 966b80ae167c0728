//! What the reader should know before believing the numbers: each with its cause and a remedy.

use serde::Serialize;

/// A doubt about the measurement, or a trap of this machine's memory tiers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "Told")]
pub enum Warning {
    /// Windows of one quantity differ by more than a tenth.
    Noisy {
        /// Which quantity.
        what: String,
        /// Width from the 10th to the 90th percentile as a share of the median.
        spread: f64,
        /// How many quantities are as noisy or less, but above the limit too.
        others: usize,
    },
    /// The same arithmetic took different times.
    FrequencyMoving {
        /// Slowest over fastest, less one.
        change: f64,
    },
    /// Other programs ran.
    OtherLoad {
        /// CPUs that they kept busy, on average.
        cpus: f64,
        /// Load average when the measurement began, where the kernel says.
        load_average: Option<f64>,
    },
    /// The hypervisor gave our CPUs to somebody else.
    Stolen {
        /// CPUs' worth of time, on average.
        cpus: f64,
    },
    /// The regions are not in huge pages.
    NoHugePages {
        /// Least share of a region that is.
        share: f64,
    },
    /// A node had too little free memory for a region of four last-level caches.
    SmallRegion {
        /// The node.
        node: u32,
        /// Bytes that were used.
        bytes: u64,
        /// Bytes that should have been.
        wanted_bytes: u64,
    },
    /// A node was left out: it has next to no free memory.
    NodeLeftOut {
        /// The node.
        node: u32,
    },
    /// A socket was left out: this process may not use its CPUs.
    SocketLeftOut {
        /// Its node.
        node: u32,
    },
    /// The last-level cache that the kernel reports does not show in the latencies.
    CacheNotSeen {
        /// Node of the CPUs.
        socket: u32,
        /// What the kernel reports for one core, bytes.
        reported_bytes: u64,
        /// Largest footprint whose loads, random or in order, took less than half of the memory's latency, bytes.
        seen_bytes: u64,
    },
    /// There is one core, so nothing can load the memory while latency is measured.
    OneCore,
    /// There is one memory: nothing to place.
    SingleNode,
    /// Pages of a CPU-less node can never be promoted.
    NeverPromoted {
        /// The node.
        node: u32,
        /// Its tier.
        tier: u32,
    },
    /// `numa_balancing` does not promote between tiers.
    BalancingMode {
        /// Its value.
        mode: i64,
    },
    /// Promotion is on and demotion is off.
    DemotionOff,
    /// The multi-generational LRU is on.
    MultiGenLru,
}

/// A warning as people and programs read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// What is doubtful.
    pub what: String,
    /// Why that happens.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
}

impl Warning {
    /// What is doubtful, why, and what to do about it.
    pub fn told(&self) -> Told {
        let (cause, remedy) = self.cause_and_remedy();
        Told { what: self.what(), cause: cause.to_owned(), remedy: remedy.to_owned() }
    }

    fn what(&self) -> String {
        match self {
            Self::Noisy { what, spread, others } => {
                let more = if *others > 0 { format!(", and {others} more spread by over 10 %") } else { String::new() };
                format!("{what} spreads by {:.0} %{more}", 100.0 * spread)
            }
            Self::FrequencyMoving { change } => {
                format!("the same arithmetic took up to {:.0} % longer at times", 100.0 * change)
            }
            Self::OtherLoad { cpus, load_average } => {
                let before = load_average.map_or(String::new(), |load| format!(" (load average before: {load:.2})"));
                format!("other programs kept {cpus:.2} CPUs busy{before}")
            }
            Self::Stolen { cpus } => format!("the hypervisor took {cpus:.2} CPUs' worth of time away"),
            Self::NoHugePages { share } => format!("only {:.0} % of a region lay in huge pages", 100.0 * share),
            Self::SmallRegion { node, bytes, wanted_bytes } => {
                format!("node {node} was measured on {bytes} bytes where {wanted_bytes} were wanted")
            }
            Self::NodeLeftOut { node } => format!("node {node} was left out"),
            Self::SocketLeftOut { node } => format!("the CPUs of node {node} were left out"),
            Self::CacheNotSeen { socket, reported_bytes, seen_bytes } => format!(
                "the CPUs of node {socket} should have {} KiB of last-level cache, but {} KiB is the most that was fast",
                reported_bytes >> 10,
                seen_bytes >> 10
            ),
            Self::OneCore => "latency under load was not measured".to_owned(),
            Self::SingleNode => "this machine has one memory node".to_owned(),
            Self::NeverPromoted { node, tier } => {
                format!("pages of node {node} (memory_tier{tier}) can never be promoted")
            }
            Self::BalancingMode { mode } => format!("kernel.numa_balancing is {mode}: no page moves up a tier"),
            Self::DemotionOff => "promotion is on but demotion is off".to_owned(),
            Self::MultiGenLru => "the multi-generational LRU is on".to_owned(),
        }
    }

    fn cause_and_remedy(&self) -> (&'static str, &'static str) {
        match self {
            Self::Noisy { .. } => (
                "other programs, other guests of the same host, or a moving clock disturbed the windows",
                "measure again on a quiet machine; the figure is the quiet tenth of all windows",
            ),
            Self::FrequencyMoving { .. } => (
                "the clock changed with temperature or power, or a hypervisor shared the core",
                "set the performance governor (cpupower frequency-set -g performance), then measure again",
            ),
            Self::OtherLoad { .. } => {
                ("they share caches and memory with the measurement", "end them, then measure again")
            }
            Self::Stolen { .. } => {
                ("the host is overcommitted", "measure when the host is quiet, or on dedicated cores")
            }
            Self::NoHugePages { .. } => (
                "transparent huge pages are off or memory is fragmented, so latency includes page walks",
                "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; echo 1 > /proc/sys/vm/compact_memory",
            ),
            Self::SmallRegion { .. } => {
                ("the node is nearly full, and caches hide part of a small region", "free memory on the node")
            }
            Self::NodeLeftOut { .. } => ("it has next to no free memory", "free memory on the node"),
            Self::SocketLeftOut { .. } => {
                ("a CPU set or affinity mask forbids them", "start without taskset or outside the container")
            }
            Self::CacheNotSeen { .. } => (
                "other programs or other guests fill it, or a hypervisor reports a cache that it does not give",
                "the file has what was fast, and profiles count by it; measure again on a quiet machine where that is wrong",
            ),
            Self::OneCore => {
                ("the socket has one usable core", "allow a second core; the curve is flat up to the peak")
            }
            Self::SingleNode => (
                "there is no second kind of memory, or firmware hides it",
                "plan for a catalog machine (tierloom machine list), or try the lab's virtual CXL machine",
            ),
            Self::NeverPromoted { .. } => (
                "the kernel counts every tier up to the slowest one with a CPU as top, and promotes from below only; \
                 before Linux 6.7, or without HMAT tables, a CPU-less node lands in the DRAM tier",
                "use Linux 6.7 or newer with HMAT enabled in firmware, or online the node through kmem/dax",
            ),
            Self::BalancingMode { .. } => (
                "only bit 2 (tiering mode) promotes hot pages of a slow node; mode 1 scans and faults in vain",
                "sysctl kernel.numa_balancing=2, or place data by plan and leave balancing off",
            ),
            Self::DemotionOff => (
                "once the fast node is full, nothing makes room and promotion stops",
                "echo true > /sys/kernel/mm/numa/demotion_enabled",
            ),
            Self::MultiGenLru => (
                "it replaces the active and inactive lists, so tiering that reads PG_active (TPP) never promotes, and \
                 results differ from those with the classic lists",
                "note it with every result; echo 0 > /sys/kernel/mm/lru_gen/enabled for the classic lists",
            ),
        }
    }
}

impl From<Warning> for Told {
    fn from(warning: Warning) -> Self {
        warning.told()
    }
}
