//! The whole system: parts, wires, and the loop that lets events happen.
//!
//! `cache_side.rs` is the GPU's side of the last-level cache, `cxl_side.rs` the way to the endpoints
//! and back, `paging.rs` the fault driver's. Parts do not know one another; they meet here.

mod cache_side;
mod cxl_side;
mod paging;

use std::collections::VecDeque;

use tierloom_model::units::LINE_BYTES;

use crate::cache::Cache;
use crate::decoder::Decoder;
use crate::dram::DramMemory;
use crate::endpoint::{Counts, Endpoint};
use crate::error::{ExpanderError, Result};
use crate::event::Event;
use crate::events::Events;
use crate::gpu::{Access, Gpu};
use crate::ledger::Ledger;
use crate::line::{Line, Map};
use crate::metrics::{Metrics, Sample, latency};
use crate::mshr::Misses;
use crate::outcome::{EndpointUse, LinkUse, Outcome, PagingUse, StoreUse};
use crate::parameters::Parameters;
use crate::requests::Requests;
use crate::root_port::RootPort;
use crate::setup::{self, Config, Setup};
use crate::time::{Ps, from_ns, to_s};
use crate::uvm::Driver;
use crate::workload::Workload;

/// Writebacks of one line that are under way: how many, and the latest data.
#[derive(Debug, Clone, Copy, Default)]
struct Leaving {
    count: u32,
    value: u64,
}

/// The simulated machine.
pub(crate) struct System {
    config: Config,
    now: Ps,
    events: Events<Event>,
    workload: Workload,
    gpu: Gpu,
    llc: Cache,
    llc_time: Ps,
    /// Writes of a line that is stored through the cache; 0 where the cache keeps it.
    line_stores: usize,
    misses: Misses,
    most_misses: usize,
    leaving: Map<Line, Leaving>,
    leaving_count: usize,
    most_leaving: usize,
    /// Accesses that found no room; each stalls its core.
    stalled: VecDeque<Access>,
    local: DramMemory,
    decoder: Decoder,
    ports: Vec<RootPort>,
    endpoints: Vec<Endpoint>,
    retry: Ps,
    driver: Option<Driver>,
    /// Accesses that wait for a page.
    faulted: VecDeque<Access>,
    serving: bool,
    requests: Requests,
    ledger: Option<Box<Ledger>>,
    metrics: Metrics,
    link_bytes_per_ps: f64,
    /// When the last core was done.
    end: Ps,
    broken: Option<&'static str>,
}

impl System {
    /// A system for `lines` lines of data; `set` holds the run's own figures already.
    pub(crate) fn new(set: &Parameters, setup: &Setup, workload: Workload, compute: f64, lines: u32) -> Result<Self> {
        let gpu = setup::gpu(set, &setup.gpu)?;
        let medium = setup::medium(set, &setup.media)?;
        let ports = if setup.config.is_cxl() { setup.ports } else { 0 };
        let endpoint = |port| match medium {
            None => Endpoint::dram(set, gpu.controller_ns.value),
            Some(medium) => Endpoint::ssd(set, medium, lines, port as u8),
        };
        let paged = setup.config.is_paged();
        Ok(Self {
            config: setup.config,
            now: 0,
            events: Events::new(),
            workload,
            gpu: Gpu::new(gpu, compute),
            llc: Cache::new(gpu.llc_bytes.value / LINE_BYTES, gpu.llc_ways.value),
            llc_time: from_ns(gpu.llc_ns.value),
            line_stores: gpu.line_stores.value.min(gpu.writebacks.value) as usize,
            misses: Misses::new(gpu.mshrs.value),
            most_misses: gpu.mshrs.value as usize,
            leaving: Map::default(),
            leaving_count: 0,
            most_leaving: gpu.writebacks.value as usize,
            stalled: VecDeque::new(),
            local: DramMemory::new(&set.dram, gpu.channels.value, gpu.controller_ns.value),
            decoder: Decoder::interleaved(lines, ports.max(1), set.port.interleave_bytes.value),
            ports: (0..ports).map(|_| RootPort::new(set, setup, medium.is_some(), gpu.in_order.value)).collect(),
            endpoints: (0..ports).map(endpoint).collect(),
            retry: from_ns(set.store.retry_ns.value),
            driver: paged.then(|| Driver::new(set, setup.config, setup.prefetch, lines, &setup.media)),
            faulted: VecDeque::new(),
            serving: false,
            requests: Requests::default(),
            ledger: setup.carry.then(Box::default),
            metrics: Metrics::new(setup.timeline_ns),
            link_bytes_per_ps: f64::from(ports) * set.link.gb_s.value * 1e-3,
            end: 0,
            broken: None,
        })
    }

