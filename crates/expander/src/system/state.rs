//! The system: its parts, by side, and its clock.

use crate::dram::DramMemory;
use crate::endpoint::{Endpoint, Ssd};
use crate::error::Result;
use crate::event::Event;
use crate::events::Events;
use crate::gpu::cores::Gpu;
use crate::gpu::last_level::LastLevel;
use crate::ids::{PortId, RequestId};
use crate::ledger::Ledger;
use crate::line::Line;
use crate::link::dev_load::Level;
use crate::metrics::Metrics;
use crate::parameters::Parameters;
use crate::requests::{Purpose, Request, Requests};
use crate::setup::{self, Config, Setup};
use crate::time::Ps;
use crate::workload::Workload;

use super::far_side::FarSide;
use super::faults::Faults;

/// The simulated machine.
pub(crate) struct System {
    pub(super) config: Config,
    pub(super) now: Ps,
    /// When the last core was done.
    pub(super) end: Ps,
    pub(super) events: Events<Event>,
    pub(super) workload: Workload,
    pub(super) gpu: Gpu,
    pub(super) llc: LastLevel,
    pub(super) local: DramMemory,
    pub(super) far: FarSide,
    /// Where pages move.
    pub(super) faults: Option<Faults>,
    pub(super) requests: Requests,
    pub(super) ledger: Option<Box<Ledger>>,
    pub(super) metrics: Metrics,
    /// A bound that did not hold.
    pub(super) broken: Option<&'static str>,
}

impl System {
    /// A system for `lines` lines of data; `set` holds the run's own figures already.
    pub(crate) fn new(set: &Parameters, setup: &Setup, workload: Workload, compute: f64, lines: u32) -> Result<Self> {
        let gpu = setup::gpu(set, &setup.gpu)?;
        let medium = setup::medium(set, &setup.media)?;
        Ok(Self {
            config: setup.config,
            now: 0,
            end: 0,
            events: Events::new(),
            workload,
            gpu: Gpu::new(gpu, compute),
            llc: LastLevel::new(gpu),
            local: DramMemory::new(&set.dram, gpu.channels.value, gpu.controller_ns.value),
            far: FarSide::new(set, setup, gpu, medium, lines),
            faults: setup.config.is_paged().then(|| Faults::new(set, setup, lines)),
            requests: Requests::default(),
            ledger: setup.carry.then(Box::default),
            metrics: Metrics::new(setup.timeline_ns),
            broken: None,
        })
    }

    pub(super) fn request(&mut self, line: Line, purpose: Purpose, value: u64) -> RequestId {
        let port = self.far.decoder.port(line);
        self.requests.add(Request { line, port, purpose, born: self.now, value, level: Level::Light })
    }

    pub(super) fn at_ssd(&mut self, port: PortId, what: impl FnOnce(&mut Ssd, &mut Events<Event>)) {
        if let Endpoint::Ssd(ssd) = &mut self.far.endpoints[port] {
            what(ssd, &mut self.events);
        }
    }

    /// Bounds that hold at any time; looked at where they are stretched.
    pub(super) fn watch(&mut self, port: PortId) {
        if !self.far.ports[port].is_within_bounds() {
            self.broken = Some("a queue of a root port has outgrown its bound");
        }
        if !self.llc.is_within_bounds() {
            self.broken = Some("the last-level cache has more under way than it can");
        }
    }
}
