//! Pages that move: what page migration does to a program on a machine.
//!
//! This engine stands beside the prediction of placements: where that asks how fast a program is with
//! its pages where they are, this one lets the kernel, or a policy from the literature, move them. A
//! [`Workload`] says which pages are visited how often, a [`Request`] which policy, placement and part
//! of the machine; [`simulate`] answers with an [`Outcome`]: time, its parts, the kernel's
//! counters, and all of it over time.
//!
//! Two evaluators answer. The exact one follows every visit to every page; the cohort one keeps expected
//! counts of like pages and takes terabytes and hours. Scanner, kswapd and policies are written
//! once and serve both. The kernel's side follows Linux 6.12; each file names the functions that it follows.
//!
//! Promises: the same input gives the same output; nothing migrates that the kernel would not look
//! at; time is what the loaded latency of each memory makes of the misses, as in prediction.
//!
//! Each folder uses those above it:
//!
//! ```text
//! workload/   what a program does with its memory
//! kernel/     nodes, first touch, scanner, kswapd
//! policy/     what moves, a file a policy
//! engine/     what both evaluators run on: regions as pages, work as time, the books
//! exact/      page by page            cohort/   expected counts of like pages
//! placement/  where pages are put at first, by name or searched
//! trace/      access traces           simulate.rs   a request answered
//! ```

mod cohort;
mod engine;
mod error;
mod exact;
mod kernel;
mod outcome;
mod placement;
pub mod policy;
mod request;
mod simulate;
pub mod trace;
mod workload;

pub use engine::costs::Costs;
pub use error::TieringError;
pub use exact::BYTES_PER_PAGE;
pub use kernel::counters::Counters;
pub use kernel::nodes::{Node, Nodes, TierRule, Watermarks};
pub use kernel::reclaim::LruKind;
pub use kernel::scanner::ScanKnobs;
pub use kernel::vma::{VmaPolicy, Weight};
pub use outcome::{NodeUse, Outcome, Parts, PhaseUse, Point, RegionUse};
pub use placement::named::NAMES as PLACEMENTS;
pub use request::{Evaluator, OURS, Request};
pub use simulate::{simulate, simulate_samples};
pub use workload::{Fill, Phase, Region, Spread, Stream, Workload, WorkloadTag};
