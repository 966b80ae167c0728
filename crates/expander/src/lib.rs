//! GPU memory expansion over CXL, event by event.
//!
//! This engine simulates a GPU whose memory is too small for its data, and five published ways to
//! give it more: unified virtual memory, `GPUDirect` storage, a CXL endpoint of DRAM or of storage,
//! the same with speculative reads, and with deterministic stores (Gouk et al., "CXL-GPU: Pushing GPU
//! Memory Boundaries with the Integration of CXL Technologies", arXiv 2506.15601). Each hardware part
//! is one file:
//!
//! ```text
//!  gpu/cores ─ gpu/last_level ─ link/decoder ─ link/root_port ─ link/lanes ─ endpoint/ssd ─ endpoint/media
//!     │         (cache.rs, mshr)                 ├ speculate                    ├ dram/       ├ log
//!  workload/             dram/ ─ link/store ─────┘ (SR, DS)                     └ dev_load    └ write_buffer
//!                        gpu/uvm (faults)
//! ```
//!
//! `system/` wires them. Promises: the same request gives the same outcome, bit for bit; every load
//! is answered once, with data that `Setup::carry` checks; no queue outgrows its bound and nothing
//! carries more than its bandwidth. Memory grows with the lines of the data (a few bytes each), not
//! with the length of the run.

// Line numbers, clocks and picoseconds are whole numbers made from figures that `Parameters` has
// checked to be small and positive; the casts between them are what this crate is about.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

mod cache;
mod dram;
mod endpoint;
mod error;
mod event;
mod events;
mod gpu;
mod histogram;
mod ids;
mod ledger;
mod line;
mod link;
mod metrics;
mod outcome;
mod parameters;
mod requests;
mod setup;
mod system;
mod time;
mod workload;

pub use dram::SubChannel;
pub use error::{ExpanderError, Result};
pub use outcome::{EndpointUse, Latency, LinkUse, Outcome, PagingUse, Step, StoreUse};
pub use parameters::{DevLoad, Dram, Endpoint, Gpu, Link, Medium, Mix, Parameters, Port, Scale, Store, Uvm};
pub use setup::{Config, DRAM, Prefetch, Setup, Window};
pub use workload::{RECORD_BYTES, Trace};

use system::System;
use workload::Workload;

/// Simulates one workload of the parameter set on one system.
pub fn simulate(parameters: &Parameters, workload: &str, setup: &Setup) -> Result<Outcome> {
    let set = setup.applied(parameters);
    setup.check(&set)?;
    let mix = setup::mix(&set, workload)?;
    let lines = setup::data_lines(&set);
    let accesses = Workload::new(workload, mix, lines, set.scale.passes.value, warps(&set, setup)?, setup.seed)?;
    finish(&set, setup, workload, accesses, mix.compute.value, lines)
}

/// Simulates a recorded trace; `compute` is the share of instructions that do not touch memory.
pub fn replay(parameters: &Parameters, trace: &Trace, compute: f64, setup: &Setup) -> Result<Outcome> {
    let set = setup.applied(parameters);
    setup.check(&set)?;
    if !(0.0..1.0).contains(&compute) {
        let problem = format!("{compute} is not a share from 0 to below 1");
        return Err(ExpanderError::request("compute", problem, "write for example 0.2, not 20"));
    }
    let accesses = Workload::replay(trace, warps(&set, setup)?);
    finish(&set, setup, "trace", accesses, compute, trace.lines())
}

fn warps(set: &Parameters, setup: &Setup) -> Result<u32> {
    let gpu = setup::gpu(set, &setup.gpu)?;
    Ok(gpu.cores.value * gpu.warps.value)
}

fn finish(
    set: &Parameters,
    setup: &Setup,
    name: &str,
    accesses: Workload,
    compute: f64,
    lines: u32,
) -> Result<Outcome> {
    let mut system = System::new(set, setup, accesses, compute, lines)?;
    system.run()?;
    Ok(system.outcome(name, setup))
}
