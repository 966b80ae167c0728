//! The whole system: parts, wires, and the loop that lets events happen.
//!
//! `cache_side.rs` is the GPU's side of the last-level cache, `cxl_side.rs` the way to the endpoints
//! and back, `paging.rs` the fault driver's. Parts do not know one another; they meet in `state.rs`.

mod cache_side;
mod cxl_side;
mod far_side;
mod faults;
mod paging;
mod report;
mod run;
mod state;

pub(crate) use state::System;
