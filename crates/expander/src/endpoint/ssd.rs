//! A CXL endpoint of storage: the ingress queue, the internal DRAM in front of the media, the write path, and
//! the `DevLoad` that it reports.
//!
//! Reads pass through the internal DRAM; a miss fetches from the media, and so does a speculative
//! read, which nobody waits for. Writes enter a buffer and are programmed page by page. The ingress
//! queue is first come, first served: a write that finds the buffer full, or a garbage collection
//! running, holds up what is behind it.

use std::collections::VecDeque;

use smallvec::SmallVec;

use tierloom_model::units::LINE_BYTES;

use crate::cache::Cache;
use crate::endpoint::log::{Log, Victim};
use crate::endpoint::media::Media;
use crate::endpoint::write_buffer::WriteBuffer;
use crate::event::Event;
use crate::events::Events;
use crate::ids::{PortId, RequestId};
use crate::line::{Line, Map};
use crate::link::dev_load::Level;
use crate::link::speculate::Speculation;
use crate::parameters::{DevLoad, Medium, Parameters};
use crate::time::{Ps, from_ns};

/// What arrives at an endpoint and wants an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) request: RequestId,
    pub(crate) line: Line,
    pub(crate) write: bool,
}

/// Where a garbage collection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Collection {
    None,
    Announced,
    Running(u32),
}

/// Counts of one SSD endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) present: u64,
    pub(crate) in_flight: u64,
    pub(crate) programs: u64,
    pub(crate) collections: u64,
    pub(crate) longest_ingress: usize,
}

impl Counts {
    /// Adds another endpoint's counts.
    pub(crate) fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.present += other.present;
        self.in_flight += other.in_flight;
        self.programs += other.programs;
        self.collections += other.collections;
        self.longest_ingress = self.longest_ingress.max(other.longest_ingress);
    }
}

/// An SSD endpoint.
#[derive(Debug)]
pub(crate) struct Ssd {
    port: PortId,
    cache: Cache,
    fill_lines: u32,
    page_lines: u32,
    fetches: Map<u32, SmallVec<[RequestId; 4]>>,
    most_fetches: usize,
    ingress: VecDeque<Arrival>,
    buffer: WriteBuffer,
    media: Media,
    log: Option<Log>,
    collection: Collection,
    cache_time: Ps,
    notice: Ps,
    /// When the last collection ended, or will end.
    collected: Ps,
    limits: DevLoad,
    pub(crate) counts: Counts,
}

impl Ssd {
    pub(super) fn new(parameters: &Parameters, medium: &Medium, lines: u32, port: PortId) -> Self {
        let endpoint = &parameters.endpoint;
        let fill_lines = (endpoint.fill_bytes.value / LINE_BYTES).max(1) as u32;
        let share = |share: f64| (share * f64::from(lines)) as u32;
        let page_lines = (medium.page_bytes.value / LINE_BYTES) as u32;
        let block_pages = (medium.block_bytes.value / medium.page_bytes.value) as u32;
        let spare = (1.0 + medium.spare.value) / endpoint.occupancy.value - 1.0;
        let log = || Log::aged(lines.div_ceil(page_lines), block_pages, spare);
        let room = endpoint.buffer_pages.value.max(1) * medium.dies.value * page_lines;
        Self {
            port,
            cache: Cache::new(u64::from(share(endpoint.cache_share.value) / fill_lines), endpoint.cache_ways.value),
            fill_lines,
            page_lines,
            fetches: Map::default(),
            most_fetches: endpoint.fetches.value as usize,
            ingress: VecDeque::new(),
            buffer: WriteBuffer::new(room, page_lines),
            media: Media::new(medium, endpoint),
            log: (medium.erase_ns.value > 0.0).then(log),
            collection: Collection::None,
            cache_time: from_ns(endpoint.cache_ns.value),
            notice: from_ns(endpoint.notice_ns.value),
            collected: 0,
            limits: parameters.dev_load.clone(),
            counts: Counts::default(),
        }
    }

    /// A request arrives.
    pub(crate) fn arrive(&mut self, now: Ps, arrival: Arrival, events: &mut Events<Event>) {
        self.ingress.push_back(arrival);
        self.counts.longest_ingress = self.counts.longest_ingress.max(self.ingress.len());
        self.admit(now, events);
    }

    /// A speculative read arrives: fetches what is not there; dropped where nothing is to be had.
    pub(crate) fn speculate(&mut self, now: Ps, wanted: Speculation, events: &mut Events<Event>) {
        if !self.ingress.is_empty() {
            return;
        }
        let units = wanted.start / self.fill_lines..wanted.end.div_ceil(self.fill_lines);
        for unit in units {
            if self.cache.holds(unit) || self.fetches.contains_key(&unit) || self.fetches.len() >= self.most_fetches {
                continue;
            }
            let ready = self.media.read(now, unit * self.fill_lines);
            self.fetch(now, unit, ready, events);
        }
    }

    /// A fetch has ended: its unit is in the internal DRAM, and who waited is answered.
    pub(crate) fn filled(&mut self, now: Ps, unit: u32, events: &mut Events<Event>) {
        if !self.cache.touch(unit) {
            self.cache.insert(unit, false);
        }
        for request in self.fetches.remove(&unit).unwrap_or_default() {
            events.at(now + self.cache_time, Event::Serve(request));
        }
    }

