//! How long a program takes under a placement.
//!
//! Machine × profile × placement → time. This engine stands between the nouns and the placement
//! policies: [`Predictor`] compiles a machine and a profile once, [`Demand`] is what a placement asks
//! of each memory (linear in the fractions, so a search can shift shares around cheaply), and
//! [`Predictor::time_s`] solves for the time.
//!
//! The model. Each thread alternates between computing and waiting for memory. Of a phase,
//!
//! ```text
//! T = compute_s / threads + Σ_m wait_m · L_m(T)      wait_m = Σ lines in m / (threads · mlp)
//! ```
//!
//! where `L_m(T)` is the loaded latency of memory `m` when the phase's traffic passes within `T`
//! (`tierloom_contention`). The right side falls as `T` grows, so there is exactly one solution; it
//! is bracketed from below by the roofline, the least time in which every memory, path and link can
//! carry the traffic. Where the right side is below the roofline the phase is bandwidth bound and
//! takes the roofline. Phases follow each other; their times add up.
//!
//! Lines that are read are waited for. Lines written back load their memory, but no thread waits.
//!
//! Threads on several sockets ([`Predictor::over`]) take even parts of a phase's work and meet at its
//! end, as OpenMP's loops do: `T` is that of the slowest team, while the memories carry the traffic of
//! all of them within it.
//!
//! ```
//! # const MACHINE: &str = include_str!("../../../python/tierloom/catalog/machines/liu-a.toml");
//! # const PROFILE: &str = include_str!("../../../python/tierloom/catalog/profiles/mg-e.profile/profile.json");
//! use tierloom_model::{Machine, Placement, Profile};
//! use tierloom_predict::{Predictor, Run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (machine, profile) = (Machine::from_toml(MACHINE, "liu-a")?, Profile::from_json(PROFILE, "mg-e")?);
//! let predictor = Predictor::new(&machine, &profile, Run { socket: 0, threads: 32 })?;
//! let in_memory = |name: &str| {
//!     let memory = machine.memory_index(name).unwrap();
//!     predictor.predict(&Placement::uniform(predictor.objects(), predictor.memories(), memory))
//! };
//! assert!(in_memory("cxl").time_s > 1.9 * in_memory("ldram").time_s);
//! # Ok(())
//! # }
//! ```

mod ablated;
mod anchor;
mod behind;
mod beyond_core;
mod compile;
mod demand;
mod doubt;
mod error;
mod labels;
mod likely;
mod open;
mod phase;
mod predictor;
mod prices;
mod report;
mod run;
mod timed;

pub use ablated::{Ablated, ablated};
pub use anchor::anchored;
pub use demand::Demand;
pub use error::PredictError;
pub use likely::likely_on;
pub use predictor::Predictor;
pub use prices::Prices;
pub use run::Run;
pub use timed::Timed;
