//! A CXL root port: the queue that the speculative reader looks at, the memory queue behind it, and
//! the writes that wait beside them.
//!
//! Where the last-level cache sends misses and stores in one queue, as Vortex does (`mem_req_queue` of
//! `VX_cache_bank.sv`), they pass through the port in that order, so that a store that has to wait
//! holds up the loads behind it. Writes of the store buffer are no part of that queue: they go when no
//! load waits, or when many of them do.

use std::collections::VecDeque;

use crate::ids::RequestId;
use crate::line::Line;
use crate::link::lanes::Link;
use crate::link::speculate::{Reader, Speculation};
use crate::link::store::Buffer;
use crate::parameters::Parameters;
use crate::setup::{Config, Setup, Window};

/// A request that waits at a port.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    request: RequestId,
    line: Line,
    store: bool,
}

/// The queues of one port, its link, its speculative reader and its store buffer.
#[derive(Debug)]
pub(crate) struct RootPort {
    /// What has not found room in the read queue, and what stands behind that; bounded by the cache's
    /// misses and writes.
    arriving: VecDeque<Waiting>,
    /// The read queue, and stores between its loads.
    queue: VecDeque<Waiting>,
    /// Loads in it.
    reads: usize,
    writes: VecDeque<RequestId>,
    under_way: u32,
    /// Lines in the memory queue; kept only where the window asks for them.
    sent: Option<Vec<Line>>,
    most_reads: usize,
    most_under_way: u32,
    write_first_at: usize,
    /// Stores keep their place between loads.
    in_order: bool,
    pub(crate) reader: Reader,
    pub(crate) buffer: Option<Buffer>,
    pub(crate) link: Link,
    /// A try to write back is scheduled.
    pub(crate) retrying: bool,
}

/// A load that has found room in the read queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) line: Line,
    /// What its speculative read asks for.
    pub(crate) speculation: Option<Speculation>,
}

/// What a port sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Send {
    Read(RequestId),
    Write(RequestId),
}

impl RootPort {
    /// A port; in front of memory that is no SSD it neither speculates nor buffers.
    pub(crate) fn new(parameters: &Parameters, setup: &Setup, ssd: bool, in_order: bool) -> Self {
        let port = &parameters.port;
        let config = if ssd { setup.config } else { Config::Cxl };
        let literal = setup.window == Window::Literal && matches!(config, Config::CxlSr | Config::CxlDs);
        let buffer = (config == Config::CxlDs).then(|| Buffer::new(&parameters.store));
        Self {
            arriving: VecDeque::new(),
            queue: VecDeque::new(),
            reads: 0,
            writes: VecDeque::new(),
            under_way: 0,
            sent: literal.then(Vec::new),
            most_reads: port.read_queue.value.max(1) as usize,
            most_under_way: port.memory_queue.value,
            write_first_at: port.write_first_at.value as usize,
            // Stores that the buffer has no room for go the way of those that it writes back.
            in_order: in_order && buffer.is_none(),
            reader: Reader::new(config, setup.window, port.ring.value),
            buffer,
            link: Link::new(&parameters.link),
            retrying: false,
        }
    }

    /// A load arrives from the last-level cache.
    pub(crate) fn push_read(&mut self, request: RequestId, line: Line) {
        self.arriving.push_back(Waiting { request, line, store: false });
    }

    /// A store arrives from it.
    pub(crate) fn push_store(&mut self, request: RequestId, line: Line) {
        if self.in_order {
            self.arriving.push_back(Waiting { request, line, store: true });
        } else {
            self.push_write(request);
        }
    }

    /// A write waits to be sent when there is time.
    pub(crate) fn push_write(&mut self, request: RequestId) {
        self.writes.push_back(request);
    }

