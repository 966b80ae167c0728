//! The GPU's side: accesses of the cores, hits and misses of the last-level cache, write-backs.

use super::state::System;
use crate::event::Event;
use crate::gpu::cores::Access;
use crate::gpu::mshr::{Joined, Waiter};
use crate::ids::{CoreId, RequestId, WarpId};
use crate::line::Line;
use crate::link::store::Fate;
use crate::requests::{Purpose, Request};
use crate::time::Ps;

impl System {
    /// Puts a core's next access at its issue port.
    pub(super) fn issue_next(&mut self, core: CoreId) {
        if let Some(time) = self.gpu.next(core, self.now, &mut self.workload) {
            self.events.at(time, Event::Issue(core));
        }
    }

    /// A core's access leaves its issue port.
    pub(super) fn issue(&mut self, core: CoreId) {
        let Some(access) = self.gpu.issued(core) else { return };
        self.end = self.end.max(self.now);
        self.access(access);
        self.issue_next(core);
    }

    /// An access goes its way: to the driver, to the cache, or it stalls its core.
    pub(super) fn access(&mut self, access: Access) {
        if self.page_is_missing(access) {
            return;
        }
        let done = if access.store { self.store(access.line) } else { self.load(access) };
        if let Some(done) = done {
            self.gpu.accepted(access.warp, done);
        } else {
            self.gpu.stall(access.warp);
            self.llc.stalled.push_back(access);
        }
    }

    /// Lets stalled accesses try again, the oldest first, until one has to wait on.
    pub(super) fn retry_stalled(&mut self) {
        while let Some(access) = self.llc.stalled.pop_front() {
            let waiting = self.llc.stalled.len();
            self.gpu.resume(access.warp);
            self.access(access);
            if self.llc.stalled.len() > waiting {
                self.llc.stalled.rotate_right(1);
                return;
            }
            self.issue_next(self.gpu.core_of(access.warp));
        }
    }

    /// A store of a line, without a fetch: through the cache, or into it. `None` when there is no
    /// room.
    fn store(&mut self, line: Line) -> Option<bool> {
        if self.llc.line_stores > 0 {
            return self.store_through(line);
        }
        if self.llc.cache.soil(line) {
            self.metrics.llc_hits += 1;
        } else {
            if self.llc.is_blocked_by_victim(line) {
                return None;
            }
            self.llc.misses.overtake(line);
            self.install(line, true);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.store(line);
        }
        Some(true)
    }

    /// A store that goes to memory at once and changes the cache where the line is in it; each of the
    /// instructions that cover the line writes its part.
    fn store_through(&mut self, line: Line) -> Option<bool> {
        if !self.llc.leaving.has_room(self.llc.line_stores) {
            return None;
        }
        let hit = self.llc.cache.touch(line);
        self.metrics.llc_hits += u64::from(hit);
        self.llc.misses.overtake(line);
        if let Some(ledger) = &mut self.ledger {
            ledger.store(line);
        }
        (0..self.llc.line_stores).for_each(|_| self.write_back(line));
        if let Some(ledger) = self.ledger.as_mut().filter(|_| !hit) {
            ledger.cache(line, None);
        }
        Some(true)
    }

    /// A load of a line: whether it is done at once; `None` when it has to try again.
    fn load(&mut self, access: Access) -> Option<bool> {
        let line = access.line;
        if self.llc.cache.touch(line) || self.llc.leaving.value(line).is_some() {
            return Some(self.hit(access));
        }
        let least = self.ledger.as_ref().map_or(0, |ledger| ledger.latest(line));
        let joined = self.llc.misses.join(line, Waiter { warp: access.warp, least });
        if joined == Joined::Refused {
            return None;
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.ask();
        }
        if joined == Joined::First {
            self.fetch(line);
        }
        Some(false)
    }

