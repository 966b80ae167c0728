//! The way from the GPU to its endpoints: which port a line goes through, what waits there, and the wires.
//!
//! The published additions stand here too: speculative reads (`speculate.rs`) and deterministic stores (`store.rs`),
//! both steered by the load that endpoints report (`dev_load.rs`).

pub(crate) mod decoder;
pub(crate) mod dev_load;
pub(crate) mod lanes;
pub(crate) mod root_port;
pub(crate) mod speculate;
pub(crate) mod store;
