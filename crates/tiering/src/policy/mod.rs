//! The migration policies: one trait (`contract.rs`), one file each, one list.
//!
//! To add a policy, write its file, declare it, and give it a line in [`LISTED`].

mod alto;
mod autonuma;
mod colloid;
mod contract;
mod damon;
mod heat;
mod hemem;
mod hot_promotion;
mod knobs;
mod memtis;
mod mode2;
mod nomad;
mod none;
mod tpp;

use std::sync::Arc;

use crate::error::{Result, TieringError};

pub use contract::{Fault, Policy, Room, ScanRule, Verdict};
pub use heat::{Group, Move, View};
pub use knobs::Knob;

/// Makes the policy that a caller brings along, in its first state: each run asks for one of its own.
#[derive(Clone)]
pub struct Brought(Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>);

impl Brought {
    /// From a function that makes one.
    pub fn new(make: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn make(&self) -> Box<dyn Policy> {
        (self.0)()
    }
}

impl std::fmt::Debug for Brought {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Brought(..)")
    }
}

impl PartialEq for Brought {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A policy's name, and what makes one.
type Listed = (&'static str, fn() -> Box<dyn Policy>);

/// Every policy by its name, with its default knobs.
const LISTED: &[Listed] = &[
    ("none", || Box::new(none::None)),
    ("autonuma", || Box::new(autonuma::AutoNuma::default())),
    ("tiering", || Box::new(mode2::Mode2::default())),
    ("tiering-0.8", || Box::new(mode2::Mode2::tiering_08())),
    ("tpp", || Box::new(tpp::Tpp::default())),
    ("hot-promotion", || Box::new(hot_promotion::HotPromotion::default())),
    ("hemem", || Box::new(hemem::HeMem::default())),
    ("memtis", || Box::new(memtis::Memtis::default())),
    ("colloid", || Box::new(colloid::Colloid::default())),
    ("nomad", || Box::new(nomad::Nomad::default())),
    ("alto", || Box::new(alto::Alto::default())),
    ("damon", || Box::new(damon::Damon::default())),
];

/// Names that [`by_name`] reads.
pub fn names() -> Vec<&'static str> {
    LISTED.iter().map(|(name, _)| *name).collect()
}

/// The policy of a name, with its default knobs.
///
/// # Errors
/// [`TieringError::BadRequest`] with the names that are known.
pub fn by_name(name: &str) -> Result<Box<dyn Policy>> {
    let listed = LISTED.iter().find(|(known, _)| *known == name);
    listed.map(|(_, make)| make()).ok_or_else(|| {
        let problem = format!("there is no policy `{name}`");
        TieringError::request("policy", problem, format!("use one of: tierloom, {}", names().join(", ")))
    })
}
