//! The kernel's side, after Linux 6.12: nodes and their watermarks, where pages go, who looks at them, who moves them out.
//!
//! Written once for both evaluators; each file names the functions that it follows.

pub(crate) mod counters;
pub(crate) mod first_touch;
pub(crate) mod nodes;
pub(crate) mod reclaim;
pub(crate) mod scanner;
pub(crate) mod vma;
