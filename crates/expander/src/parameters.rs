//! The parameter set: every figure of the modelled hardware, each with its origin.
//!
//! One file holds the whole set and every experiment uses it as it stands; what a run varies
//! (medium, configuration, controller latency, ...) is named in its [`Setup`](crate::Setup).
//! Times are ns, bandwidths GB/s (GB is 10^9 bytes), sizes bytes.

use std::collections::BTreeMap;

use serde::Deserialize;
use tierloom_model::Figure;
use tierloom_model::units::{LINE_BYTES, LINE_BYTES_F64};

use crate::error::{ExpanderError, Result};

type Real = Figure<f64>;
type Count = Figure<u32>;
type Bytes = Figure<u64>;

/// Everything that is known of the hardware and the workloads.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Version of the file format.
    pub version: u32,
    /// What the keys of `source` mean.
    pub sources: BTreeMap<String, String>,
    /// GPUs by name.
    pub gpus: BTreeMap<String, Gpu>,
    /// DRAM, of the GPU and of DRAM endpoints.
    pub dram: Dram,
    /// The CXL link.
    pub link: Link,
    /// The root port with its speculative reader.
    pub port: Port,
    /// Levels of `DevLoad`.
    pub dev_load: DevLoad,
    /// The deterministic store.
    pub store: Store,
    /// What all SSD endpoints share.
    pub endpoint: Endpoint,
    /// Media of SSD endpoints by name.
    pub media: BTreeMap<String, Medium>,
    /// Unified virtual memory and `GPUDirect` storage.
    pub uvm: Uvm,
    /// Sizes of an experiment.
    pub scale: Scale,
    /// Instruction mix of each workload.
    pub workloads: BTreeMap<String, Mix>,
}

/// A GPU as its memory sees it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// One line that says what it is.
    pub title: String,
    /// Cores (streaming multiprocessors).
    pub cores: Count,
    /// Warps resident on a core.
    pub warps: Count,
    /// Clock, GHz.
    pub clock_ghz: Real,
    /// Cycles of a core's issue port for the memory instructions that cover one 64-byte line.
    pub line_cycles: Real,
    /// Lines that one core may wait for; it issues nothing while it waits for so many.
    pub core_loads: Count,
    /// Lines that one warp may wait for.
    pub warp_loads: Count,
    /// Last-level cache, bytes.
    pub llc_bytes: Bytes,
    /// Its ways.
    pub llc_ways: Count,
    /// Writes of a stored line that go through the last-level cache to memory, each of a warp's instructions its
    /// part; 0 where the cache keeps the line and writes it back when it leaves.
    pub line_stores: Count,
    /// Misses and stores leave the last-level cache in one queue, in their order.
    pub in_order: Figure<bool>,
    /// Answer of the last-level cache beyond what the issue cycles hold, ns.
    pub llc_ns: Real,
    /// Lines that the last-level cache may be fetching.
    pub mshrs: Count,
    /// Lines that it may be writing back.
    pub writebacks: Count,
    /// DRAM channels of the GPU's own memory.
    pub channels: Count,
    /// Memory controller and pads on the way to DRAM and back, ns.
    pub controller_ns: Real,
}

/// A DRAM channel: two sub-channels of banks; clocks are those of the command bus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// Million transfers a second.
    pub mt_s: Real,
    /// Sub-channels of a channel.
    pub subchannels: Count,
    /// Channels of a DRAM endpoint.
    pub endpoint_channels: Count,
    /// Banks of a sub-channel.
    pub banks: Count,
    /// Bytes of a row.
    pub row_bytes: Bytes,
    /// Clocks of the data bus for one line.
    pub burst: Count,
    /// Clocks between two activations over the long run (a quarter of the four-activate window).
    pub activate: Count,
    /// Activate to read, clocks.
    pub rcd: Count,
    /// Read to data, clocks.
    pub cl: Count,
    /// Write to data, clocks.
    pub cwl: Count,
    /// Precharge, clocks.
    pub rp: Count,
    /// Activate to precharge, clocks.
    pub ras: Count,
    /// Read to precharge, clocks.
    pub rtp: Count,
    /// Last written data to precharge, clocks.
    pub wr: Count,
    /// Last written data to the next read, clocks.
    pub wtr: Count,
    /// Between refreshes, ns.
    pub refi_ns: Real,
    /// A refresh, ns.
    pub rfc_ns: Real,
    /// Posted writes at which the bus turns to writing.
    pub drain_at: Count,
    /// Posted writes at which it turns back to reading.
    pub drain_to: Count,
}

