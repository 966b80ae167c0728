//! Starts a program with the preload library in it, and hands on what the library writes, in order of time.

pub mod channel;
pub mod error;
mod lanes;
mod merge;
pub mod program;
mod tsc;

pub use error::LaunchError;

/// Smallest allocation that is an object, bytes: 8 pages. Smaller ones cannot be placed one by one.
pub const DEFAULT_MIN_BYTES: u64 = 32 << 10;
