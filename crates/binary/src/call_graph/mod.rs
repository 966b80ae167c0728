//! Who calls whom.

pub(crate) mod changed_registers;
pub mod complete;
pub mod sites;
pub mod teams;
pub mod unique_callers;
