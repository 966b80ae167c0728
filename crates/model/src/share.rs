//! A share and how far it may be off.

use serde::{Deserialize, Serialize};

use crate::error::{Flaw, fraction};

/// A share with its 95 % confidence interval: of CPU time, by samples, where nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// 0 to 1.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Share {
    pub(crate) fn check(&self) -> Result<(), Flaw> {
        fraction("low", self.low)?;
        fraction("share", self.share)?;
        fraction("high", self.high)
    }
}
