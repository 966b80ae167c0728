//! What all kernels walk over: cache lines.

use crate::mix::LINE_BYTES;

/// Word that all-write kernels store.
pub(super) const FILL: u64 = 0x5171_0000_0000_5171;

/// A cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u64; LINE_BYTES / 8]);

/// A walk over whole groups of the mix; unsafe where the processor lacks the instructions.
pub(super) type Walk = unsafe fn(&mut [Line]) -> u64;