/// One CXL link, the same in both directions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bandwidth of one direction, GB/s.
    pub gb_s: Real,
    /// Both controllers there and back, without the bytes, ns.
    pub round_trip_ns: Real,
    /// Bytes of a request without data on the link.
    pub request_bytes: Real,
    /// Bytes of a message with one line.
    pub data_bytes: Real,
    /// Bytes of an answer without data.
    pub answer_bytes: Real,
}

/// Queues of a root port and its speculative reader.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Entries of the queue that the speculative reader looks at.
    pub read_queue: Count,
    /// Requests that may be under way to the endpoint.
    pub memory_queue: Count,
    /// Issued speculative reads that are remembered.
    pub ring: Count,
    /// Waiting writes at which they go before reads.
    pub write_first_at: Count,
    /// Bytes between two ports in turn, when several are interleaved.
    pub interleave_bytes: Bytes,
}

/// Where the levels of `DevLoad` begin, as occupation from 0 to 1.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevLoad {
    /// Optimal load from here.
    pub optimal: Real,
    /// Moderate overload from here.
    pub moderate: Real,
    /// Severe overload from here.
    pub severe: Real,
    /// Fill of the write buffer from which it counts; its load is how much of the rest is taken.
    pub buffer_counts_from: Real,
}

/// Buffering of stores in GPU memory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Writes to the endpoint that may be under way.
    pub outstanding: Count,
    /// Addresses that the SRAM of the address tree holds.
    pub tree_entries: Count,
    /// Between two tries to write back while the endpoint is overloaded, ns.
    pub retry_ns: Real,
}

/// What SSD endpoints of every medium share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Internal DRAM as a share of the data.
    pub cache_share: Real,
    /// Its ways.
    pub cache_ways: Count,
    /// Bytes that one fetch brings into it.
    pub fill_bytes: Bytes,
    /// Its answer, ns.
    pub cache_ns: Real,
    /// Fetches that may be under way.
    pub fetches: Count,
    /// Share of its capacity that holds data: the workload's.
    pub occupancy: Real,
    /// Pages of write buffer for each die.
    pub buffer_pages: Count,
    /// Share of a program that a read waits for until it is suspended.
    pub suspend_share: Real,
    /// From the announcement of a garbage collection to its start, ns.
    pub notice_ns: Real,
}

/// A storage medium.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Medium {
    /// Device that the figures are of.
    pub title: String,
    /// Parallel units (dies).
    pub dies: Count,
    /// Controller on the way to the medium, ns.
    pub controller_ns: Real,
    /// Reading a unit, ns.
    pub read_ns: Real,
    /// Programming a page, ns.
    pub program_ns: Real,
    /// Erasing a block, ns; 0 where nothing is erased.
    pub erase_ns: Real,
    /// Bytes of one program.
    pub page_bytes: Bytes,
    /// Bus between media and controller, GB/s.
    pub bus_gb_s: Real,
    /// Bytes that are erased together in this scaled device.
    pub block_bytes: Bytes,
    /// Spare space over the capacity.
    pub spare: Real,
}

/// The driver that moves pages on faults.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uvm {
    /// Host runtime for one batch of faults, ns.
    pub host_ns: Real,
    /// Host runtime for each block of 2 MiB that a batch brings pages of, ns; none where a set does not say.
    pub block_ns: Option<Real>,
    /// Page, bytes.
    pub page_bytes: Bytes,
    /// Pages of one batch at most.
    pub batch: Count,
    /// Host to GPU copies, GB/s.
    pub copy_gb_s: Real,
}

/// Sizes of an experiment, scaled so that it runs in a second.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// The workload's data, bytes.
    pub data_bytes: Bytes,
    /// Data over the GPU's local memory.
    pub local_ratio: Real,
    /// Line accesses of a run over lines of data.
    pub passes: Real,
}

