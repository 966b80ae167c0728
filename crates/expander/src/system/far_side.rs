//! What is beyond the GPU's package: root ports with their links, and the endpoint behind each.

use tierloom_model::index::IndexVec;

use crate::endpoint::Endpoint;
use crate::ids::PortId;
use crate::link::decoder::Decoder;
use crate::link::root_port::RootPort;
use crate::parameters::{Gpu, Medium, Parameters};
use crate::setup::Setup;
use crate::time::{Ps, from_ns};

/// Ports and endpoints, one behind each; none without CXL.
#[derive(Debug)]
pub(super) struct FarSide {
    pub(super) decoder: Decoder,
    pub(super) ports: IndexVec<PortId, RootPort>,
    pub(super) endpoints: IndexVec<PortId, Endpoint>,
    /// Time after which a port asks again for the load.
    pub(super) retry: Ps,
    /// What all links carry in each direction.
    pub(super) link_bytes_per_ps: f64,
}

impl FarSide {
    pub(super) fn new(set: &Parameters, setup: &Setup, gpu: &Gpu, medium: Option<&Medium>, lines: u32) -> Self {
        let ports = if setup.config.is_cxl() { setup.ports } else { 0 };
        let endpoint = |port| match medium {
            None => Endpoint::dram(set, gpu.controller_ns.value),
            Some(medium) => Endpoint::ssd(set, medium, lines, PortId(port as u8)),
        };
        Self {
            decoder: Decoder::interleaved(lines, ports.max(1), set.port.interleave_bytes.value),
            ports: (0..ports).map(|_| RootPort::new(set, setup, medium.is_some(), gpu.in_order.value)).collect(),
            endpoints: (0..ports).map(endpoint).collect(),
            retry: from_ns(set.store.retry_ns.value),
            link_bytes_per_ps: f64::from(ports) * set.link.gb_s.value * 1e-3,
        }
    }
}
