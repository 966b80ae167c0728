//! What is behind a root port: a CXL device of memory or of storage.

mod device;
pub(crate) mod log;
pub(crate) mod media;
mod ssd;
pub(crate) mod write_buffer;

pub(crate) use device::Endpoint;
pub(crate) use ssd::{Arrival, Counts, Ssd};
