//! The one door to the kernel: system calls, `/proc` and `/sys`. It never decides.
//!
//! Whoever needs the kernel calls a function of this crate; what the answer means is the caller's
//! business. Readers of `/proc` and `/sys` take the root folder as a parameter, so that they can be
//! tested on recorded trees.

#![allow(unsafe_code)]

pub mod clock;
pub mod cpus;
pub mod cxl;
pub mod error;
pub mod firmware;
pub mod host;
pub mod looked;
pub mod mapped;
pub mod maps;
pub mod memory;
pub mod node_devices;
pub mod pagemap;
pub mod pages;
pub mod peers;
pub mod perf;
pub mod ptrace;
pub mod root;
pub mod sample_cost;
pub mod shared;
pub mod skid;
pub mod space;
pub mod spawn;
pub mod threads;
pub mod times;

pub use error::LinuxError;
