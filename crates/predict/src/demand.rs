//! What a placement asks of the memories.

use tierloom_contention::Work;

/// What a placement asks of each memory in each phase, over each of the sockets that threads run on.
///
/// Linear in the fractions. Made by [`Predictor::demand`](crate::Predictor::demand), changed by
/// [`Predictor::shift`](crate::Predictor::shift); cloning is cheap (three numbers per phase, socket
/// and memory).
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Phase by phase, socket by socket, one entry per memory.
    pub(crate) cells: Vec<Work>,
}
