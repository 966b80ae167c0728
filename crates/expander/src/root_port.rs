//! A CXL root port: the queue that the speculative reader looks at, the memory queue behind it, and
//! the writes that wait beside them.

use std::collections::VecDeque;

use crate::event::RequestId;
use crate::line::Line;
use crate::link::Link;
use crate::parameters::Parameters;
use crate::setup::{Config, Setup, Window};
use crate::speculate::{Reader, Speculation};
use crate::store::Buffer;

/// The queues of one port, its link, its speculative reader and its store buffer.
#[derive(Debug)]
pub(crate) struct RootPort {
    /// Loads that have not found room in the read queue; bounded by the cache's misses.
    arriving: VecDeque<(RequestId, Line)>,
    reads: VecDeque<(RequestId, Line)>,
    writes: VecDeque<RequestId>,
    under_way: u32,
    /// Lines in the memory queue; kept only where the window asks for them.
    sent: Option<Vec<Line>>,
    most_reads: usize,
    most_under_way: u32,
    write_first_at: usize,
    pub(crate) reader: Reader,
    pub(crate) buffer: Option<Buffer>,
    pub(crate) link: Link,
    /// A try to write back is scheduled.
    pub(crate) retrying: bool,
    pub(crate) most_waiting: usize,
}

/// What a port sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Send {
    Read(RequestId),
    Write(RequestId),
}

impl RootPort {
    /// A port; `speculates` is false in front of memory that needs no speculative reads.
    pub(crate) fn new(parameters: &Parameters, setup: &Setup, ssd: bool) -> Self {
        let port = &parameters.port;
        let config = if ssd { setup.config } else { Config::Cxl };
        let literal = setup.window == Window::Literal && matches!(config, Config::CxlSr | Config::CxlDs);
        Self {
            arriving: VecDeque::new(),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            under_way: 0,
            sent: literal.then(Vec::new),
            most_reads: port.read_queue.value.max(1) as usize,
            most_under_way: port.memory_queue.value,
            write_first_at: port.write_first_at.value as usize,
            reader: Reader::new(config, setup.window, port.ring.value),
            buffer: (config == Config::CxlDs).then(|| Buffer::new(&parameters.store)),
            link: Link::new(&parameters.link),
            retrying: false,
            most_waiting: 0,
        }
    }

    /// A load arrives from the last-level cache.
    pub(crate) fn push_read(&mut self, request: RequestId, line: Line) {
        self.arriving.push_back((request, line));
    }

    /// A write waits to be sent.
    pub(crate) fn push_write(&mut self, request: RequestId) {
        self.writes.push_back(request);
        self.most_waiting = self.most_waiting.max(self.writes.len());
    }

    /// Lets the next load into the read queue, if there is one and room for it; gives what its
    /// speculative read asks for.
    pub(crate) fn admit(&mut self) -> Option<(Line, Option<Speculation>)> {
        if !self.can_admit() {
            return None;
        }
        let (request, line) = self.arriving.pop_front()?;
        let waiting = self.reads.iter().map(|(_, line)| line);
        let sent = self.sent.iter().flatten();
        let speculation = self.reader.speculate(line, waiting, sent);
        self.reads.push_back((request, line));
        Some((line, speculation))
    }

    /// Whether a load waits for the read queue that has room for it.
    pub(crate) fn can_admit(&self) -> bool {
        !self.arriving.is_empty() && self.reads.len() < self.most_reads
    }

    /// The next request for the memory queue, while there is room: reads first, until many writes
    /// wait.
    pub(crate) fn next(&mut self) -> Option<Send> {
        if self.under_way == self.most_under_way {
            return None;
        }
        let write = self.writes.len() >= self.write_first_at || self.reads.is_empty();
        let send = if write {
            Send::Write(self.writes.pop_front()?)
        } else {
            let (request, line) = self.reads.pop_front()?;
            if let Some(sent) = &mut self.sent {
                sent.push(line);
            }
            Send::Read(request)
        };
        self.under_way += 1;
        Some(send)
    }

    /// Whether nothing that waits or is under way could bring news of the endpoint's load.
    pub(crate) fn is_quiet(&self) -> bool {
        self.under_way == 0 && self.arriving.is_empty() && self.reads.is_empty() && self.writes.is_empty()
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
        self.reads.len() <= self.most_reads && self.under_way <= self.most_under_way && tree
    }

    /// Whether nothing waits and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        let buffered = self.buffer.as_ref().map_or(0, Buffer::entries);
        self.is_quiet() && buffered == 0
    }
}
