//! Work that takes the same time whenever it runs at the same clock: for what is timed against itself.

use std::hint::black_box;

/// So many steps of a chain of shifts (xorshift64, Marsaglia 2003) from a seed other than 0: its next seed.
///
/// No compiler shortens it, and it stays in registers. A value that goes through memory at each step takes 1 or 2.7 ns for
/// it on a Sapphire Rapids, as the processor forwards the store or not.
pub fn chain(seed: u64, steps: u64) -> u64 {
    let step = |mut state: u64, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^ (state << 17)
    };
    black_box((0..steps).fold(black_box(seed), step))
}
