//! Who calls whom.

pub mod complete;
pub mod sites;
pub mod unique_callers;
