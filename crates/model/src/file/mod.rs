//! From text to a noun and back: one way to parse, one way to say what is wrong.

mod shape;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{ModelError, Result};

/// Version of every file format of this crate; a file of another version is refused.
pub const FORMAT_VERSION: u32 = 1;

/// The first key of a machine's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum MachineTag {
    /// `machine`.
    #[default]
    Machine,
}

/// The first key of a profile's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ProfileTag {
    /// `profile`.
    #[default]
    Profile,
}

/// The first key of a plan's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PlanTag {
    /// `plan`.
    #[default]
    Plan,
}

/// Parses TOML after looking at what it is and at its version, so that a newer file is called newer, not broken.
pub(crate) fn from_toml<T: DeserializeOwned + JsonSchema>(text: &str, file: &str, kind: &str) -> Result<T> {
    let table: toml::Table = toml::from_str(text).map_err(|error| syntax(file, &error.to_string()))?;
    check_kind(file, table.get("kind").and_then(toml::Value::as_str), kind)?;
    check_version(file, table.get("version").and_then(toml::Value::as_integer).and_then(|v| u64::try_from(v).ok()))?;
    toml::from_str(text).map_err(|error| {
        let document = serde_json::to_value(&table).unwrap_or_default();
        misshapen::<T>(file, &document).unwrap_or_else(|| syntax(file, &error.to_string()))
    })
}

/// Parses JSON after looking at what it is and at its version.
pub(crate) fn from_json<T: DeserializeOwned + JsonSchema>(text: &str, file: &str, kind: &str) -> Result<T> {
    let head = Head::of_json(text).map_err(|error| syntax(file, &error.to_string()))?;
    check_kind(file, head.kind.as_str(), kind)?;
    check_version(file, head.version.as_u64())?;
    serde_json::from_str(text).map_err(|error| {
        let document = serde_json::from_str(text).unwrap_or_default();
        misshapen::<T>(file, &document).unwrap_or_else(|| syntax(file, &error.to_string()))
    })
}

/// All keys that are wrong, where there are several: of one the parser says more, with the line that it is in.
fn misshapen<T: JsonSchema>(file: &str, document: &serde_json::Value) -> Option<ModelError> {
    let flaws = shape::flaws::<T>(document);
    (flaws.len() > 1).then(|| ModelError::Several { file: file.to_owned(), flaws })
}

/// The first keys alone: a tree of all of a large profile would take more memory than the profile.
#[derive(Default, Deserialize)]
struct Head {
    #[serde(default)]
    kind: serde_json::Value,
    #[serde(default)]
    version: serde_json::Value,
}

impl Head {
    fn of_json(text: &str) -> serde_json::Result<Self> {
        match serde_json::from_str(text) {
            // Well-formed, but no table with one of each.
            Err(error) if error.is_data() => Ok(Self::default()),
            head => head,
        }
    }
}

fn check_kind(file: &str, found: Option<&str>, wanted: &str) -> Result<()> {
    another_kind(found, wanted).map_or(Ok(()), |(problem, hint)| {
        Err(ModelError::Invalid { file: file.to_owned(), key: "kind".to_owned(), problem, hint })
    })
}

/// What is wrong with a file that says to be something else than is wanted, and what to do. `None` where it says the right
/// thing, or nothing: it was written by hand, or before files said it.
pub fn another_kind(found: Option<&str>, wanted: &str) -> Option<(String, String)> {
    let found = found.filter(|found| *found != wanted)?;
    let article = if found.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    Some((format!("this is {article} {found}, not a {wanted}"), format!("give the file of a {wanted}")))
}

fn check_version(file: &str, found: Option<u64>) -> Result<()> {
    match found {
        Some(found) if found == u64::from(FORMAT_VERSION) => Ok(()),
        Some(found) => {
            let newer = found > u64::from(FORMAT_VERSION);
            let hint = if newer { "update tierloom" } else { "write the file again with this tierloom" };
            Err(ModelError::Version { file: file.to_owned(), found, expected: FORMAT_VERSION, hint: hint.to_owned() })
        }
        None => Err(ModelError::Invalid {
            file: file.to_owned(),
            key: "version".to_owned(),
            problem: "there is no version number".to_owned(),
            hint: format!("add `version = {FORMAT_VERSION}` at the top if this is a tierloom file"),
        }),
    }
}

fn syntax(file: &str, problem: &str) -> ModelError {
    let hint = if problem.contains("unknown field") || problem.contains("unknown variant") {
        "remove the key or correct its spelling; the names that are known are listed above"
    } else if problem.contains("missing field") {
        "add the missing key"
    } else if problem.contains("invalid type") {
        "give the value the type that is asked for"
    } else {
        "mend the text at the place named above"
    };
    ModelError::Syntax { file: file.to_owned(), problem: problem.trim_end().to_owned(), hint: hint.to_owned() }
}
