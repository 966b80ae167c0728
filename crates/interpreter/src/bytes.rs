//! Where bytes come from that were not written here.

/// The memory of a thread that is halted; what it is asked for lies within a page.
pub trait Bytes {
    /// Fills `into` with what is at an address; whether that could be read, and without harm.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}
