//! The device behind a root port: memory, or storage.

use super::ssd::Ssd;
use crate::dram::DramMemory;
use crate::ids::PortId;
use crate::link::dev_load::Level;
use crate::parameters::{Medium, Parameters};
use crate::time::Ps;

/// The device behind one root port.
#[derive(Debug)]
pub(crate) enum Endpoint {
    /// Memory that answers at its own latency.
    Dram(Box<DramMemory>),
    /// Storage behind a cache.
    Ssd(Box<Ssd>),
}

impl Endpoint {
    pub(crate) fn dram(parameters: &Parameters, controller_ns: f64) -> Self {
        let dram = &parameters.dram;
        Self::Dram(Box::new(DramMemory::new(dram, dram.endpoint_channels.value, controller_ns)))
    }

    pub(crate) fn ssd(parameters: &Parameters, medium: &Medium, lines: u32, port: PortId) -> Self {
        Self::Ssd(Box::new(Ssd::new(parameters, medium, lines, port)))
    }
}

impl Endpoint {
    /// The load that it reports.
    pub(crate) fn level(&self, now: Ps) -> Level {
        match self {
            Self::Ssd(ssd) => ssd.level(now),
            Self::Dram(_) => Level::Light,
        }
    }

    /// Whether it collected garbage at any time since.
    pub(crate) fn collected_since(&self, born: Ps) -> bool {
        match self {
            Self::Ssd(ssd) => ssd.collected_since(born),
            Self::Dram(_) => false,
        }
    }
}
