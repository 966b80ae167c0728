//! Why data cannot be placed as asked, and what to ask instead.

use thiserror::Error;
use tierloom_model::PlacementError;
use tierloom_predict::PredictError;

/// A request that cannot be met.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The machine has no such socket.
    #[error("machine `{machine}` has no socket `{name}`\nhint: use one of: {known}")]
    UnknownSocket {
        /// Machine.
        machine: String,
        /// As asked.
        name: String,
        /// Sockets that there are.
        known: String,
    },
    /// The machine has no such memory.
    #[error("machine `{machine}` has no memory `{name}`\nhint: use one of: {known}")]
    UnknownNode {
        /// Machine.
        machine: String,
        /// As asked.
        name: String,
        /// Memories that there are.
        known: String,
    },
    /// The profile has no such object.
    #[error("profile `{profile}` has no object `{name}`\nhint: use one of: {known}")]
    UnknownObject {
        /// Profile.
        profile: String,
        /// As asked.
        name: String,
        /// Objects that there are.
        known: String,
    },
    /// No path leads from where the program runs to this memory.
    #[error("memory `{node}` cannot be reached from socket `{socket}`\nhint: use one of: {reachable}")]
    NotReachable {
        /// Memory.
        node: String,
        /// Where the program runs.
        socket: String,
        /// Memories that can be reached.
        reachable: String,
    },
    /// The memory exists, but the request leaves it out.
    #[error("memory `{node}` is not among those that may be used\nhint: use one of: {allowed}, or allow `{node}` too")]
    NotAllowed {
        /// Memory.
        node: String,
        /// Memories that may be used.
        allowed: String,
    },
    /// The request names an empty list of memories.
    #[error("no memory may be used\nhint: name at least one, or leave the list out to use all that can be reached")]
    NoNodes,
    /// More data than all memories together hold.
    #[error("the program's {footprint} do not fit in {nodes}, which hold {room}: {short} too much\nhint: {hint}")]
    TooLarge {
        /// Bytes of all objects, for people.
        footprint: String,
        /// Memories that may be used.
        nodes: String,
        /// Bytes there, for people.
        room: String,
        /// Bytes missing, for people.
        short: String,
        /// What to do.
        hint: String,
    },
    /// A policy that allows no other node runs out of room.
    #[error(
        "{bound} of data do not fit in {nodes}: {short} too much, room ended at `{object}`\nhint: use preferred instead of \
         bind, or more nodes"
    )]
    DoesNotFit {
        /// Object that found no room: of several, the one that came when room ended.
        object: String,
        /// Nodes it is bound to.
        nodes: String,
        /// Bytes of all objects that are bound to the same, for people.
        bound: String,
        /// How many of them found no room, for people.
        short: String,
    },
    /// There is no policy of this name.
    #[error("there is no policy `{name}`\nhint: use one of: {known}")]
    UnknownPolicy {
        /// As asked.
        name: String,
        /// Names that there are.
        known: String,
    },
    /// The part of a policy's name after the colon makes no sense.
    #[error("policy `{name}`: {problem}\nhint: {hint}")]
    BadPolicy {
        /// As asked.
        name: String,
        /// What is wrong with it.
        problem: String,
        /// What to write.
        hint: String,
    },
    /// A policy that the caller brought along has no placement for this.
    #[error("{reason}")]
    Brought {
        /// In its own words.
        reason: String,
    },
    /// An amount of fast memory that is none.
    #[error(
        "fast memory: {problem}\nhint: write an amount such as 64GiB, or a share of the program's data such as 40%"
    )]
    BadBudget {
        /// What is wrong with it.
        problem: String,
    },
    /// A bound on the slow-down that is none.
    #[error("slow-down {asked} is not a number of at least 0\nhint: write 0.05 for five percent")]
    BadSlowdown {
        /// As asked.
        asked: f64,
    },
    /// No placement is fast enough.
    #[error(
        "no placement keeps the slow-down within {asked}: the least here is {least} over the best that was found with any \
         amount of fast memory\nhint: allow {least}{or_else}"
    )]
    OutOfReach {
        /// Bound, for people.
        asked: String,
        /// Bound that can be kept, for people.
        least: String,
        /// What else to do.
        or_else: &'static str,
    },
    /// Every policy of the request failed.
    #[error("none of the policies can be used here; {first}")]
    NothingFits {
        /// The first policy and its reason.
        first: String,
    },
    /// The machine and the profile do not make a prediction.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// Fractions that are no placement.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}
