//! Measures this machine: latency and bandwidth of every path from a socket to a memory.
//!
//! [`measure`] finds the sockets, nodes and caches, walks every pair of a socket and a node through
//! the same list of figures (latency by footprint and order, bandwidth by mix and threads, latency
//! under load), and returns a [`tierloom_model::Machine`] that every other verb can use, with a
//! [`Report`] of everything behind it. A figure that cannot be trusted is measured all the same and
//! comes with a [`Warning`].
//!
//! Reading order: `session` (the whole way), `figures` (what is measured), `chase` and `kernels`
//! (the loops), `team` (the threads), `machine` and `monotone` (what becomes of the numbers). [`beside`] lets such a team
//! work at a known rate beside a program.

#![allow(unsafe_code)]

mod arena;
mod chase;
mod describe;
mod error;
mod figures;
mod host;
mod host_memories;
mod kernels;
mod latency;
mod machine;
mod memory_kinds;
mod mix;
mod monotone;
mod neighbours;
mod quiet;
mod report;
mod request;
mod session;
mod statistics;
mod team;
mod traps;
mod warning;

pub use chase::Order;
pub use describe::{Description, describe};
pub use error::ProbeError;
pub use host::{Host, HostNode, HostSocket};
pub use host_memories::host_memories;
pub use kernels::Instructions;
pub use memory_kinds::{FoundKind, MachineFacts, NodeFacts, memory_kinds};
pub use mix::{Mix, Traffic};
pub use monotone::monotone;
pub use neighbours::{Beside, beside};
pub use report::{Bandwidth, Latency, Loaded, Report, Scattered, Together};
pub use request::{Progress, Request, Scale, Tell};
pub use session::{Measurement, measure};
pub use statistics::Percentiles;
pub use traps::Migration;
pub use warning::{Told, Warning};
