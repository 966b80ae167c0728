//! Where each data object should live: placement policies and the planner over them.
//!
//! This engine stands between prediction and the plan file. A [`Request`] says on which machine's
//! socket a program runs and how much fast memory it may take; [`compare`] tries every [`Policy`]
//! and returns each with its predicted time, the one that is best, and the frontier of time against
//! fast memory; [`plan_from`] turns the best one into rules that a person can read and edit. Before a
//! plan is applied [`match_nodes`] says which nodes of the machine at hand its memories are.
//!
//! Promises: every policy is judged by what the kernel does with its actions ([`Context::realise`]),
//! never by what it meant; no placement exceeds a capacity; `tierloom` is never predicted slower
//! than another policy; the same input gives the same output.
//!
//! Reading order: `policy/mod.rs` (the trait and the list), `context.rs` and `pages.rs` (what actions
//! come to), `planner.rs`, `compared.rs`, `slowdown.rs`, then `policy/tierloom.rs` and `search/`. All objects count at their full
//! size at once: lifetimes that do not overlap are not used to share room.

mod balance;
mod bandwidth;
mod compared;
mod context;
mod error;
mod frontier;
mod match_error;
mod node_match;
mod pages;
mod plan;
mod planner;
pub mod policy;
mod request;
mod search;
mod slowdown;
mod weights;

#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod testing;

pub use balance::{Equal, Tier, loads};
pub use bandwidth::stated_gb_s;
pub use context::Context;
pub use error::PlaceError;
pub use match_error::{MatchError, Open};
pub use node_match::{Because, NodeMatch, match_nodes, nodes_to_give};
pub use plan::{actions_for, plan_from};
pub use planner::{compare, predictor};
pub use policy::{Brought, Policy};
pub use request::{Request, parse_budget};