    /// The cache has the line, or is still writing it back.
    fn hit(&mut self, access: Access) -> bool {
        self.metrics.llc_hits += 1;
        if let Some(ledger) = &mut self.ledger {
            ledger.ask();
            let least = ledger.latest(access.line);
            let leaving = self.llc.leaving.value(access.line);
            let value =
                if self.llc.cache.holds(access.line) { ledger.cached(access.line) } else { leaving.unwrap_or(0) };
            ledger.answer(access.line, least, value);
        }
        if self.llc.time == 0 {
            return true;
        }
        self.events.at(self.now + self.llc.time, Event::Hit(access.warp));
        false
    }

    /// A warp's line is there.
    pub(super) fn wake(&mut self, warp: WarpId) {
        self.gpu.answered(warp);
        self.end = self.end.max(self.now);
        self.issue_next(self.gpu.core_of(warp));
    }

    /// Sends for a line.
    fn fetch(&mut self, line: Line) {
        let id = self.request(line, Purpose::Read, 0);
        if self.config.is_cxl() {
            if self.llc.time == 0 {
                return self.at_port(id);
            }
            return self.events.at(self.now + self.llc.time, Event::AtPort(id));
        }
        let value = self.ledger.as_ref().map_or(0, |ledger| ledger.near(line));
        self.requests.get_mut(id).value = value;
        let done = self.local.read(self.now, line) + self.llc.time;
        self.events.at(done, Event::LocalRead(id));
    }

    /// GPU memory has answered a read.
    pub(super) fn local_read(&mut self, id: RequestId) {
        let request = self.requests.end(id);
        self.fill(request);
    }

    /// A line has come: who waited goes on, and the cache keeps it where it may and can.
    pub(super) fn fill(&mut self, request: Request) {
        let line = request.line;
        self.metrics.load(self.now - request.born);
        let Some(miss) = self.llc.misses.take(line) else { return };
        if !miss.overtaken && !self.llc.cache.holds(line) && !self.llc.is_blocked_by_victim(line) {
            self.install(line, false);
            if let Some(ledger) = &mut self.ledger {
                ledger.cache(line, Some(request.value));
            }
        }
        for waiter in miss.waiters {
            if let Some(ledger) = &mut self.ledger {
                ledger.answer(line, waiter.least, request.value);
            }
            self.wake(waiter.warp);
        }
        self.retry_stalled();
    }

    fn install(&mut self, line: Line, dirty: bool) {
        let Some(evicted) = self.llc.cache.insert(line, dirty) else { return };
        if evicted.dirty {
            self.write_back(evicted.tag);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.cache(evicted.tag, None);
        }
    }

    /// The data of a line leaves the cache for memory.
    fn write_back(&mut self, line: Line) {
        let value = self.ledger.as_ref().map_or(0, |ledger| ledger.cached(line));
        self.llc.leaving.start(line, value);
        let id = self.request(line, Purpose::WriteBack, value);
        if self.config.is_cxl() {
            self.write_to_port(id);
        } else {
            if let Some(ledger) = &mut self.ledger {
                ledger.put_near(line, value);
            }
            let done = self.local.write(self.now, line);
            self.events.at(done, Event::LocalWrite(id));
        }
    }

    /// A line written back has reached the place where it is safe.
    pub(super) fn released(&mut self, id: RequestId) {
        let request = self.requests.end(id);
        let collecting = self.is_collecting_since(request.born, request.port);
        self.metrics.store(self.now - request.born, collecting);
        self.llc.leaving.end(request.line);
        self.retry_stalled();
    }

    /// A line written back goes to its root port, by way of the store buffer where there is one.
    fn write_to_port(&mut self, id: RequestId) {
        let request = self.requests.get(id);
        let port = request.port;
        let fate = self.far.ports[port]
            .buffer
            .as_mut()
            .map_or(Fate::Blocking, |buffer| buffer.store(request.line, request.value));
        if fate == Fate::Blocking {
            self.far.ports[port].push_store(id, request.line);
        } else {
            let done: Ps = self.local.write(self.now, request.line);
            self.events.at(done, Event::LocalWrite(id));
        }
        match fate {
            Fate::Sent(flight) => self.send_flight(flight),
            Fate::Buffered => self.flush(port),
            Fate::Blocking => {}
        }
        self.pump(port);
    }
}
