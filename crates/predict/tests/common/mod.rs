//! A profile to try predictions on.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

pub(crate) use tierloom_fixtures::{GIB, access, expander as machine, object, phase, profile};
use tierloom_model::{Pattern, Profile};

/// Three objects, two phases: a streaming one and one of lookups.
pub(crate) fn small_profile() -> Profile {
    let sweep =
        vec![access("grid", Pattern::Stream, 400e9, 200e9, 40.0), access("index", Pattern::Strided, 50e9, 0.0, 8.0)];
    let look_up = vec![
        access("table", Pattern::Random, 90e9, 10e9, 6.0),
        access("list", Pattern::Chain, 5e9, 0.0, 1.0),
        access("grid", Pattern::Stream, 40e9, 0.0, 40.0),
    ];
    profile(
        vec![object("grid", 64 * GIB), object("index", 8 * GIB), object("table", 16 * GIB), object("list", 4 * GIB)],
        vec![phase("sweep", 8, 4.0, sweep), phase("look-up", 8, 10.0, look_up)],
    )
}
