//! What can be wrong with a request or a parameter set.

use thiserror::Error;

/// Result of this crate.
pub type Result<T, E = ExpanderError> = std::result::Result<T, E>;

/// Why a system cannot be simulated.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExpanderError {
    /// The parameter file is not TOML, or a key is unknown, missing, or of the wrong type.
    #[error("{file}: {problem}\nhint: mend the text at the place named above")]
    Syntax {
        /// File as the caller named it.
        file: String,
        /// What the parser met, with line and column.
        problem: String,
    },
    /// A figure is of the right type but cannot be true.
    #[error("{key}: {problem}\nhint: {hint}")]
    Figure {
        /// Dotted path of the figure.
        key: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A name that the parameter set does not have.
    #[error("there is no {what} `{name}`\nhint: use one of: {known}")]
    Unknown {
        /// Kind of thing that was asked for.
        what: &'static str,
        /// Name that was asked for.
        name: String,
        /// Names that there are.
        known: String,
    },
    /// A request that no system can serve.
    #[error("{key}: {problem}\nhint: {hint}")]
    Request {
        /// Part of the request.
        key: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
    /// A promise of the model that did not hold: a fault of ours, found by the checks.
    #[error("the model broke a promise: {0}\nhint: please report this with the command that led to it")]
    Broken(String),
}

impl ExpanderError {
    pub(crate) fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a String>) -> Self {
        let known: Vec<&str> = known.map(String::as_str).collect();
        Self::Unknown { what, name: name.to_owned(), known: known.join(", ") }
    }

    pub(crate) fn request(key: &'static str, problem: impl Into<String>, hint: &'static str) -> Self {
        Self::Request { key, problem: problem.into(), hint }
    }
}
