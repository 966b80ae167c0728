//! When what was waited for.

pub(crate) mod confidence;
pub(crate) mod phases;
pub(crate) mod stalls;
