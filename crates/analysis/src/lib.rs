//! From a recording to a profile, without files and without a clock: the whole flow on one page.

mod address_space;
mod attribution;
mod frequency;
mod memory_samples;
mod profile;
mod time;
mod traffic;

pub use profile::analyse;
