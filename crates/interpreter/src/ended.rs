//! Why no further instruction can be told.

/// Why no further instruction can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Memory that cannot be read, or not without harm.
    Unreadable,
    /// Control, or where something is stored, depends on what is not known.
    Unknown,
    /// The kernel is called, or the processor asked for what only it knows.
    Outside,
    /// It waits for another thread, which does nothing meanwhile.
    Waits,
    /// No instruction.
    NoCode,
}
