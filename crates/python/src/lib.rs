//! The private Rust core of the Python package: `tierloom._core`.
//!
//! Thin by design: nouns are handles, parsed once; requests and answers are plain data; errors are the exceptions
//! of `tierloom.errors`. The public API is Python and lives beside it; `_core.pyi` types what is here.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod code_files;
mod counted;
mod curves;
mod documents;
mod engines;
mod errors;
mod expander;
mod guarded;
mod kept;
mod matching;
mod nouns;
mod placing;
mod pools;
mod probing;
mod recording;
mod tiering;
mod user_policies;

use pyo3::prelude::*;

/// What Python calls.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::curves::path_curve;
    #[pymodule_export]
    use super::engines::{Comparison, compare, parse_budget, placement_policies, predict};
    #[pymodule_export]
    use super::expander::{expand, expand_trace};
    #[pymodule_export]
    use super::kept::{analyse_recording, describe_recording, is_being_recorded};
    #[pymodule_export]
    use super::matching::{match_nodes, nodes_to_give};
    #[pymodule_export]
    use super::nouns::{Machine, Plan, Profile, format_bytes, parse_bytes};
    #[pymodule_export]
    use super::placing::{apply_plan, left_host_weights, restore_host_weights, run_plan};
    #[pymodule_export]
    use super::pools::{OpenPool, check_pool, lacks_pmdk, look_at_pool, pool_backend, repair_pool, stream_volatile};
    #[pymodule_export]
    use super::probing::{
        beside_neighbours, describe_machine, host_identity, measure_machine, memory_kinds, rising_curve,
    };
    #[pymodule_export]
    use super::recording::{import_perf, record_profile};
    #[pymodule_export]
    use super::tiering::{Workload, import_trace, simulate, simulate_samples, simulate_trace, simulator_terms};
}
