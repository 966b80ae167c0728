//! The private Rust core of the Python package: `tierloom._core`.
//!
//! Thin by design: functions take and return the text of files (TOML, JSON) and raise the exceptions
//! of `tierloom.errors`. The public API is Python and lives beside it; `_core.pyi` types what is here.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod code_files;
mod curves;
mod engines;
mod errors;
mod expander;
mod guarded;
mod kept;
mod nouns;
mod placing;
mod pools;
mod probing;
mod recording;
mod tiering;

use pyo3::prelude::*;

/// Text in, text out: TOML and JSON as the nouns' files spell them.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::curves::path_curve;
    #[pymodule_export]
    use super::engines::{compare, make_plan, parse_budget, predict};
    #[pymodule_export]
    use super::expander::{expand, expand_trace};
    #[pymodule_export]
    use super::kept::{analyse_recording, describe_recording, is_being_recorded};
    #[pymodule_export]
    use super::nouns::{check_machine, check_plan, check_profile, format_bytes, parse_bytes, write_machine};
    #[pymodule_export]
    use super::placing::{apply_plan, left_host_weights, restore_host_weights, run_plan};
    #[pymodule_export]
    use super::pools::{OpenPool, check_pool, lacks_pmdk, look_at_pool, pool_backend, repair_pool, stream_volatile};
    #[pymodule_export]
    use super::probing::{describe_machine, measure_machine, rising_curve};
    #[pymodule_export]
    use super::recording::{import_perf, record_profile};
    #[pymodule_export]
    use super::tiering::{
        check_workload, import_trace, profile_workload, simulate, simulate_samples, simulate_trace, simulator_terms,
    };
}
