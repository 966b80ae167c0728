//! The way to the endpoints and back: root ports, links, answers with `DevLoad`.

use super::state::System;
use crate::endpoint::{Arrival, Endpoint};
use crate::event::Event;
use crate::ids::{PortId, RequestId};
use crate::line::Line;
use crate::link::dev_load::Level;
use crate::link::root_port::{Admitted, Send};
use crate::link::speculate::Speculation;
use crate::link::store::{Buffer, Flight};
use crate::requests::Purpose;
use crate::time::Ps;

impl System {
    /// A miss reaches its root port; GPU memory serves it where the store buffer holds the line.
    pub(super) fn at_port(&mut self, id: RequestId) {
        let request = self.requests.get(id);
        let port = request.port;
        let held = self.far.ports[port].buffer.as_ref().and_then(|buffer| buffer.holds(request.line));
        if let Some(value) = held {
            self.metrics.store_served += 1;
            self.requests.get_mut(id).value = value;
            let done = self.local.read(self.now, request.line);
            self.events.at(done, Event::LocalRead(id));
            return;
        }
        self.far.ports[port].push_read(id, request.line);
        self.pump(port);
    }

    /// Moves what can move: loads into the read queue, requests onto the link.
    pub(super) fn pump(&mut self, port: PortId) {
        while !self.far.ports[port].is_empty() {
            while let Some(Admitted { line, speculation }) = self.far.ports[port].admit() {
                if let Some(wanted) = speculation {
                    self.send_speculation(port, line, wanted);
                }
            }
            let root = &mut self.far.ports[port];
            while let Some(send) = root.next() {
                let (id, arrival) = match send {
                    Send::Read(id) => (id, root.link.request(self.now)),
                    Send::Write(id) => (id, root.link.write(self.now)),
                };
                self.events.at(arrival, Event::AtEndpoint(id));
            }
            if !root.can_admit() {
                return self.watch(port);
            }
        }
    }

    fn send_speculation(&mut self, port: PortId, line: Line, wanted: Speculation) {
        let Speculation { start, end } = self.far.decoder.clip(line, wanted);
        let arrival = self.far.ports[port].link.request(self.now);
        self.events.at(arrival, Event::Speculation(port, start, (end - start) as u8));
    }

    /// A speculative read reaches the endpoint; in front of memory it has nothing to do.
    pub(super) fn speculation(&mut self, port: PortId, start: Line, lines: u8) {
        let now = self.now;
        let wanted = Speculation { start, end: start + u32::from(lines) };
        self.at_ssd(port, |ssd, events| ssd.speculate(now, wanted, events));
    }

    /// A request reaches the endpoint.
    pub(super) fn at_endpoint(&mut self, id: RequestId) {
        let request = self.requests.get(id);
        let write = !matches!(request.purpose, Purpose::Read | Purpose::Probe);
        if write && let Some(ledger) = &mut self.ledger {
            ledger.put_far(request.line, request.value);
        }
        match &mut self.far.endpoints[request.port] {
            Endpoint::Ssd(ssd) => {
                ssd.arrive(self.now, Arrival { request: id, line: request.line, write }, &mut self.events);
            }
            Endpoint::Dram(dram) if write => {
                let done = dram.write(self.now, request.line);
                self.events.at(done, Event::Accepted(id));
            }
            Endpoint::Dram(dram) => {
                let done = dram.read(self.now, request.line);
                self.events.at(done, Event::Serve(id));
            }
        }
    }

    /// The endpoint has a line: it goes up, with the endpoint's load.
    pub(super) fn serve(&mut self, id: RequestId) {
        let level = self.level(id);
        let value = self.ledger.as_ref().map_or(0, |ledger| ledger.far(self.requests.get(id).line));
        let request = self.requests.get_mut(id);
        request.level = level;
        request.value = value;
        let arrival = self.far.ports[request.port].link.data(self.now);
        self.events.at(arrival, Event::Answered(id));
    }

    /// The endpoint has taken a write: its completion goes up, with the endpoint's load.
    pub(super) fn accepted(&mut self, id: RequestId) {
        let level = self.level(id);
        let request = self.requests.get_mut(id);
        request.level = level;
        let arrival = self.far.ports[request.port].link.answer(self.now);
        self.events.at(arrival, Event::Acknowledged(id));
    }

    fn level(&self, id: RequestId) -> Level {
        self.far.endpoints[self.requests.get(id).port].level(self.now)
    }

    /// A line reaches the GPU.
    pub(super) fn answered(&mut self, id: RequestId) {
        let request = self.requests.end(id);
        let port = request.port;
        self.far.ports[port].release(request.line);
        self.hear(port, request.level);
        if request.purpose == Purpose::Read {
            self.fill(request);
        }
        self.pump(port);
    }

    /// The completion of a write reaches the GPU.
    pub(super) fn acknowledged(&mut self, id: RequestId) {
        let request = self.requests.get(id);
        let port = request.port;
        self.far.ports[port].release(request.line);
        if let (Purpose::Flight(version), Some(buffer)) = (request.purpose, &mut self.far.ports[port].buffer) {
            buffer.acknowledge(request.line, version);
            self.requests.end(id);
        } else {
            self.released(id);
        }
        self.hear(port, request.level);
        self.pump(port);
    }

    /// Everyone at a port takes note of the endpoint's load.
    fn hear(&mut self, port: PortId, level: Level) {
        self.far.ports[port].reader.hear(level);
        if let Some(buffer) = &mut self.far.ports[port].buffer {
            buffer.hear(level);
            self.flush(port);
        }
    }

    /// Writes back buffered stores while the load allows, or sees to it that news of the load comes.
    pub(super) fn flush(&mut self, port: PortId) {
        while let Some(flight) = self.far.ports[port].buffer.as_mut().and_then(Buffer::flush) {
            self.send_flight(flight);
        }
        if self.stuck(port).is_some() && !self.far.ports[port].retrying {
            self.far.ports[port].retrying = true;
            self.events.at(self.now + self.far.retry, Event::Flush(port));
        }
    }

    fn stuck(&self, port: PortId) -> Option<Line> {
        self.far.ports[port].buffer.as_ref().and_then(Buffer::stuck)
    }

    /// Time to ask for the load, unless an answer is on its way anyhow. A write would have to wait for
    /// the end of a collection, and so would all loads behind it: a read asks.
    pub(super) fn ask(&mut self, port: PortId) {
        self.far.ports[port].retrying = false;
        let Some(line) = self.stuck(port) else { return };
        if self.far.ports[port].is_quiet() {
            let id = self.request(line, Purpose::Probe, 0);
            self.far.ports[port].push_read(id, line);
        }
        self.flush(port);
        self.pump(port);
    }

    pub(super) fn send_flight(&mut self, flight: Flight) {
        let id = self.request(flight.line, Purpose::Flight(flight.version), flight.value);
        let port = self.requests.get(id).port;
        self.far.ports[port].push_write(id);
    }

    /// Whether a collection ran at the port's endpoint at any time since `born`.
    pub(super) fn is_collecting_since(&self, born: Ps, port: PortId) -> bool {
        self.far.endpoints.get(port).is_some_and(|endpoint| endpoint.collected_since(born))
    }
}
