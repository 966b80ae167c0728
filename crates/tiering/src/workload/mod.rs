//! What the simulator is told about a program, and where that comes from.
//!
//! `description.rs` is the noun, with the format of its file; `check.rs` and `filling.rs` refuse what makes no sense;
//! `from_profile.rs` and `samples.rs` make it of what was recorded. `demand.rs`, `zipf.rs` and `sweep.rs` say what its
//! streams ask of memory, and of which pages, for both evaluators.

mod check;
pub(crate) mod demand;
mod description;
pub(crate) mod filling;
mod from_profile;
pub(crate) mod samples;
pub(crate) mod sweep;
pub(crate) mod zipf;

pub use description::{Fill, Phase, Region, Spread, Stream, Workload, WorkloadTag};
