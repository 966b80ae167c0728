//! The nouns of Tierloom.
//!
//! A [`Machine`] is what memory there is, a [`Profile`] what a program does with its data, a
//! [`Placement`] where each data object lives, and a [`Plan`] the same as rules that a person can
//! read and edit. Engines turn them into a [`Prediction`] or a [`Comparison`]. Everything here is
//! plain data with units in the field names, checked once when it is read; nothing here opens a
//! file, and nothing here knows another room of the house.

mod access;
mod access_count;
mod error;
mod figure;
mod file;
mod filling;
pub mod hash;
mod host_memory;
pub mod index;
mod load;
mod machine;
mod miss_curve;
mod placement;
mod plan;
mod plan_memory;
mod prediction;
mod profile;
mod run_time;
mod sample;
mod schema;
mod share;
mod site;
mod undisturbed;
pub mod units;
pub mod warning;

pub use access::{Access, BeyondCore, Pattern, Touched, Within};
pub use access_count::{AccessCount, CountSource, CountedTraffic, Unplaced};
pub use error::{Flaw, ModelError, Result};
pub use figure::{Figure, Kind, Origin};
pub use file::{FORMAT_VERSION, MachineTag, PlanTag, ProfileTag, another_kind};
pub use filling::Piece;
pub use host_memory::HostMemory;
pub use load::{Curve, Form, Load, Peak, Shape};
pub use machine::{Link, Machine, Memory, MemoryKind, Path, Socket};
pub use miss_curve::{MissPoint, share_let_through};
pub use placement::{Placement, PlacementError};
pub use plan::{Action, PhaseMove, Plan, PlanPhase, Predicted, Rule, RuleOptions, Selector};
pub use plan_memory::PlanMemory;
pub use prediction::{
    Anchor, Bound, Comparison, FrontierPoint, ObjectUse, PhasePrediction, PolicyResult, Prediction, TierUse,
};
pub use profile::{DataSource, HOTNESS_BINS, Object, ObjectKind, Phase, Profile, Program, Sampling, Unattributed};
pub use run_time::RunTime;
pub use sample::{AccessKind, SampleRow, UNKNOWN_OFFSET, samples_from_npy, samples_to_npy};
pub use schema::{schemas, schemas_of};
pub use share::Share;
pub use site::{Frame, InlinedInto, Site, is_on_disk};
pub use undisturbed::{Taken, Undisturbed};
pub use warning::Warning;
