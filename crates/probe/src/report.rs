//! Everything that was measured, raw, for `--json`.

use serde::Serialize;

use crate::chase::Order;
use crate::host::Host;
use crate::kernels::Instructions;
use crate::mix::Mix;
use crate::request::{Request, Scale};
use crate::statistics::Percentiles;
use crate::traps::Migration;
use crate::warning::Warning;

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Name of the machine.
    pub name: String,
    /// Date as the caller gave it.
    pub date: String,
    /// What there was to measure.
    pub host: Host,
    /// How the kernel moves pages here.
    pub migration: Migration,
    /// Vector instructions of the load threads.
    pub instructions: Instructions,
    /// What was asked for.
    pub scale: Scale,
    /// Time it took, s.
    pub seconds: f64,
    /// ns of the same step of arithmetic, taken before every figure: the clock's constancy.
    pub arithmetic_ns: Percentiles,
    /// Latency by footprint.
    pub latencies: Vec<Latency>,
    /// Highest bandwidth by mix and threads.
    pub bandwidths: Vec<Bandwidth>,
    /// Independent random loads of one thread.
    pub scattered: Vec<Scattered>,
    /// Latency under load.
    pub loaded: Vec<Loaded>,
    /// Bandwidth of two nodes at once.
    pub together: Vec<Together>,
    /// What to know before believing the numbers.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// A report with nothing measured yet.
    pub(crate) fn empty(request: &Request, host: Host, migration: Migration, instructions: Instructions) -> Self {
        Self {
            name: request.name.clone(),
            date: request.date.clone(),
            host,
            migration,
            instructions,
            scale: request.scale,
            seconds: 0.0,
            arithmetic_ns: Percentiles::of(vec![1.0]),
            latencies: Vec::new(),
            bandwidths: Vec::new(),
            scattered: Vec::new(),
            loaded: Vec::new(),
            together: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Latency of dependent loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// Node of the CPUs.
    pub socket: u32,
    /// Node of the memory.
    pub node: u32,
    /// Which round, from 0.
    pub round: usize,
    /// Bytes that the cycle goes through.
    pub footprint_bytes: usize,
    /// Order of the lines.
    pub order: Order,
    /// ns per load.
    pub ns: Percentiles,
}

/// Bandwidth at full speed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Node of the CPUs.
    pub socket: u32,
    /// Node of the memory.
    pub node: u32,
    /// Which round, from 0.
    pub round: usize,
    /// What the threads did.
    pub mix: Mix,
    /// How many there were, one a core.
    pub threads: usize,
    /// Bytes loaded and stored by the threads, GB/s.
    pub gb_s: Percentiles,
}

/// Independent random loads of one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scattered {
    /// Node of the CPUs.
    pub socket: u32,
    /// Node of the memory.
    pub node: u32,
    /// Which round, from 0.
    pub round: usize,
    /// A line a load, GB/s.
    pub gb_s: Percentiles,
}

/// One point of a loaded-latency curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loaded {
    /// Node of the CPUs.
    pub socket: u32,
    /// Node of the memory.
    pub node: u32,
    /// Which round, from 0.
    pub round: usize,
    /// What the load threads did.
    pub mix: Mix,
    /// How many of them there were, beside the thread that measured latency.
    pub threads: usize,
    /// Pause between bursts of 12 lines, ns.
    pub pause_ns: f64,
    /// Traffic of all threads, GB/s.
    pub gb_s: Percentiles,
    /// Latency of dependent random loads, ns.
    pub ns: Percentiles,
}

/// Bandwidth of two nodes at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Together {
    /// Node of the CPUs.
    pub socket: u32,
    /// Nodes of the memories.
    pub nodes: [u32; 2],
    /// Which round, from 0.
    pub round: usize,
    /// Threads that read from each.
    pub threads: [usize; 2],
    /// Both memories, GB/s.
    pub gb_s: Percentiles,
}

#[cfg(test)]
mod tests {
    use tierloom_linux::root::Root;

    use super::*;
    use crate::host::HostSocket;
    use crate::request::{Request, Scale};

    impl Report {
        /// Of one socket that reports 32 MiB, with these random latencies.
        pub(crate) fn of_one_socket(latencies: &[(usize, f64)]) -> Self {
            let socket = HostSocket {
                node: 0,
                cores: vec![0],
                llc_bytes: Some(32 << 20),
                llc_per_core_bytes: Some(32 << 20),
                core_cache_bytes: Some(1 << 20),
            };
            let host = Host {
                identity: String::new(),
                cpu: String::new(),
                kernel: String::new(),
                sockets: vec![socket],
                nodes: Vec::new(),
            };
            let request = Request { name: String::new(), date: String::new(), scale: Scale::QUICK };
            let nowhere = Migration::read(&Root::at("/nonexistent"));
            let mut report = Self::empty(&request, host, nowhere, Instructions::Portable);
            report.latencies.extend(latencies.iter().map(|(footprint_bytes, ns)| Latency {
                socket: 0,
                node: 0,
                round: 0,
                footprint_bytes: *footprint_bytes,
                order: Order::Random,
                ns: Percentiles::of(vec![*ns]),
            }));
            report
        }
    }
}
