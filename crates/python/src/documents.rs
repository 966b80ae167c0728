//! Documents: what Rust says as plain data, as the dicts and lists of Python, and the other way round.
//!
//! Both sides know JSON's types, so JSON is what both are put into on the way; nobody else here sees its text.

use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::errors;

/// A noun or an answer as Python has it; what cannot be JSON (a NaN key, say) is a fault of ours.
pub(crate) fn to_python<'py>(py: Python<'py>, noun: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(noun).map_err(|error| errors::internal(&error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// JSON of what Python has.
pub(crate) fn text_of(document: &Bound<'_, PyAny>) -> PyResult<String> {
    document.py().import("json")?.call_method1("dumps", (document,))?.extract()
}

/// A request: it comes from our own Python, so what does not parse is a fault of ours, not of the user.
pub(crate) fn request<T: DeserializeOwned>(document: &Bound<'_, PyAny>) -> PyResult<T> {
    serde_json::from_str(&text_of(document)?).map_err(|error| errors::internal(&error.to_string()))
}