/// Instruction mix of a workload.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Group of the published tables.
    pub group: String,
    /// Instructions that do not touch memory, of all.
    pub compute: Real,
    /// Loads, of all that touch memory.
    pub loads: Real,
}

impl Parameters {
    /// Reads a parameter set; `file` is how errors call it.
    pub fn from_toml(text: &str, file: &str) -> Result<Self> {
        let parameters: Self = toml::from_str(text).map_err(|error| ExpanderError::Syntax {
            file: file.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
        })?;
        parameters.check()?;
        Ok(parameters)
    }

    fn check(&self) -> Result<()> {
        for (name, gpu) in &self.gpus {
            gpu.check(name)?;
        }
        for (name, medium) in &self.media {
            medium.check(name)?;
        }
        for (name, mix) in &self.workloads {
            share(&format!("workloads.{name}.compute"), mix.compute.value)?;
            share(&format!("workloads.{name}.loads"), mix.loads.value)?;
        }
        self.dram.check()?;
        positive("link.gb_s", self.link.gb_s.value)?;
        positive("uvm.copy_gb_s", self.uvm.copy_gb_s.value)?;
        for time in [Some(&self.uvm.host_ns), self.uvm.block_ns.as_ref()].into_iter().flatten() {
            no_less_than_nothing("uvm", time.value)?;
        }
        positive("1 - dev_load.buffer_counts_from", 1.0 - self.dev_load.buffer_counts_from.value)?;
        share("endpoint.occupancy", self.endpoint.occupancy.value)?;
        positive("endpoint.occupancy", self.endpoint.occupancy.value)?;
        positive("uvm.page_bytes", self.uvm.page_bytes.value as f64 / LINE_BYTES_F64)?;
        positive("endpoint.fill_bytes", (self.endpoint.fill_bytes.value / LINE_BYTES) as f64)?;
        positive("port.memory_queue", f64::from(self.port.memory_queue.value))
    }
}

impl Gpu {
    fn check(&self, name: &str) -> Result<()> {
        let counts = [&self.cores, &self.warps, &self.core_loads, &self.warp_loads, &self.mshrs, &self.writebacks];
        for count in counts {
            positive(&format!("gpus.{name}"), f64::from(count.value))?;
        }
        positive(&format!("gpus.{name}.clock_ghz"), self.clock_ghz.value)?;
        positive(&format!("gpus.{name}.channels"), f64::from(self.channels.value))
    }
}

impl Medium {
    fn check(&self, name: &str) -> Result<()> {
        positive(&format!("media.{name}.dies"), f64::from(self.dies.value))?;
        positive(&format!("media.{name}.bus_gb_s"), self.bus_gb_s.value)?;
        positive(&format!("media.{name}.page_bytes"), (self.page_bytes.value / LINE_BYTES) as f64)?;
        positive(&format!("media.{name}.block_bytes"), (self.block_bytes.value / self.page_bytes.value) as f64)
    }
}

impl Dram {
    fn check(&self) -> Result<()> {
        positive("dram.mt_s", self.mt_s.value)?;
        positive("dram.burst", f64::from(self.burst.value))?;
        positive("dram.activate", f64::from(self.activate.value))?;
        positive("dram.banks", f64::from(self.banks.value))?;
        positive("dram.refi_ns - dram.rfc_ns", self.refi_ns.value - self.rfc_ns.value)
    }
}

fn positive(key: &str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    let problem = format!("{value} is not a number above 0");
    Err(ExpanderError::Figure { key: key.to_owned(), problem, hint: "check the number and its unit".to_owned() })
}

fn no_less_than_nothing(key: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    let problem = format!("{value} is not a number of at least 0");
    Err(ExpanderError::Figure { key: key.to_owned(), problem, hint: "check the number and its unit".to_owned() })
}

fn share(key: &str, value: f64) -> Result<()> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    let problem = format!("{value} is not a share from 0 to below 1");
    Err(ExpanderError::Figure { key: key.to_owned(), problem, hint: "write for example 0.31, not 31".to_owned() })
}
