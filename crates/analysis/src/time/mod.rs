//! When what was waited for.

pub(crate) mod clocks;
pub(crate) mod openmp;
pub(crate) mod phases;
pub(crate) mod shares;
pub(crate) mod stalls;
