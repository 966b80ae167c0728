//! What one run simulates: the request, and what it resolves to.

use serde::{Deserialize, Serialize};

use tierloom_model::units::LINE_BYTES;

use crate::error::{ExpanderError, Result};
use crate::parameters::{Gpu, Medium, Mix, Parameters};

/// A way to give a GPU more memory than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// All data in GPU memory, as if it were large enough: the yardstick.
    GpuDram,
    /// Unified virtual memory: pages come from host memory on faults.
    Uvm,
    /// `GPUDirect` storage: pages come from an SSD on faults.
    Gds,
    /// CXL endpoint, nothing else.
    Cxl,
    /// With a speculative read of the 256 bytes around every line that is about to be read.
    CxlNaive,
    /// With speculative reads as long as `DevLoad` allows, forward.
    CxlDyn,
    /// With speculative reads of 1 KiB, always.
    CxlMax,
    /// With speculative reads placed by the address window.
    CxlSr,
    /// That, and stores buffered in GPU memory.
    CxlDs,
}

impl Config {
    /// Data behind a root port.
    pub(crate) fn is_cxl(self) -> bool {
        !matches!(self, Self::GpuDram | Self::Uvm | Self::Gds)
    }

    /// Data comes page by page.
    pub(crate) fn is_paged(self) -> bool {
        matches!(self, Self::Uvm | Self::Gds)
    }
}

/// How the speculative reader places its window around a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// As the paper's text has it: both ends move with the requests in the two queues.
    Literal,
    /// Forward or backward by the speculative reads issued on either side.
    #[default]
    Steer,
}

/// What the fault driver fetches with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefetch {
    /// Nothing.
    #[default]
    None,
    /// Its 64 KiB leaf.
    Leaf,
    /// The largest part of its 2 MiB tree that is more than half there.
    Tree,
}

/// One run. What is `None` is taken from the parameter set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// Name of a GPU of the parameter set.
    pub gpu: String,
    /// `dram`, or a name of the set's media.
    pub media: String,
    /// Configuration.
    pub config: Config,
    /// Placement of the speculative window.
    pub window: Window,
    /// Prefetching of the fault driver.
    pub prefetch: Prefetch,
    /// Root ports, each with an endpoint; pages interleave over them.
    pub ports: u32,
    /// Round trip of the CXL controllers, ns.
    pub controller_ns: Option<f64>,
    /// Bandwidth of one direction of the link, GB/s.
    pub link_gb_s: Option<f64>,
    /// Data over local GPU memory.
    pub local_ratio: Option<f64>,
    /// The workload's data, bytes.
    pub data_bytes: Option<u64>,
    /// Line accesses over lines of data.
    pub passes: Option<f64>,
    /// Entries of the address tree of the deterministic store.
    pub tree_entries: Option<u32>,
    /// Seed of the workload's data.
    pub seed: u64,
    /// Carry the data along and check every load.
    pub carry: bool,
    /// Width of a step of the time series, ns.
    pub timeline_ns: Option<f64>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            gpu: "vortex-200mhz".to_owned(),
            media: "dram".to_owned(),
            config: Config::Cxl,
            window: Window::default(),
            prefetch: Prefetch::default(),
            ports: 1,
            controller_ns: None,
            link_gb_s: None,
            local_ratio: None,
            data_bytes: None,
            passes: None,
            tree_entries: None,
            seed: 1,
            carry: false,
            timeline_ns: None,
        }
    }
}

/// Name of the medium that is no SSD.
pub const DRAM: &str = "dram";

const MOST_PORTS: u32 = 64;
const LEAST_DATA: u64 = 1 << 20;
/// Line numbers have 32 bits, and some are kept free.
const MOST_DATA: u64 = 1 << 37;

impl Setup {
    /// The parameter set with this run's own figures in it.
    pub(crate) fn applied(&self, parameters: &Parameters) -> Parameters {
        let mut set = parameters.clone();
        let put = |figure: &mut tierloom_model::Figure<f64>, own: Option<f64>| {
            if let Some(own) = own {
                figure.value = own;
            }
        };
        put(&mut set.link.round_trip_ns, self.controller_ns);
        put(&mut set.link.gb_s, self.link_gb_s);
        put(&mut set.scale.local_ratio, self.local_ratio);
        put(&mut set.scale.passes, self.passes);
        if let Some(bytes) = self.data_bytes {
            set.scale.data_bytes.value = bytes;
        }
        if let Some(entries) = self.tree_entries {
            set.store.tree_entries.value = entries;
        }
        set
    }

    /// Refuses what cannot be simulated.
    pub(crate) fn check(&self, applied: &Parameters) -> Result<()> {
        if !(1..=MOST_PORTS).contains(&self.ports) {
            return Err(ExpanderError::request("ports", format!("{} root ports", self.ports), "give 1 to 64"));
        }
        let data = applied.scale.data_bytes.value;
        if !(LEAST_DATA..=MOST_DATA).contains(&data) {
            let problem = format!("{data} bytes of data");
            return Err(ExpanderError::request("data_bytes", problem, "give 1 MiB to 128 GiB"));
        }
        above("local_ratio", applied.scale.local_ratio.value, 1.0)?;
        above("passes", applied.scale.passes.value, 1e-6)?;
        above("controller_ns", applied.link.round_trip_ns.value, 0.0)?;
        above("link_gb_s", applied.link.gb_s.value, 1e-3)?;
        above("timeline_ns", self.timeline_ns.unwrap_or(1.0), 1.0)?;
        if matches!(self.config, Config::Gds) && self.media == DRAM {
            return Err(ExpanderError::request("media", "there is no storage in DRAM", "give an SSD medium with gds"));
        }
        Ok(())
    }
}

fn above(key: &'static str, value: f64, least: f64) -> Result<()> {
    if value.is_finite() && (least..=1e12).contains(&value) {
        return Ok(());
    }
    Err(ExpanderError::request(key, format!("{value} is below {least} or no number"), "check the number and its unit"))
}

/// A GPU by its name.
pub(crate) fn gpu<'a>(parameters: &'a Parameters, name: &str) -> Result<&'a Gpu> {
    parameters.gpus.get(name).ok_or_else(|| ExpanderError::unknown("GPU", name, parameters.gpus.keys()))
}

/// An SSD medium by its name; none for DRAM.
pub(crate) fn medium<'a>(parameters: &'a Parameters, name: &str) -> Result<Option<&'a Medium>> {
    if name == DRAM {
        return Ok(None);
    }
    let dram = DRAM.to_owned();
    let known = || parameters.media.keys().chain([&dram]);
    parameters.media.get(name).map(Some).ok_or_else(|| ExpanderError::unknown("medium", name, known()))
}

/// The instruction mix of a workload.
pub(crate) fn mix<'a>(parameters: &'a Parameters, workload: &str) -> Result<&'a Mix> {
    let known = || parameters.workloads.keys();
    parameters.workloads.get(workload).ok_or_else(|| ExpanderError::unknown("workload", workload, known()))
}

/// Lines of the workload's data.
pub(crate) fn data_lines(parameters: &Parameters) -> u32 {
    (parameters.scale.data_bytes.value / LINE_BYTES) as u32
}
