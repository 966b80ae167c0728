//! The migration policies: one trait (`contract.rs`), one file each, one list.
//!
//! To add a policy, write its file and name it in [`by_name`] and [`NAMES`].

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

use crate::error::{Result, TieringError};

pub use contract::{Fault, Policy, Room, ScanRule, Verdict};
pub use heat::{Group, Move, View};
pub use knobs::Knob;

/// Names that [`by_name`] reads.
pub const NAMES: [&str; 12] = [
    "none",
    "autonuma",
    "tiering",
    "tiering-0.8",
    "tpp",
    "hot-promotion",
    "hemem",
    "memtis",
    "colloid",
    "nomad",
    "alto",
    "damon",
];

/// The policy of a name, with its default knobs.
///
/// # Errors
/// [`TieringError::BadRequest`] with the names that are known.
pub fn by_name(name: &str) -> Result<Box<dyn Policy>> {
    let policy: Box<dyn Policy> = match name {
        "none" => Box::new(none::None),
        "autonuma" => Box::new(autonuma::AutoNuma::default()),
        "tiering" => Box::new(mode2::Mode2::default()),
        "tiering-0.8" => Box::new(mode2::Mode2::tiering_08()),
        "tpp" => Box::new(tpp::Tpp::default()),
        "hot-promotion" => Box::new(hot_promotion::HotPromotion::default()),
        "hemem" => Box::new(hemem::HeMem::default()),
        "memtis" => Box::new(memtis::Memtis::default()),
        "colloid" => Box::new(colloid::Colloid::default()),
        "nomad" => Box::new(nomad::Nomad::default()),
        "alto" => Box::new(alto::Alto::default()),
        "damon" => Box::new(damon::Damon::default()),
        _ => {
            let problem = format!("there is no policy `{name}`");
            return Err(TieringError::request(
                "policy",
                problem,
                format!("use one of: tierloom, {}", NAMES.join(", ")),
            ));
        }
    };
    Ok(policy)
}
