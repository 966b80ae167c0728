//! Requests under way between the last-level cache and memory.

use tierloom_model::index::IndexVec;

use crate::ids::{PortId, RequestId};
use crate::line::Line;
use crate::link::dev_load::Level;
use crate::time::Ps;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A line for the last-level cache.
    Read,
    /// A line written back, which the cache waits to be rid of.
    WriteBack,
    /// A read that brings news of the endpoint's load, and whose line nobody waits for.
    Probe,
    /// A buffered store on its way to the endpoint, of this version.
    Flight(u64),
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) line: Line,
    pub(crate) port: PortId,
    pub(crate) purpose: Purpose,
    pub(crate) born: Ps,
    /// The data (see `ledger.rs`).
    pub(crate) value: u64,
    /// What the endpoint said in its answer.
    pub(crate) level: Level,
}

/// All requests; a number is used again when its request has ended.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: IndexVec<RequestId, Request>,
    free: Vec<RequestId>,
}

impl Requests {
    pub(crate) fn add(&mut self, request: Request) -> RequestId {
        if let Some(id) = self.free.pop() {
            self.all[id] = request;
            return id;
        }
        self.all.push(request)
    }

    pub(crate) fn get(&self, id: RequestId) -> Request {
        self.all[id]
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.all[id]
    }

    /// Ends a request.
    pub(crate) fn end(&mut self, id: RequestId) -> Request {
        self.free.push(id);
        self.all[id]
    }

    /// Requests under way.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}
