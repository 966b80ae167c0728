//! Reading the nouns' files: text is checked once here and comes back as JSON for Python.

use pyo3::prelude::*;
use serde::Serialize;
use tierloom_model::{Machine, Plan, Profile, units};

use crate::errors::{self, Noun};

/// Checks the text of a machine file and returns the machine as JSON.
#[pyfunction]
pub(crate) fn check_machine(text: &str, file: &str) -> PyResult<String> {
    to_json(&machine(text, file)?)
}

/// Writes a machine (JSON) as the text of a machine file, checked.
#[pyfunction]
pub(crate) fn write_machine(document: &str, file: &str) -> PyResult<String> {
    let draft = Machine::from_json(document, file).map_err(|error| errors::from_model(Noun::Machine, &error))?;
    Ok(machine(&draft.to_toml(), file)?.to_toml())
}

/// Checks the text of a profile file and returns the profile as JSON.
#[pyfunction]
pub(crate) fn check_profile(text: &str, file: &str) -> PyResult<String> {
    to_json(&profile(text, file)?)
}

/// Checks the text of a plan file and returns the plan as JSON.
#[pyfunction]
pub(crate) fn check_plan(text: &str, file: &str) -> PyResult<String> {
    to_json(&plan(text, file)?)
}

/// Writes bytes with the largest binary unit that keeps the number at or above one.
#[pyfunction]
pub(crate) fn format_bytes(amount: u64) -> String {
    units::format_bytes(amount)
}

/// Reads `64GiB` as bytes.
#[pyfunction]
pub(crate) fn parse_bytes(text: &str) -> PyResult<u64> {
    let hinted = |problem| errors::wrong_request(format!("{problem}\nhint: write for example 64GiB, 1.5GB or 4096B"));
    units::parse_bytes(text).map_err(hinted)
}

pub(crate) fn machine(text: &str, file: &str) -> PyResult<Machine> {
    Machine::from_toml(text, file).map_err(|error| errors::from_model(Noun::Machine, &error))
}

pub(crate) fn profile(text: &str, file: &str) -> PyResult<Profile> {
    Profile::from_json(text, file).map_err(|error| errors::from_model(Noun::Profile, &error))
}

pub(crate) fn plan(text: &str, file: &str) -> PyResult<Plan> {
    Plan::from_toml(text, file).map_err(|error| errors::from_model(Noun::Plan, &error))
}

/// JSON of a noun or an answer; what cannot be JSON (a NaN key, say) is a fault of ours.
pub(crate) fn to_json<T: Serialize>(noun: &T) -> PyResult<String> {
    serde_json::to_string(noun).map_err(|error| errors::internal(&error.to_string()))
}
