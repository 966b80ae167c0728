//! The GPU: cores that issue, the last-level cache with its misses and write-backs, and the driver that serves faults.

pub(crate) mod cores;
pub(crate) mod last_level;
pub(crate) mod mshr;
pub(crate) mod uvm;
