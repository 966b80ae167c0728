//! `DevLoad`: the two bits in every answer with which a CXL endpoint says how busy it is.
//!
//! The specification's telemetry for quality of service names four levels of a device's internal
//! load, for hosts that slow down before requests queue, and leaves it to the device how it finds
//! them. Here they follow from what requests queue for: dies that read, and what of the write buffer
//! waits to be programmed. A garbage collection that runs or is announced is severe, which the
//! specification knows as temporary throughput reduction.

use crate::parameters::DevLoad;

/// Load that an endpoint reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Level {
    /// Light load: more may come.
    #[default]
    Light,
    /// Optimal load: as much as now.
    Optimal,
    /// Moderate overload: less, please.
    Moderate,
    /// Severe overload: nothing that can wait.
    Severe,
}

impl Level {
    /// The level of an occupation from 0 to 1.
    pub(crate) fn of(occupation: f64, limits: &DevLoad) -> Self {
        if occupation >= limits.severe.value {
            Self::Severe
        } else if occupation >= limits.moderate.value {
            Self::Moderate
        } else if occupation >= limits.optimal.value {
            Self::Optimal
        } else {
            Self::Light
        }
    }
}
