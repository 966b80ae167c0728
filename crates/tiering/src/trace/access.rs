//! One access, and the row that it is in a trace file.

/// One access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// ns from the start; 0 where the format has no clock.
    pub time_ns: u64,
    /// Virtual address.
    pub address: u64,
    /// Thread.
    pub thread: u32,
    /// It stores.
    pub write: bool,
}

/// Bytes of a row in a trace file: time, address, thread, write, little-endian and packed.
pub const ROW_BYTES: usize = 21;

impl Access {
    /// Appends the row of a trace file.
    pub fn to_row(self, out: &mut Vec<u8>) {
        out.extend(self.time_ns.to_le_bytes());
        out.extend(self.address.to_le_bytes());
        out.extend(self.thread.to_le_bytes());
        out.push(u8::from(self.write));
    }

    /// Reads a row; `None` where it is cut off or its last byte is neither 0 nor 1.
    pub fn from_row(row: &[u8]) -> Option<Self> {
        let row: &[u8; ROW_BYTES] = row.try_into().ok()?;
        let (time_ns, rest) = row.split_first_chunk::<8>()?;
        let (address, rest) = rest.split_first_chunk::<8>()?;
        let (thread, rest) = rest.split_first_chunk::<4>()?;
        let write = match rest {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Self {
            time_ns: u64::from_le_bytes(*time_ns),
            address: u64::from_le_bytes(*address),
            thread: u32::from_le_bytes(*thread),
            write,
        })
    }
}
