//! The machine that a program runs on, as far as its kernel tells.

use serde::{Deserialize, Serialize};

use crate::machine::MemoryKind;

/// A memory node of this machine, as seen from where the program runs. What the kernel does not say is
/// `None`, never guessed; so is what differs between sockets that the program may run on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostMemory {
    /// The kernel's number.
    pub node: u32,
    /// What it is made of.
    pub kind: MemoryKind,
    /// Whether it hangs on the socket that the program runs on.
    pub near: Option<bool>,
    /// Bytes.
    pub capacity_bytes: u64,
    /// Distance of the kernel (ACPI SLIT), 10 for the node itself.
    pub distance: Option<u64>,
    /// Read latency that firmware tells (HMAT, CDAT), ns.
    pub latency_ns: Option<f64>,
    /// Lesser of read and write bandwidth that firmware tells, GB/s.
    pub gb_s: Option<f64>,
}