    /// Runs to the end: until every core is done and every store has reached its place.
    pub(crate) fn run(&mut self) -> Result<()> {
        (0..self.gpu.cores()).for_each(|core| self.issue_next(core));
        while let Some((time, event)) = self.events.next() {
            self.now = time;
            if self.metrics.is_due(time) {
                let sample = self.sample();
                self.metrics.sample(time, sample);
            }
            self.handle(event);
        }
        self.check()
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Issue(core) => self.issue(core),
            Event::Hit(warp) => self.wake(warp),
            Event::AtPort(id) => self.at_port(id),
            Event::AtEndpoint(id) => self.at_endpoint(id),
            Event::Speculation(port, start, lines) => self.speculation(port, start, lines),
            Event::Serve(id) => self.serve(id),
            Event::Accepted(id) => self.accepted(id),
            Event::Answered(id) => self.answered(id),
            Event::Acknowledged(id) => self.acknowledged(id),
            Event::LocalRead(id) => self.local_read(id),
            Event::LocalWrite(id) => self.released(id),
            Event::Flush(port) => self.ask(port),
            Event::BatchDone => self.batch_done(),
            Event::Filled(port, unit) => self.at_ssd(port, |ssd, events| ssd.filled(now, unit, events)),
            Event::Programmed(port, program) => self.at_ssd(port, |ssd, events| ssd.programmed(now, program, events)),
            Event::CollectionStarts(port) => self.at_ssd(port, |ssd, events| ssd.collection_starts(now, events)),
            Event::CollectionEnds(port) => self.at_ssd(port, |ssd, events| ssd.collection_ends(now, events)),
        }
    }

    fn at_ssd(&mut self, port: u8, what: impl FnOnce(&mut crate::endpoint::Ssd, &mut Events<Event>)) {
        if let Endpoint::Ssd(ssd) = &mut self.endpoints[port as usize] {
            what(ssd, &mut self.events);
        }
    }

    /// Promises that hold after every run, whatever was asked.
    fn check(&self) -> Result<()> {
        let idle = self.gpu.is_idle() && self.ports.iter().all(RootPort::is_idle);
        if !idle || self.requests.len() + self.misses.len() + self.stalled.len() + self.faulted.len() > 0 {
            return Err(ExpanderError::Broken("a request was lost".to_owned()));
        }
        if let Some(broken) = self.broken {
            return Err(ExpanderError::Broken(broken.to_owned()));
        }
        self.ledger.as_ref().map_or(Ok(()), |ledger| ledger.verdict())
    }

    /// Bounds that hold at any time; looked at where they are stretched.
    fn watch(&mut self, port: usize) {
        if !self.ports[port].is_within_bounds() {
            self.broken = Some("a queue of a root port has outgrown its bound");
        }
        if self.misses.len() > self.most_misses || self.leaving_count > self.most_leaving {
            self.broken = Some("the last-level cache has more under way than it can");
        }
    }

    fn sample(&self) -> Sample {
        let ssd = |endpoint: &Endpoint| match endpoint {
            Endpoint::Ssd(ssd) => (ssd.ingress() as u32, ssd.level(self.now) as u32, ssd.is_collecting()),
            Endpoint::Dram(_) => (0, 0, false),
        };
        let mut sample = Sample { link_bytes_per_ps: self.link_bytes_per_ps, ..Sample::default() };
        for (endpoint, port) in self.endpoints.iter().zip(&self.ports) {
            let (ingress, level, collecting) = ssd(endpoint);
            let bytes = port.link.bytes();
            sample.ingress = sample.ingress.max(ingress);
            sample.dev_load = sample.dev_load.max(level);
            sample.collecting |= collecting;
            sample.stack += port.buffer.as_ref().map_or(0, |buffer| buffer.depth() as u32);
            sample.link_bytes = [sample.link_bytes[0] + bytes[0], sample.link_bytes[1] + bytes[1]];
        }
        sample
    }

    /// What the run brought.
    pub(crate) fn outcome(self, workload: &str, setup: &Setup) -> Outcome {
        let accesses = self.gpu.accesses;
        Outcome {
            workload: workload.to_owned(),
            setup: setup.clone(),
            time_s: to_s(self.end),
            accesses,
            stores: self.gpu.stores,
            llc_hit_share: share(self.metrics.llc_hits, accesses),
            loads: latency(&self.metrics.loads),
            write_backs: latency(&self.metrics.stores),
            write_backs_in_collection: latency(&self.metrics.stores_in_collection),
            endpoint: self.endpoint_use(),
            store: self.store_use(),
            paging: self.driver.as_ref().map(paging_use).unwrap_or_default(),
            link: self.link_use(),
            checked: self.ledger.as_ref().map_or(0, |ledger| ledger.checked()),
            timeline: self.metrics.steps(),
        }
    }

    fn endpoint_use(&self) -> EndpointUse {
        let mut total = Counts::default();
        let mut bytes = 0.0;
        for endpoint in &self.endpoints {
            if let Endpoint::Ssd(ssd) = endpoint {
                total.add(&ssd.counts);
                bytes += ssd.media_bytes();
            }
        }
        EndpointUse {
            reads: total.reads,
            hit_share: share(total.present, total.reads),
            hit_or_in_flight_share: share(total.present + total.in_flight, total.reads),
            media_reads: total.media_reads,
            programs: total.programs,
            collections: total.collections,
            speculative_reads: self.ports.iter().map(|port| port.reader.issued).sum(),
            longest_ingress: total.longest_ingress as u64,
            media_gb_s: rate(bytes, self.now),
        }
    }

    fn store_use(&self) -> StoreUse {
        let mut found = StoreUse { loads_served: self.metrics.store_served, ..StoreUse::default() };
        for buffer in self.ports.iter().filter_map(|port| port.buffer.as_ref()) {
            found.buffered += buffer.buffered;
            found.overflowed += buffer.overflowed;
            found.deepest = found.deepest.max(buffer.deepest as u64);
            found.drain_s = to_s(self.now - self.end);
        }
        found
    }

    fn link_use(&self) -> LinkUse {
        let bytes = self.ports.iter().map(|port| port.link.bytes());
        let [down, up] = bytes.fold([0.0, 0.0], |sum, bytes| [sum[0] + bytes[0], sum[1] + bytes[1]]);
        LinkUse { down_gb_s: rate(down, self.now), up_gb_s: rate(up, self.now) }
    }
}

fn paging_use(driver: &Driver) -> PagingUse {
    let (faults, batches) = (driver.faults, driver.batches);
    PagingUse { faults, batches, evictions: driver.evictions, moved_bytes: driver.moved_bytes }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn rate(bytes: f64, span: Ps) -> f64 {
    if span == 0 { 0.0 } else { bytes / span as f64 * 1e3 }
}
