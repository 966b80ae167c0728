//! How often data is touched: a number, how far it may be off, and where it comes from.

use serde::{Deserialize, Serialize};

/// How often instructions touched an object, with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessCount {
    /// Executions, of a string instruction its rounds: one that moves a vector counts once, whatever elements it has, and
    /// so does one that reads and writes back.
    pub count: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// `counted` where all of them were; absent where they are estimated.
    #[serde(default, skip_serializing_if = "CountSource::is_usual")]
    pub source: CountSource,
}

/// Where numbers of accesses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CountSource {
    /// Worked out from samples, registers and windows.
    #[default]
    Estimated,
    /// Every execution of the code was counted, in another run of the same build.
    Counted,
}

impl CountSource {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it like this")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Memory traffic that was counted in simulated caches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountedTraffic {
    /// Size of the last-level cache for which it was.
    pub llc_bytes: u64,
    /// What was fetched and belongs to no object: stacks, and what no sample shows.
    pub elsewhere_bytes: f64,
}

/// Accesses that were counted and belong to no object.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unplaced {
    /// Load and store instructions.
    pub accesses: f64,
    /// Bytes loaded and stored.
    pub bytes: f64,
    /// Their share of all bytes that were loaded and stored elsewhere than on stacks, 0 to 1.
    pub share: f64,
}
