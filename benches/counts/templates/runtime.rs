// What every random program in Rust brings along: numbers, and ways to fill objects.
#![allow(dead_code, unused_variables, unused_mut, unused_assignments, static_mut_refs)]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[inline(always)]
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// A number below `bound`, which has at most 32 bits.
#[inline(always)]
fn pick(seed: &mut u64, bound: usize) -> usize {
    ((next(seed) >> 32) * bound as u64 >> 32) as usize
}

macro_rules! fill {
    (zero, $a:expr, $t:ty, $bound:expr, $seed:expr) => {};
    (empty, $a:expr, $t:ty, $bound:expr, $seed:expr) => {};
    (noise, $a:expr, $t:ty, $bound:expr, $seed:expr) => {
        for x in $a.iter_mut() { *x = (next($seed) >> 57) as $t; }
    };
    (below, $a:expr, $t:ty, $bound:expr, $seed:expr) => {
        for x in $a.iter_mut() { *x = pick($seed, $bound) as $t; }
    };
    (sorted, $a:expr, $t:ty, $bound:expr, $seed:expr) => {
        for (i, x) in $a.iter_mut().enumerate() { *x = (3 * i + 1) as $t; }
    };
    (text, $a:expr, $t:ty, $bound:expr, $seed:expr) => {
        for x in $a.iter_mut() { *x = if pick($seed, $bound) > 0 { b'a' + pick($seed, 26) as u8 } else { b',' }; }
    };
    (trips, $a:expr, $t:ty, $bound:expr, $seed:expr) => {
        for x in $a.iter_mut() {
            let r = next($seed) >> 40;
            *x = (if r & 31 != 0 { r % $bound } else { $bound + (r >> 5) % 40 }) as $t;
        }
    };
    (cycle, $a:expr, $t:ty, $bound:expr, $seed:expr) => {
        for (i, x) in $a.iter_mut().enumerate() { *x = i as $t; }
        for i in (1..$a.len()).rev() { let j = pick($seed, i); $a.swap(i, j); }
    };
}
