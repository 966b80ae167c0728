//! Samples and instruction decoding: who touches which object, and how.
//!
//! `record` runs a program and yields a [`Recording`]; `analyse` turns it into a profile.

mod analyse;
mod anchors;
mod blame;
mod cache;
pub mod calibrate;
mod callers;
mod calls;
mod carried;
mod cfg;
mod code;
mod confidence;
mod counters;
mod counts;
mod densities;
mod elements;
mod elf;
mod emulate;
mod entered;
pub mod error;
mod flow;
mod heuristics;
mod hotness;
pub mod import;
mod instruction;
mod judge;
mod kinds;
mod lines;
mod naming;
mod objects;
mod observe;
mod outcomes;
mod pairs;
mod pattern;
mod phases;
pub mod place;
mod ranges;
pub mod record;
pub mod recording;
mod registers;
mod remainder;
mod replay;
mod roots;
mod settled;
mod stalls;
mod tally;
mod touches;
mod traffic;
mod trips;
mod warnings;
mod world;

pub use analyse::{Processor, analyse};
pub use error::SamplerError;
pub use record::{RecordRequest, record};
pub use recording::Recording;
