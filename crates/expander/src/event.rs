//! What can happen.

use crate::ids::{CoreId, PortId, RequestId, WarpId};
use crate::line::Line;

/// An event; root ports, and the endpoints behind them, go by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A core's next access leaves its issue port.
    Issue(CoreId),
    /// The last-level cache answers a load of a warp.
    Hit(WarpId),
    /// A miss of the last-level cache reaches its root port.
    AtPort(RequestId),
    /// A request reaches the endpoint.
    AtEndpoint(RequestId),
    /// A speculative read (port, first line, lines) reaches the endpoint.
    Speculation(PortId, Line, u8),
    /// A fetch from the media has ended: port, unit.
    Filled(PortId, u32),
    /// The endpoint has the data of a read.
    Serve(RequestId),
    /// The endpoint has taken a write.
    Accepted(RequestId),
    /// A line reaches the GPU from an endpoint.
    Answered(RequestId),
    /// The completion of a write reaches its root port.
    Acknowledged(RequestId),
    /// GPU memory has answered a read.
    LocalRead(RequestId),
    /// GPU memory has taken a write.
    LocalWrite(RequestId),
    /// A page has been programmed: port, program.
    Programmed(PortId, u32),
    /// An announced garbage collection starts.
    CollectionStarts(PortId),
    /// A garbage collection ends.
    CollectionEnds(PortId),
    /// Time to ask whether buffered stores can be written back.
    Flush(PortId),
    /// The driver has served a batch of faults.
    BatchDone,
}
