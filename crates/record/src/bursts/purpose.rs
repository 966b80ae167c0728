//! What copies are for.

/// What copies are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// They write addresses down.
    Log,
    /// They count.
    Count,
}

/// All of them, in the order in which a window may have them.
pub(super) const PURPOSES: [Purpose; 2] = [Purpose::Log, Purpose::Count];
