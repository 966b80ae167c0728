//! The loop that lets events happen, and what must hold when it is over.

use crate::error::{ExpanderError, Result};
use crate::event::Event;
use crate::link::root_port::RootPort;

use super::state::System;

impl System {
    /// Runs to the end: until every core is done and every store has reached its place.
    pub(crate) fn run(&mut self) -> Result<()> {
        self.gpu.cores().for_each(|core| self.issue_next(core));
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

    /// Promises that hold after every run, whatever was asked.
    fn check(&self) -> Result<()> {
        let faulted = self.faults.as_ref().map_or(0, |faults| faults.waiting.len());
        let idle = self.gpu.is_idle() && self.far.ports.iter().all(RootPort::is_idle);
        if !idle || self.requests.len() + self.llc.waiting() + faulted > 0 {
            return Err(ExpanderError::Broken("a request was lost".to_owned()));
        }
        if let Some(broken) = self.broken {
            return Err(ExpanderError::Broken(broken.to_owned()));
        }
        self.ledger.as_ref().map_or(Ok(()), |ledger| ledger.verdict())
    }
}
