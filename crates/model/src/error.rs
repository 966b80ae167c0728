//! What can be wrong with a file, said so that its author can mend it.

use thiserror::Error;

/// Result of reading a noun.
pub type Result<T, E = ModelError> = std::result::Result<T, E>;

/// A file that does not hold the noun it should hold.
#[derive(Debug, Error, PartialEq)]
pub enum ModelError {
    /// The text is not valid TOML or JSON, or a key is unknown, missing, or of the wrong type.
    #[error("{file}: {problem}\nhint: {hint}")]
    Syntax {
        /// File as the caller named it.
        file: String,
        /// What the parser met, with line and column.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A value is of the right type but cannot be true.
    #[error("{file}: {key}: {problem}\nhint: {hint}")]
    Invalid {
        /// File as the caller named it.
        file: String,
        /// Dotted path of the key, e.g. `paths[2].idle_ns`.
        key: String,
        /// What is wrong with the value.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// Several values cannot be true.
    #[error("{file}: {} things are wrong{}\nhint: mend each of them", .flaws.len(), listed(.flaws))]
    Several {
        /// File as the caller named it.
        file: String,
        /// In the order in which they were looked at.
        flaws: Vec<Flaw>,
    },
    /// The file was written for another version of the format.
    #[error("{file}: version: this is version {found}, and this tierloom reads version {expected}\nhint: {hint}")]
    Version {
        /// File as the caller named it.
        file: String,
        /// Version in the file.
        found: u64,
        /// Version this crate reads.
        expected: u32,
        /// What to do.
        hint: String,
    },
}

/// One thing that is wrong with a noun, before it is known which file it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Flaw {
    pub(crate) key: String,
    pub(crate) problem: String,
    pub(crate) hint: String,
}

/// Flaws that a message tells; of more it says how many.
const TOLD: usize = 20;

/// A line for each flaw, what to do behind it.
fn listed(flaws: &[Flaw]) -> String {
    let line = |flaw: &Flaw| format!("\n  {}: {} ({})", flaw.key, flaw.problem, flaw.hint);
    let more = flaws.len().saturating_sub(TOLD);
    let rest = (more > 0).then(|| format!("\n  and {more} more"));
    flaws.iter().take(TOLD).map(line).chain(rest).collect()
}

impl Flaw {
    pub(crate) fn new(key: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), hint: hint.into() }
    }

    /// Prefixes the key with where the flawed part sits.
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.key = if self.key.is_empty() { place.to_owned() } else { format!("{place}.{}", self.key) };
        self
    }

    fn in_file(self, file: &str) -> ModelError {
        ModelError::Invalid { file: file.to_owned(), key: self.key, problem: self.problem, hint: self.hint }
    }
}

/// All that is wrong with a noun: its parts are looked at each by itself, so that its author mends them in one go.
#[derive(Debug, Default)]
pub(crate) struct Flaws(Vec<Flaw>);

impl Flaws {
    /// What several looks found.
    pub(crate) fn of(looks: impl IntoIterator<Item = Result<(), Flaw>>) -> Self {
        Self(looks.into_iter().filter_map(Result::err).collect())
    }

    /// Adds what a look found, if anything.
    pub(crate) fn note(&mut self, look: Result<(), Flaw>) {
        self.0.extend(look.err());
    }

    /// Adds what is wrong with a part that sits at a place.
    pub(crate) fn part(&mut self, place: &str, flaws: impl Into<Self>) {
        self.0.extend(flaws.into().0.into_iter().map(|flaw| flaw.within(place)));
    }

    /// Nothing, or an error of the file that says all.
    pub(crate) fn in_file(mut self, file: &str) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(self.0.remove(0).in_file(file)),
            _ => Err(ModelError::Several { file: file.to_owned(), flaws: self.0 }),
        }
    }
}

impl From<Result<(), Flaw>> for Flaws {
    fn from(look: Result<(), Flaw>) -> Self {
        Self::of([look])
    }
}

/// Refuses a number that is not finite and at least `least`.
pub(crate) fn at_least(key: &str, value: f64, least: f64) -> Result<(), Flaw> {
    if value.is_finite() && value >= least {
        return Ok(());
    }
    Err(Flaw::new(key, format!("{value} is not a number of at least {least}"), "check the number and its unit"))
}

/// Refuses a number that is not finite and above zero.
pub(crate) fn positive(key: &str, value: f64) -> Result<(), Flaw> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Flaw::new(key, format!("{value} is not a number above 0"), "check the number and its unit"))
}

/// Refuses a number outside 0..=1.
pub(crate) fn fraction(key: &str, value: f64) -> Result<(), Flaw> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Flaw::new(key, format!("{value} is not a fraction from 0 to 1"), "write for example 0.66, not 66"))
}