    /// A program has ended: there is room in the buffer.
    pub(crate) fn programmed(&mut self, now: Ps, program: u32, events: &mut Events<Event>) {
        self.buffer.programmed(program);
        self.program(now, events);
        self.admit(now, events);
    }

    /// An announced collection starts; it has all dies until it ends.
    pub(crate) fn collection_starts(&mut self, now: Ps, events: &mut Events<Event>) {
        let Some(Victim { live, block }) = self.log.as_ref().and_then(Log::victim) else { return };
        self.collection = Collection::Running(block);
        self.counts.collections += 1;
        let end = self.media.collect(now, live);
        self.collected = end;
        events.at(end, Event::CollectionEnds(self.port));
    }

    /// A collection ends: its block is free.
    pub(crate) fn collection_ends(&mut self, now: Ps, events: &mut Events<Event>) {
        if let (Collection::Running(block), Some(log)) = (self.collection, &mut self.log) {
            log.collect(block);
        }
        self.collection = Collection::None;
        self.announce(now, events);
        self.program(now, events);
        self.admit(now, events);
    }

    /// What the endpoint says of itself in an answer.
    pub(crate) fn level(&self, now: Ps) -> Level {
        if self.collection != Collection::None {
            return Level::Severe;
        }
        let from = self.limits.buffer_counts_from.value;
        let backlog = (self.buffer.fill() - from) / (1.0 - from);
        Level::of(self.media.busy(now).max(backlog), &self.limits)
    }

    pub(crate) fn is_collecting(&self) -> bool {
        matches!(self.collection, Collection::Running(_))
    }

    /// Whether a collection ran at any time after `time`.
    pub(crate) fn collected_since(&self, time: Ps) -> bool {
        self.collected > time
    }

    pub(crate) fn ingress(&self) -> usize {
        self.ingress.len()
    }

    /// Pages of the media that were sensed.
    pub(crate) fn media_reads(&self) -> u64 {
        self.media.senses
    }

    pub(crate) fn media_bytes(&self) -> f64 {
        self.media.bytes
    }

    /// Takes requests from the ingress queue until a write has to wait: for room, or for the end of a
    /// collection, which has the device to itself.
    fn admit(&mut self, now: Ps, events: &mut Events<Event>) {
        while let Some(&arrival) = self.ingress.front() {
            if arrival.write && (self.is_collecting() || !self.buffer.take(arrival.line)) {
                return;
            }
            self.ingress.pop_front();
            if arrival.write {
                events.at(now + self.cache_time, Event::Accepted(arrival.request));
                self.program(now, events);
            } else {
                self.read(now, arrival, events);
            }
        }
    }

    fn read(&mut self, now: Ps, arrival: Arrival, events: &mut Events<Event>) {
        self.counts.reads += 1;
        let unit = arrival.line / self.fill_lines;
        if self.cache.touch(unit) || self.buffer.holds(arrival.line) {
            self.counts.present += 1;
            events.at(now + self.cache_time, Event::Serve(arrival.request));
        } else if let Some(waiting) = self.fetches.get_mut(&unit) {
            self.counts.in_flight += 1;
            waiting.push(arrival.request);
        } else {
            let ready = self.media.read(now, arrival.line);
            self.fetch(now, unit, ready, events).push(arrival.request);
        }
    }

    fn fetch(&mut self, now: Ps, unit: u32, ready: Ps, events: &mut Events<Event>) -> &mut SmallVec<[RequestId; 4]> {
        let done = self.media.transfer(now, ready, u64::from(self.fill_lines) * LINE_BYTES);
        events.at(done, Event::Filled(self.port, unit));
        self.fetches.entry(unit).or_default()
    }

    /// Starts programs while pages are due, dies free, and the log has room. What the buffer lacks of
    /// a page is read first.
    fn program(&mut self, now: Ps, events: &mut Events<Event>) {
        while self.buffer.is_due()
            && self.log.as_ref().is_none_or(Log::has_room)
            && self.media.can_program(now)
            && let Some(cleaned) = self.buffer.clean()
        {
            let ready = if cleaned.whole { now } else { self.read_page(now, cleaned.page) };
            if let Some(log) = &mut self.log {
                log.append(cleaned.page);
            }
            self.counts.programs += 1;
            events.at(self.media.program(ready), Event::Programmed(self.port, cleaned.program));
            self.announce(now, events);
        }
    }

    /// Brings a page to the controller.
    fn read_page(&mut self, now: Ps, page: u32) -> Ps {
        let ready = self.media.read(now, page * self.page_lines);
        self.media.transfer(now, ready, u64::from(self.page_lines) * LINE_BYTES)
    }

    /// Tells that a collection will run: from here on answers say so.
    fn announce(&mut self, now: Ps, events: &mut Events<Event>) {
        let due = self.log.as_ref().is_some_and(Log::is_short);
        if due && self.collection == Collection::None {
            self.collection = Collection::Announced;
            events.at(now + self.notice, Event::CollectionStarts(self.port));
        }
    }
}
