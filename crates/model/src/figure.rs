//! A number that says where it comes from.

use serde::{Deserialize, Serialize};

/// What kind of number a figure is; reports carry the mark through to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Taken on such a machine by us or by the user.
    Measured,
    /// Printed by somebody else.
    Published,
    /// Computed from other figures; `how` gives the arithmetic.
    Derived,
    /// Taken for granted; `how` gives the reason.
    Assumed,
}

/// Where a number comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// What kind of number it is.
    pub kind: Kind,
    /// Key of the file's `sources` table.
    pub source: String,
    /// The arithmetic of a derived figure, the reason of an assumed one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub how: String,
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure<T> {
    /// The value, in the unit that the field's name says.
    pub value: T,
    /// What kind of number it is.
    pub kind: Kind,
    /// Key of the file's `sources` table.
    pub source: String,
    /// The arithmetic of a derived figure, the reason of an assumed one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub how: String,
}

impl<T> Figure<T> {
    /// A figure with the origin of another one.
    pub fn new(value: T, kind: Kind, source: impl Into<String>, how: impl Into<String>) -> Self {
        Self { value, kind, source: source.into(), how: how.into() }
    }
}
