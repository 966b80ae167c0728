//! When what was waited for.

pub(crate) mod clocks;
pub(crate) mod meeting;
pub(crate) mod phases;
pub(crate) mod shares;
pub(crate) mod stalls;
