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
//! Reading order: `workload.rs`, `nodes.rs`, `vma.rs` (what there is); `scanner.rs`, `reclaim.rs` (what
//! the kernel does); `policy/mod.rs` and `policy/mode2.rs`; then `exact/mod.rs` and `cohort/mod.rs`.

mod cohort;
mod costs;
mod counters;
mod descend;
mod error;
mod exact;
mod filling;
mod from_profile;
mod layout;
mod ledger;
mod nodes;
mod ours;
mod outcome;
mod placement;
pub mod policy;
mod reclaim;
mod request;
mod samples;
mod scanner;
mod settle;
mod stretch;
mod sweep;
pub mod trace;
mod vma;
mod workload;

pub use costs::Costs;
pub use counters::Counters;
pub use error::TieringError;
pub use exact::BYTES_PER_PAGE;
pub use filling::Fill;
pub use nodes::{Node, Nodes, TierRule, Watermarks};
pub use ours::NAME as OURS;
pub use outcome::{NodeUse, Outcome, Parts, PhaseUse, Point, RegionUse};
pub use placement::NAMES as PLACEMENTS;
pub use reclaim::LruKind;
pub use request::{Evaluator, Request, simulate, simulate_samples};
pub use scanner::ScanKnobs;
pub use vma::VmaPolicy;
pub use workload::{Phase, Region, Spread, Stream, Workload};
