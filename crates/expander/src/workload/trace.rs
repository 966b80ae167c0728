//! Traces of other simulators: 16-byte records, replayed warp by warp.

use tierloom_model::units::LINE_BYTES;

use tierloom_model::index::IndexVec;

use super::kernel::Touch;
use crate::error::{ExpanderError, Result};
use crate::ids::WarpId;
use crate::line::Line;

/// Bytes of a record: address (8), thread (4), 1 for a store and 0 for a load (4), little-endian.
pub const RECORD_BYTES: usize = 16;

/// Most lines between the lowest and the highest address.
const MOST_LINES: u64 = 1 << 31;

/// A recorded trace, in the order of its records.
#[derive(Debug, Clone)]
pub struct Trace {
    /// Line, thread, and whether it is a store.
    records: Vec<(Line, u32, bool)>,
    lines: u32,
}

impl Trace {
    /// Reads records; addresses count from the lowest one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD_BYTES) {
            let problem = format!("{} bytes are no whole number of {RECORD_BYTES}-byte records", bytes.len());
            return Err(ExpanderError::request(
                "trace",
                problem,
                "write address, thread and store flag of each access",
            ));
        }
        let raw: Vec<(u64, u32, u32)> = bytes.chunks_exact(RECORD_BYTES).map(record).collect();
        if let Some(at) = raw.iter().position(|(_, _, store)| *store > 1) {
            let problem = format!("record {at} has store flag {}", raw[at].2);
            return Err(ExpanderError::request("trace", problem, "write 1 for a store and 0 for a load"));
        }
        let lines = || raw.iter().map(|(address, _, _)| address / LINE_BYTES);
        let (lowest, highest) = (lines().min().unwrap_or(0), lines().max().unwrap_or(0));
        if highest - lowest >= MOST_LINES {
            let problem = format!("addresses span {} GiB", (highest - lowest) >> 24);
            return Err(ExpanderError::request("trace", problem, "renumber its pages so that they lie together"));
        }
        let compact =
            |&(address, thread, store): &(u64, u32, u32)| ((address / LINE_BYTES - lowest) as u32, thread, store == 1);
        Ok(Self { records: raw.iter().map(compact).collect(), lines: (highest - lowest) as u32 + 1 })
    }

    /// Lines from the lowest to the highest address.
    pub fn lines(&self) -> u32 {
        self.lines
    }
}

fn record(bytes: &[u8]) -> (u64, u32, u32) {
    let number = |range: std::ops::Range<usize>| bytes[range].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    (number(0..8), number(8..12) as u32, number(12..16) as u32)
}

/// Where each warp is in its records.
#[derive(Debug)]
pub(super) struct Replay {
    warps: IndexVec<WarpId, std::vec::IntoIter<Touch>>,
}

impl Replay {
    /// Threads are dealt to the warps in turn.
    pub(super) fn new(trace: &Trace, warps: u32) -> Self {
        let mut dealt = vec![Vec::new(); warps as usize];
        for &(line, thread, store) in &trace.records {
            dealt[(thread % warps) as usize].push(Touch { line, store });
        }
        Self { warps: dealt.into_iter().map(Vec::into_iter).collect() }
    }

    pub(super) fn next(&mut self, warp: WarpId) -> Option<Touch> {
        self.warps[warp].next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(records: &[(u64, u32, u32)]) -> Vec<u8> {
        let parts = records.iter().map(|(a, t, s)| [&a.to_le_bytes()[..], &t.to_le_bytes(), &s.to_le_bytes()].concat());
        parts.collect::<Vec<_>>().concat()
    }

    #[test]
    fn records_are_dealt_to_warps_in_their_order() {
        let trace = Trace::from_bytes(&bytes(&[(4096, 0, 0), (4160, 1, 1), (4224, 2, 0)])).unwrap();
        assert_eq!(trace.lines(), 3);
        let mut replay = Replay::new(&trace, 2);
        let load = |line| Some(Touch { line, store: false });
        assert_eq!([(); 3].map(|()| replay.next(WarpId(0))), [load(0), load(2), None]);
        assert_eq!(replay.next(WarpId(1)), Some(Touch { line: 1, store: true }));
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert!(Trace::from_bytes(&[0; 17]).unwrap_err().to_string().contains("16-byte records"));
        assert!(Trace::from_bytes(&bytes(&[(0, 0, 2)])).unwrap_err().to_string().contains("store flag 2"));
        assert!(Trace::from_bytes(&bytes(&[(0, 0, 0), (1 << 40, 0, 0)])).unwrap_err().to_string().contains("span"));
    }
}