    /// Lets the next load into the read queue, if there is one and room for it, with the stores before
    /// it; gives what its speculative read asks for.
    pub(crate) fn admit(&mut self) -> Option<Admitted> {
        while self.can_admit() {
            let next = self.arriving.pop_front()?;
            let speculation = if next.store { None } else { Some(self.look_ahead(next.line)) };
            self.queue.push_back(next);
            if let Some(speculation) = speculation {
                self.reads += 1;
                return Some(Admitted { line: next.line, speculation });
            }
        }
        None
    }

    fn look_ahead(&mut self, line: Line) -> Option<Speculation> {
        let waiting = self.queue.iter().filter(|waiting| !waiting.store).map(|waiting| &waiting.line);
        let sent = self.sent.iter().flatten();
        self.reader.speculate(line, waiting, sent)
    }

    /// Whether something waits for the read queue that has room for it.
    pub(crate) fn can_admit(&self) -> bool {
        self.arriving.front().is_some_and(|next| next.store || self.reads < self.most_reads)
    }

    /// The next request for the memory queue, while there is room: what the cache sent first, until
    /// many writes wait beside it.
    pub(crate) fn next(&mut self) -> Option<Send> {
        if self.under_way == self.most_under_way {
            return None;
        }
        let send = if self.writes.len() >= self.write_first_at || self.queue.is_empty() {
            Send::Write(self.writes.pop_front()?)
        } else {
            self.take()?
        };
        self.under_way += 1;
        Some(send)
    }

    fn take(&mut self) -> Option<Send> {
        let next = self.queue.pop_front()?;
        if next.store {
            return Some(Send::Write(next.request));
        }
        self.reads -= 1;
        if let Some(sent) = &mut self.sent {
            sent.push(next.line);
        }
        Some(Send::Read(next.request))
    }

    /// Whether nothing waits to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.arriving.is_empty() && self.writes.is_empty()
    }

    /// Whether nothing that waits or is under way could bring news of the endpoint's load.
    pub(crate) fn is_quiet(&self) -> bool {
        self.under_way == 0 && self.is_empty()
    }

    /// An answer frees its place in the memory queue.
    pub(crate) fn release(&mut self, line: Line) {
        self.under_way -= 1;
        if let Some(sent) = &mut self.sent {
            sent.iter().position(|&other| other == line).map(|at| sent.swap_remove(at));
        }
    }

    /// Whether a bound is broken.
    pub(crate) fn is_within_bounds(&self) -> bool {
        let tree = self.buffer.as_ref().is_none_or(Buffer::is_within_bounds);
        self.reads <= self.most_reads && self.under_way <= self.most_under_way && tree
    }

    /// Whether nothing waits and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        let buffered = self.buffer.as_ref().map_or(0, Buffer::entries);
        self.is_quiet() && buffered == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Send::{Read, Write};
    use super::*;

    fn sent(in_order: bool, config: Config) -> Vec<Send> {
        let text = include_str!("../../../../python/tierloom/catalog/expander/cxl-gpu.toml");
        let parameters = Parameters::from_toml(text, "cxl-gpu.toml").unwrap();
        let mut port = RootPort::new(&parameters, &Setup { config, ..Setup::default() }, true, in_order);
        port.push_read(RequestId(0), 10);
        port.push_store(RequestId(1), 20);
        port.push_read(RequestId(2), 30);
        while port.admit().is_some() {}
        std::iter::from_fn(|| port.next()).collect()
    }

    #[test]
    fn stores_keep_their_place_between_loads_where_the_cache_has_one_queue() {
        let (in_order, loads_first) = (
            [Read(RequestId(0)), Write(RequestId(1)), Read(RequestId(2))],
            [Read(RequestId(0)), Read(RequestId(2)), Write(RequestId(1))],
        );
        assert_eq!(sent(true, Config::CxlSr), in_order);
        assert_eq!(sent(false, Config::CxlSr), loads_first);
        assert_eq!(sent(true, Config::CxlDs), loads_first, "a store buffer takes them out of it");
    }
}
