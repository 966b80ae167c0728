//! The nouns as handles: parsed and checked once, then handed from call to call.

use pyo3::prelude::*;
use tierloom_model::{self as model, units};

use crate::documents::{self, to_python};
use crate::errors::{self, Noun};

/// What memory there is and what it costs to reach it.
#[pyclass(frozen)]
pub(crate) struct Machine(pub(crate) model::Machine);

#[pymethods]
impl Machine {
    /// Reads and checks the text of a machine file (TOML).
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, file: &str) -> PyResult<Self> {
        let read = py.detach(|| model::Machine::from_toml(text, file));
        read.map(Self).map_err(|error| errors::from_model(Noun::Machine, &error))
    }

    /// Checks a machine's document.
    #[staticmethod]
    fn from_document(py: Python<'_>, document: &Bound<'_, PyAny>, file: &str) -> PyResult<Self> {
        let text = text_of(Noun::Machine, document, file)?;
        let read = py.detach(|| model::Machine::from_json(&text, file));
        read.map(Self).map_err(|error| errors::from_model(Noun::Machine, &error))
    }

    /// The text of its file.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// The machine as plain data.
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }
}

/// A program's data objects and how they are touched.
#[pyclass(frozen)]
pub(crate) struct Profile(pub(crate) model::Profile);

#[pymethods]
impl Profile {
    /// Reads and checks the text of a profile file (JSON).
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str, file: &str) -> PyResult<Self> {
        let read = py.detach(|| model::Profile::from_json(text, file));
        read.map(Self).map_err(|error| errors::from_model(Noun::Profile, &error))
    }

    /// Checks a profile's document.
    #[staticmethod]
    fn from_document(py: Python<'_>, document: &Bound<'_, PyAny>, file: &str) -> PyResult<Self> {
        Self::from_json(py, &text_of(Noun::Profile, document, file)?, file)
    }

    /// The text of its file.
    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.to_json())
    }

    /// Most bytes of its objects that are there at once.
    fn bytes_at_once(&self) -> u64 {
        self.0.bytes_at_once()
    }

    /// The profile as it likely is on a machine's socket, the first one where none is named; nothing where there is no
    /// such socket.
    fn likely_on(
        &self,
        py: Python<'_>,
        machine: Py<Machine>,
        socket: Option<&str>,
        ran_on: Option<Py<Machine>>,
    ) -> PyResult<Option<Self>> {
        let (machine, ran_on) = (&machine.get().0, ran_on.as_ref().map(|machine| &machine.get().0));
        let socket = socket.map_or((!machine.sockets.is_empty()).then_some(0), |name| machine.socket_index(name));
        let likely = |socket| py.detach(|| tierloom_predict::likely_on(&self.0, machine, socket, ran_on));
        let found = socket.map(likely).transpose().map_err(|error| errors::from_predict(&error))?;
        Ok(found.map(Self))
    }

    /// The profile as plain data.
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }
}

/// Rules that say which object goes where.
#[pyclass(frozen)]
pub(crate) struct Plan(pub(crate) model::Plan);

#[pymethods]
impl Plan {
    /// Reads and checks the text of a plan file (TOML).
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, file: &str) -> PyResult<Self> {
        let read = py.detach(|| model::Plan::from_toml(text, file));
        read.map(Self).map_err(|error| errors::from_model(Noun::Plan, &error))
    }

    /// The text of its file.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// The plan as plain data.
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }
}

/// JSON of a document that a user made, who may have put anything into it.
fn text_of(noun: Noun, document: &Bound<'_, PyAny>, file: &str) -> PyResult<String> {
    documents::text_of(document).map_err(|error| errors::no_document(noun, file, &error))
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
