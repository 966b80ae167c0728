//! What a run brings, as `--json` prints it.

use serde::Serialize;

use crate::setup::Setup;

/// Latencies of one kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: f64,
    /// 99th percentile, ns.
    pub p99_ns: f64,
    /// 99.9th percentile, ns.
    pub p999_ns: f64,
}

/// What the speculative reader and the endpoint's internal DRAM did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct EndpointUse {
    /// Reads that reached the endpoint.
    pub reads: u64,
    /// Share of them whose line was in the internal DRAM.
    pub hit_share: f64,
    /// Share whose line was there or on its way.
    pub hit_or_in_flight_share: f64,
    /// Blocks read from the media.
    pub media_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Garbage collections.
    pub collections: u64,
    /// Speculative reads that the root port sent.
    pub speculative_reads: u64,
    /// Longest ingress queue.
    pub longest_ingress: u64,
    /// Bytes that the media gave per second, GB/s.
    pub media_gb_s: f64,
}

/// What the deterministic store did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StoreUse {
    /// Stores that only GPU memory took at first.
    pub buffered: u64,
    /// Stores that found the address tree full.
    pub overflowed: u64,
    /// Deepest stack.
    pub deepest: u64,
    /// Loads that GPU memory served.
    pub loads_served: u64,
    /// From the end of the kernel until the endpoint had everything, s.
    pub drain_s: f64,
}

/// What the fault driver did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct PagingUse {
    /// Pages that were waited for.
    pub faults: u64,
    /// Batches that the driver served.
    pub batches: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Bytes copied in both directions.
    pub moved_bytes: u64,
}

/// Bytes over the links.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LinkUse {
    /// To the endpoints, GB/s.
    pub down_gb_s: f64,
    /// To the GPU, GB/s.
    pub up_gb_s: f64,
}

/// One step of the time series.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Step {
    /// End of the step, s.
    pub time_s: f64,
    /// Median and 99th percentile of the loads answered in it, ns.
    pub load_ns: [f64; 2],
    /// Median and 99th percentile of the stores released in it, ns.
    pub store_ns: [f64; 2],
    /// Longest ingress queue at its end.
    pub ingress: u32,
    /// `DevLoad` at its end: 0 light, 1 optimal, 2 moderate overload, 3 severe overload.
    pub dev_load: u32,
    /// A garbage collection runs.
    pub collecting: bool,
    /// Lines on the stack of the deterministic store.
    pub stack: u32,
    /// Use of the links in the step, to the endpoints and to the GPU: share of their bandwidth.
    pub link_use: [f64; 2],
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Workload.
    pub workload: String,
    /// What was simulated.
    pub setup: Setup,
    /// Time of the kernel, s.
    pub time_s: f64,
    /// Line accesses of the cores.
    pub accesses: u64,
    /// Stores among them.
    pub stores: u64,
    /// Share of the accesses that found their line in the last-level cache.
    pub llc_hit_share: f64,
    /// Loads that left the last-level cache, from miss to answer.
    pub loads: Latency,
    /// Lines written back, from the last-level cache until released.
    pub write_backs: Latency,
    /// Those of them that were released while a garbage collection ran or was announced, or right after.
    pub write_backs_in_collection: Latency,
    /// The endpoint.
    pub endpoint: EndpointUse,
    /// The deterministic store.
    pub store: StoreUse,
    /// The fault driver.
    pub paging: PagingUse,
    /// The links.
    pub link: LinkUse,
    /// Loads and stores whose data was checked; 0 where none was carried.
    pub checked: u64,
    /// The time series, where it was asked for.
    pub timeline: Vec<Step>,
}
