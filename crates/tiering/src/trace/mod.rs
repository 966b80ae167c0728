//! Access traces: one access after the other, as a tool wrote them down.
//!
//! Readers of files live in the face; here are the parsers of text formats, which take it as it arrives and
//! never hold more than one line ([`Parser`]), a last-level cache that lets only misses through
//! ([`Llc`]), and the run of a trace page by page ([`simulate_trace`]).

mod access;
mod llc;
mod pages;
mod parse;
mod run;

pub use access::{Access, ROW_BYTES};
pub use llc::Llc;
pub use parse::{Format, Parser};
pub use run::{Pace, simulate_trace};
