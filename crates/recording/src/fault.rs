//! Page faults that were recorded.

/// One of so many page faults is recorded, to see when which object got its pages. A program that did nothing but
/// fault took 5 % longer (measured on Linux 6.18 in a virtual machine: 0.1 us a fault, most of it for counting them).
/// A prime, so that it does not run in step with arrays that are filled in turn.
pub const FAULTS_PER_RECORD: u64 = 17;

/// Memory was touched where there was no page yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// When, ns.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Address of the instruction that touched it; 0 where that was not recorded.
    pub instruction: u64,
    /// Address that was read or written.
    pub address: u64,
}
