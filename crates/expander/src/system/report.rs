//! What a run brought, and how things stand at a moment of it.

use crate::endpoint::{Counts, Endpoint};
use crate::gpu::uvm::Driver;
use crate::metrics::{Sample, latency};
use crate::outcome::{EndpointUse, LinkUse, Outcome, PagingUse, StoreUse};
use crate::setup::Setup;
use crate::time::{Ps, to_s};

use super::state::System;

impl System {
    pub(super) fn sample(&self) -> Sample {
        let ssd = |endpoint: &Endpoint| match endpoint {
            Endpoint::Ssd(ssd) => (ssd.ingress() as u32, ssd.level(self.now) as u32, ssd.is_collecting()),
            Endpoint::Dram(_) => (0, 0, false),
        };
        let mut sample = Sample { link_bytes_per_ps: self.far.link_bytes_per_ps, ..Sample::default() };
        for (endpoint, port) in self.far.endpoints.iter().zip(&self.far.ports) {
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
            paging: self.faults.as_ref().map(|faults| paging_use(&faults.driver)).unwrap_or_default(),
            link: self.link_use(),
            checked: self.ledger.as_ref().map_or(0, |ledger| ledger.checked()),
            timeline: self.metrics.steps(),
        }
    }

    fn endpoint_use(&self) -> EndpointUse {
        let mut total = Counts::default();
        let (mut bytes, mut media_reads) = (0.0, 0);
        for endpoint in &self.far.endpoints {
            if let Endpoint::Ssd(ssd) = endpoint {
                total.add(&ssd.counts);
                bytes += ssd.media_bytes();
                media_reads += ssd.media_reads();
            }
        }
        EndpointUse {
            reads: total.reads,
            hit_share: share(total.present, total.reads),
            hit_or_in_flight_share: share(total.present + total.in_flight, total.reads),
            media_reads,
            programs: total.programs,
            collections: total.collections,
            speculative_reads: self.far.ports.iter().map(|port| port.reader.issued).sum(),
            longest_ingress: total.longest_ingress as u64,
            media_gb_s: rate(bytes, self.now),
        }
    }

    fn store_use(&self) -> StoreUse {
        let mut found = StoreUse { loads_served: self.metrics.store_served, ..StoreUse::default() };
        for buffer in self.far.ports.iter().filter_map(|port| port.buffer.as_ref()) {
            found.buffered += buffer.buffered;
            found.overflowed += buffer.overflowed;
            found.deepest = found.deepest.max(buffer.deepest as u64);
            found.drain_s = to_s(self.now - self.end);
        }
        found
    }

    fn link_use(&self) -> LinkUse {
        let bytes = self.far.ports.iter().map(|port| port.link.bytes());
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
